//! What a master talks about: objects, the media they are readable on, and what a call came to.

use std::fmt;

/// Tenant that an empty tenant name stands for.
pub const DEFAULT_TENANT: &str = "default";

/// One cached object, as the master names it.
///
/// Nothing here is parsed: the key goes to the wire verbatim. An empty `tenant` becomes [`DEFAULT_TENANT`], an empty
/// `group` becomes nil, and an object with an empty `key` is suppressed (counted, not sent), since no subscriber could
/// act on it. An empty `session` is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object<'a> {
    /// Tenant that owns the object (`tenant_id` on the wire).
    pub tenant: &'a str,
    /// The store's key (`object_key` on the wire).
    pub key: &'a str,
    /// The store's group identity (`group_id` on the wire); empty for none.
    pub group: &'a str,
    /// The session that stored the object (`session_id` on the wire, on `stored` only); empty for none, and then the key
    /// is absent from the event.
    pub session: &'a str,
}

impl<'a> Object<'a> {
    /// An object without a group or a session.
    #[must_use]
    pub const fn new(tenant: &'a str, key: &'a str) -> Self {
        Object { tenant, key, group: "", session: "" }
    }

    /// The same object in a group.
    #[must_use]
    pub const fn in_group(self, group: &'a str) -> Self {
        Object { group, ..self }
    }

    /// The same object, stored by a session. Calls that emit no `stored` do not look at it.
    #[must_use]
    pub const fn in_session(self, session: &'a str) -> Self {
        Object { session, ..self }
    }
}

/// The name a tenant has on the wire: `""` is [`DEFAULT_TENANT`].
pub(crate) const fn tenant_or_default(tenant: &str) -> &str {
    if tenant.is_empty() { DEFAULT_TENANT } else { tenant }
}

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

/// The media an object was readable on *before* a mutation.
///
/// The publisher keeps no state per object, so what a mutation changed can only be told by whoever saw the object
/// before it. Take one before you touch the metadata, then give it to the call that publishes
/// ([`Publisher::changed`](crate::Publisher::changed), [`Publisher::removed`](crate::Publisher::removed)), which
/// consumes it, or say [`discard`](Before::discard) if the mutation did not happen. It is neither `Copy` nor `Clone`,
/// so one mutation cannot be announced twice by mistake.
///
/// ```compile_fail,E0382
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// let publisher = Publisher::disabled();
/// let before = Before::mutation(MediaSet::CPU);
/// publisher.removed(&Object::new("t", "k"), before);
/// publisher.removed(&Object::new("t", "k"), before); // moved: does not compile
/// ```
///
/// # Panics
///
/// With debug assertions on, dropping one that was neither published nor discarded panics (unless the thread is
/// already panicking): the mutation behind it would go untold. Without debug assertions the drop does nothing.
#[derive(Debug)]
#[must_use = "give it to the call that publishes the mutation, or `discard` it"]
pub struct Before(MediaSet);

impl Before {
    /// Remembers the media an object is readable on now, just before it is mutated.
    pub const fn mutation(media_now: MediaSet) -> Before {
        Before(media_now)
    }

    /// The media remembered.
    #[must_use]
    pub const fn media(&self) -> MediaSet {
        self.0
    }

    /// Says that the mutation did not happen, so there is nothing to publish.
    pub fn discard(self) {
        self.spend();
    }

    pub(crate) fn spend(self) -> MediaSet {
        let media = self.0;
        std::mem::forget(self);
        media
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        debug_assert!(
            std::thread::panicking(),
            "a `Before` was dropped: publish the mutation it stands for, or call `discard`"
        );
    }
}

/// What came of a call to the publisher. Ignoring it is fine: whatever it says is in the counters too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Queued; the events will be published, or counted as evicted, failed or abandoned.
    Accepted {
        /// Events in the call, 1 or 2.
        events: u8,
    },
    /// There was nothing to say: an empty media set, or no difference.
    Nothing,
    /// Held back and counted in `skipped_keyless_events`: the key is empty, or keys are switched off.
    Suppressed {
        /// Events held back, 1 or 2.
        events: u8,
    },
    /// Not taken, counted in `refused_events`.
    Refused(Refusal),
    /// The publisher is disabled, or built without the feature `zmq`.
    Disabled,
}

impl Outcome {
    /// Whether the events were queued.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        matches!(self, Outcome::Accepted { .. })
    }
}

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The publisher is stopping or has stopped.
    Stopped,
    /// The sender thread died; [`Publisher::status`](crate::Publisher::status) says of what.
    SenderDead,
    /// An event of the call would be larger than `kv_events_max_event_bytes`. Nothing is truncated.
    TooLarge {
        /// Encoded size of the event, bytes.
        bytes: usize,
        /// The setting.
        max_event_bytes: usize,
    },
    /// This is a forked child; the publisher is its parent's. Start one after the fork.
    Forked,
    /// A name is not UTF-8 (only possible through the C ABI; `&str` always is).
    NotUtf8,
    /// There is no memory for a buffer, or more calls are under way at once than there can be buffers for (several thousand).
    OutOfMemory,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Stopped => f.write_str("the publisher has been stopped"),
            Refusal::SenderDead => f.write_str("the sender thread is dead; its status says why"),
            Refusal::TooLarge { bytes, max_event_bytes } => write!(
                f,
                "an event of {bytes} bytes is above kv_events_max_event_bytes={max_event_bytes}; shorten key, group, \
                 session or tenant, or raise it"
            ),
            Refusal::Forked => {
                f.write_str("the publisher belongs to the process that was forked; start one of its own in the child")
            }
            Refusal::NotUtf8 => f.write_str("a name is not UTF-8"),
            Refusal::OutOfMemory => f.write_str("there is no memory for the event's buffer"),
        }
    }
}

impl std::error::Error for Refusal {}

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

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "`Before` was dropped")]
    fn a_forgotten_before_is_noticed_in_debug_builds() {
        let _ = Some(Before::mutation(MediaSet::CPU));
    }

    #[test]
    fn a_discarded_before_is_silent() {
        Before::mutation(MediaSet::CPU).discard();
    }
}
