//! The media that an object is readable on, and the replicas they come from.

use std::fmt;

/// A tier on which an object can be readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Medium {
    /// Memory, `cpu` on the wire.
    Cpu,
    /// Everything that is not memory, `disk` on the wire.
    Disk,
}

impl Medium {
    /// Both media, in the order in which one call announces them.
    pub const ALL: [Medium; 2] = [Medium::Cpu, Medium::Disk];

    /// The medium's text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Medium::Cpu => "cpu",
            Medium::Disk => "disk",
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The media on which an object is readable: any subset of [`Medium::Cpu`] and [`Medium::Disk`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MediaSet(u8);

impl MediaSet {
    /// Readable nowhere.
    pub const EMPTY: MediaSet = MediaSet(0);
    /// Memory alone.
    pub const CPU: MediaSet = MediaSet(1);
    /// Disk alone.
    pub const DISK: MediaSet = MediaSet(2);
    /// Memory and disk.
    pub const BOTH: MediaSet = MediaSet(3);

    /// The set as two bits: 1 for `cpu`, 2 for `disk`.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set of two bits; `None` if any other bit is set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<MediaSet> {
        if bits <= 3 { Some(MediaSet(bits)) } else { None }
    }

    /// What a replica topology comes to: the media that hold at least one *completed* replica.
    pub fn of_replicas(replicas: impl IntoIterator<Item = Replica>) -> MediaSet {
        replicas.into_iter().filter(|replica| replica.completed).map(|replica| replica.kind.medium()).collect()
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of media in the set, 0 to 2.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether `medium` is in the set.
    #[must_use]
    pub const fn contains(self, medium: Medium) -> bool {
        self.0 & Self::single(medium).0 != 0
    }

    /// The set with `medium` in it.
    #[must_use]
    pub const fn with(self, medium: Medium) -> MediaSet {
        MediaSet(self.0 | Self::single(medium).0)
    }

    /// The set with `medium` taken out.
    #[must_use]
    pub const fn without(self, medium: Medium) -> MediaSet {
        MediaSet(self.0 & !Self::single(medium).0)
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub const fn minus(self, other: MediaSet) -> MediaSet {
        MediaSet(self.0 & !other.0)
    }

    /// The media in the set, `cpu` before `disk`.
    pub fn iter(self) -> impl Iterator<Item = Medium> {
        Medium::ALL.into_iter().filter(move |medium| self.contains(*medium))
    }

    const fn single(medium: Medium) -> MediaSet {
        match medium {
            Medium::Cpu => MediaSet::CPU,
            Medium::Disk => MediaSet::DISK,
        }
    }
}

impl From<Medium> for MediaSet {
    fn from(medium: Medium) -> Self {
        MediaSet::single(medium)
    }
}

impl FromIterator<Medium> for MediaSet {
    fn from_iter<I: IntoIterator<Item = Medium>>(media: I) -> Self {
        media.into_iter().fold(MediaSet::EMPTY, MediaSet::with)
    }
}

impl fmt::Debug for MediaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Medium::as_str)).finish()
    }
}

/// The kinds of replica a store keeps, as far as this crate has to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplicaKind {
    /// In the memory of a node.
    Memory,
    /// On a disk of the store.
    Disk,
    /// On a client's own disk.
    LocalDisk,
    /// On an NVMe-over-fabrics SSD.
    NofSsd,
    /// On a distributed file system.
    Dfs,
}

impl ReplicaKind {
    /// Memory replicas are `cpu`; every other kind is `disk`.
    #[must_use]
    pub const fn medium(self) -> Medium {
        match self {
            ReplicaKind::Memory => Medium::Cpu,
            ReplicaKind::Disk | ReplicaKind::LocalDisk | ReplicaKind::NofSsd | ReplicaKind::Dfs => Medium::Disk,
        }
    }
}

/// One replica of an object: its kind, and whether it can be read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Where it lives.
    pub kind: ReplicaKind,
    /// Whether its transfer is complete. Only completed replicas make an object readable.
    pub completed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_collapse_onto_two_media() {
        use ReplicaKind::*;
        let replica = |kind, completed| Replica { kind, completed };
        assert_eq!(MediaSet::of_replicas([]), MediaSet::EMPTY);
        assert_eq!(MediaSet::of_replicas([replica(Memory, false)]), MediaSet::EMPTY);
        assert_eq!(MediaSet::of_replicas([replica(Memory, true), replica(Memory, true)]), MediaSet::CPU);
        for kind in [Disk, LocalDisk, NofSsd, Dfs] {
            assert_eq!(MediaSet::of_replicas([replica(kind, true)]), MediaSet::DISK);
            assert_eq!(MediaSet::of_replicas([replica(kind, true), replica(Memory, true)]), MediaSet::BOTH);
            assert_eq!(MediaSet::of_replicas([replica(kind, false), replica(Memory, true)]), MediaSet::CPU);
        }
    }

    #[test]
    fn sets_differ_and_iterate_cpu_first() {
        assert_eq!(MediaSet::BOTH.minus(MediaSet::CPU), MediaSet::DISK);
        assert_eq!(MediaSet::CPU.minus(MediaSet::BOTH), MediaSet::EMPTY);
        assert_eq!(MediaSet::BOTH.iter().collect::<Vec<_>>(), [Medium::Cpu, Medium::Disk]);
        assert_eq!(MediaSet::from_bits(4), None);
        assert_eq!(MediaSet::EMPTY.with(Medium::Disk).without(Medium::Disk).len(), 0);
    }
}
