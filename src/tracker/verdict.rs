//! What a tracker answers, and what it counts.

/// What a message says about the messages before it.
///
/// These are all there are: a `match` needs no arm for the unknown, and should have none, as whoever keeps a view has to
/// know what each of them does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// The source's first message.
    Started {
        /// How many numbers lie before it; `None` if the base is unknown. A view built from here on lacks what they
        /// said.
        missed: Option<u64>,
    },
    /// The number after the last one.
    InOrder,
    /// Numbers `from` to `to`, both included, were missed. Whoever keeps a view can't trust it from here on.
    Gap {
        /// The first number missed.
        from: u64,
        /// The last number missed.
        to: u64,
        /// Who lost them.
        cause: GapCause,
    },
    /// A message that was seen, or one of a gap that comes too late. Using it would undo what later messages said.
    Duplicate,
    /// Another incarnation of the publisher: all it said before is void, and its numbers begin anew.
    Restarted {
        /// The last number of the incarnation before.
        previous: u64,
        /// How many numbers of the new incarnation lie before this message; `None` if the base is unknown.
        missed: Option<u64>,
    },
}

impl Verdict {
    /// How many numbers a gap has; 0 if this is none.
    #[must_use]
    pub const fn gap_size(self) -> u64 {
        match self {
            // Numbers behind one that was seen: there can't be 2^64 of them.
            Verdict::Gap { from, to, .. } => (to - from).saturating_add(1),
            _ => 0,
        }
    }
}

/// Who lost the messages of a gap, by the event ids around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapCause {
    /// The ids run on across the gap: the publisher lost events before it sent them (evicted from a full queue, or
    /// failed to send). Empty batches that were lost on the way look the same.
    Evicted,
    /// Ids are missing too: messages that were sent got lost on the way (a high-water mark, a broken connection).
    /// Evictions may be among them.
    Lost,
    /// There are no ids to judge by.
    Unknown,
}

impl GapCause {
    /// The cause's name in `kv-events tail --json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            GapCause::Evicted => "evicted",
            GapCause::Lost => "lost",
            GapCause::Unknown => "unknown",
        }
    }
}

/// What a tracker has counted since it was made. Restarts reset nothing.
///
/// In one incarnation, `last_sequence - first_sequence + 1 = messages + missed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counters {
    /// Messages, duplicates left out.
    pub messages: u64,
    /// Gaps.
    pub gaps: u64,
    /// Numbers in all gaps together. What was missed before the first message is not in it.
    pub missed: u64,
    /// Those of `missed` that lie in gaps with [`GapCause::Evicted`].
    pub missed_evicted: u64,
    /// Those of `missed` that lie in gaps with [`GapCause::Lost`].
    pub missed_lost: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Restarts.
    pub restarts: u64,
    /// How often the connection was lost and found again since the first message.
    pub reconnections: u64,
    /// Number of the first message.
    pub first_sequence: Option<u64>,
    /// Number of the last message that was not a duplicate.
    pub last_sequence: Option<u64>,
}

impl Counters {
    pub(super) fn count(&mut self, sequence: u64, verdict: Verdict) {
        if verdict == Verdict::Duplicate {
            self.duplicates += 1;
            return;
        }
        self.messages += 1;
        self.first_sequence.get_or_insert(sequence);
        self.last_sequence = Some(sequence);
        match verdict {
            Verdict::Gap { .. } => self.count_gap(verdict),
            Verdict::Restarted { .. } => self.restarts += 1,
            Verdict::Started { .. } | Verdict::InOrder | Verdict::Duplicate => {}
        }
    }

    /// What was found out behind the message that it lies before.
    pub(super) fn count_late(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Restarted { .. } => self.restarts += 1,
            _ => self.count_gap(verdict),
        }
    }

    fn count_gap(&mut self, verdict: Verdict) {
        let Verdict::Gap { cause, .. } = verdict else { return };
        let size = verdict.gap_size();
        self.gaps += 1;
        self.missed = self.missed.saturating_add(size);
        match cause {
            GapCause::Evicted => self.missed_evicted = self.missed_evicted.saturating_add(size),
            GapCause::Lost => self.missed_lost = self.missed_lost.saturating_add(size),
            GapCause::Unknown => {}
        }
    }
}
