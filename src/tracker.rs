//! Tells loss, repetition and restart from order: a pure state machine over sequence numbers, one per source.
//!
//! A **source** is what numbers its messages for itself: one endpoint and topic. Sharing a tracker between two sources
//! gives endless false gaps. Feed it every message with a readable sequence number, in the order of arrival, *before*
//! the message is used; it answers with a [`Verdict`]. There is no clock, no I/O and no allocation on the word of the
//! input in here: a tracker holds the last 256 messages' numbers, timestamps and ids, and its counters.
//!
//! # The rules
//!
//! The first message starts the source. From then on, with `last` the last number taken:
//!
//! - **`last + 1`** is in order, **a higher number** reveals a gap, unless the event ids go back: then the publisher
//!   was restarted and has come just as far, or farther, while nobody listened.
//! - **`last` or lower** is a *restart* if the batch's timestamp is later than the last message's, or if its event ids
//!   went back: no message of this life can have this number and these ids. Otherwise it is a *duplicate*: a message
//!   that was seen, or one that was missed and comes late. A message that is known to have been seen, with this
//!   number, timestamp and ids, is a duplicate whatever the clock did since.
//!
//! Event ids bear witness only where they are dense (see [`EventIds`]). A repeated message has lower ids than the last
//! one, and so has a restarted publisher. What tells them apart is memory: the last 256 messages' timestamps and ids. A
//! repeated one has those it had, and one that was missed has ids between its neighbours'. A number before all of
//! these with ids below theirs counts as a restart, as taking a restart for a repetition would hide everything the new
//! publisher says until its numbers pass the old ones.
//!
//! Ids that jump *ahead* while the numbers are in order can't come from one life of a dense stream. If this life has
//! shown its ids to run on across messages, it is a restart; if it has not, the producer's ids are not dense after
//! all, and are no witness from then on.
//!
//! # What no tracker can see
//!
//! A publisher that was restarted while the subscriber was away, and whose numbers and ids have passed the last ones
//! seen (engines give no ids: whose numbers have), looks like a gap, or even like order. A router that lost its
//! connection for long enough for that should resync whatever the tracker says. Loss behind the last message that
//! arrived shows only when the next one comes; the publisher's heartbeat bounds how long that takes.

mod history;
mod ids;

use crate::decode::Timestamp;
use history::{Fit, History};
use ids::NextId;
pub use ids::{EventId, EventIds};

/// The number a publisher's first message has if nothing was lost before it.
///
/// Without it a tracker can't say how many messages came by before the first one it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Base {
    /// This number; see [`Base::MASTER`] and [`Base::ENGINE`].
    At(u64),
    /// By the first message's events: with event ids it is a master's, without an engine's; unknown if it has none.
    Auto,
    /// Unknown: nothing is said of what was missed before the first message.
    Unknown,
}

impl Base {
    /// Masters (this crate's publisher, and Mooncake's own) begin at 1.
    pub const MASTER: Base = Base::At(1);
    /// Engines (vLLM, SGLang and their like) begin at 0.
    pub const ENGINE: Base = Base::At(0);

    /// How many numbers lie between the base and `message`. None lie before a number below the base: the base is
    /// then a wrong guess, and 0 is still true.
    fn missed_before(self, message: &Observed) -> Option<u64> {
        let base = match (self, message.ids) {
            (Base::At(base), _) => base,
            (Base::Auto, EventIds::Dense { .. } | EventIds::Scattered) => 1,
            (Base::Auto, EventIds::Absent) => 0,
            (Base::Auto, EventIds::Empty | EventIds::Unreadable) | (Base::Unknown, _) => return None,
        };
        Some(message.sequence.saturating_sub(base))
    }
}

impl Default for Base {
    /// [`Base::MASTER`].
    fn default() -> Self {
        Base::MASTER
    }
}

/// What a tracker is told of one message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The sequence number, from the message's second frame.
    pub sequence: u64,
    /// The batch's timestamp; `None` if the payload could not be read.
    pub timestamp: Option<Timestamp>,
    /// The events' ids.
    pub ids: EventIds,
}

impl Observed {
    /// A message of which only the number is known: its payload could not be read. The number counts all the same.
    #[must_use]
    pub const fn unreadable(sequence: u64) -> Self {
        Observed { sequence, timestamp: None, ids: EventIds::Unreadable }
    }
}

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
    /// Another life of the publisher: all it said before is void, and its numbers begin anew.
    Restarted {
        /// The last number of the life before.
        previous: u64,
        /// How many numbers of the new life lie before this message; `None` if the base is unknown.
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
/// In one life, `last_sequence - first_sequence + 1 = messages + missed`.
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
    /// Number of the first message.
    pub first_sequence: Option<u64>,
    /// Number of the last message that was not a duplicate.
    pub last_sequence: Option<u64>,
}

/// Follows the numbers of one source. See the [module's text](self) for the rules.
///
/// ```
/// use kv_events::decode::Timestamp;
/// use kv_events::tracker::{Base, EventIds, GapCause, Observed, Tracker, Verdict};
///
/// let mut tracker = Tracker::new(Base::MASTER);
/// let mut see = |sequence, first| {
///     tracker.observe(&Observed {
///         sequence,
///         timestamp: Some(Timestamp::Int(1_764_460_800_000)),
///         ids: EventIds::Dense { first, count: 1 },
///     })
/// };
/// assert_eq!(see(1, 1), Verdict::Started { missed: Some(0) });
/// assert_eq!(see(2, 2), Verdict::InOrder);
/// assert_eq!(see(5, 3), Verdict::Gap { from: 3, to: 4, cause: GapCause::Evicted });
/// assert_eq!(see(2, 2), Verdict::Duplicate);
/// assert_eq!(see(6, 1), Verdict::Restarted { previous: 5, missed: Some(5) });
/// ```
#[derive(Clone, Debug)]
pub struct Tracker {
    base: Base,
    life: Option<Life>,
    counters: Counters,
}

/// What is known of the publisher's present life.
#[derive(Clone, Debug)]
struct Life {
    last: u64,
    /// Of the last message that had one.
    timestamp: Option<Timestamp>,
    next_id: NextId,
    /// The ids were seen to run on from one message to the next.
    ids_proven: bool,
    history: History,
}

impl Tracker {
    /// A tracker that has seen nothing.
    #[must_use]
    pub fn new(base: Base) -> Self {
        Tracker { base, life: None, counters: Counters::default() }
    }

    /// What this message says about those before it. Call it once for every message, in the order of arrival.
    pub fn observe(&mut self, message: &Observed) -> Verdict {
        let verdict = match &mut self.life {
            None => Verdict::Started { missed: self.base.missed_before(message) },
            Some(life) => match life.judge(message) {
                Judgement::Next => Verdict::InOrder,
                Judgement::Gap { from, to, cause } => Verdict::Gap { from, to, cause },
                Judgement::Old => Verdict::Duplicate,
                Judgement::OtherLife => {
                    Verdict::Restarted { previous: life.last, missed: self.base.missed_before(message) }
                }
            },
        };
        match (&mut self.life, verdict) {
            (_, Verdict::Duplicate) => {}
            (Some(life), Verdict::InOrder | Verdict::Gap { .. }) => life.take(message),
            (life, _) => *life = Some(Life::begin(message)),
        }
        self.counters.count(message.sequence, verdict);
        verdict
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

enum Judgement {
    Next,
    Gap { from: u64, to: u64, cause: GapCause },
    Old,
    OtherLife,
}

impl Life {
    fn begin(message: &Observed) -> Self {
        let mut history = History::default();
        history.push(*message);
        Life {
            last: message.sequence,
            timestamp: message.timestamp,
            next_id: NextId::Unknown.after(message.ids, false),
            ids_proven: false,
            history,
        }
    }

    fn judge(&mut self, message: &Observed) -> Judgement {
        let next_id = self.next_id;
        let first_id = message.ids.range().map(|(first, _)| first);
        let gone = match message.sequence.checked_sub(self.last) {
            None | Some(0) => return self.judge_old(message),
            Some(step) => step - 1,
        };
        if first_id.zip(next_id.floor()).is_some_and(|(first, floor)| first < floor) {
            return Judgement::OtherLife;
        }
        if gone == 0 {
            return match (first_id, next_id) {
                (Some(first), NextId::Exactly(next)) if first > next => {
                    if self.ids_proven {
                        return Judgement::OtherLife;
                    }
                    self.next_id = NextId::NoWitness;
                    Judgement::Next
                }
                _ => Judgement::Next,
            };
        }
        let cause = match (first_id, next_id) {
            (Some(first), NextId::Exactly(next) | NextId::AtLeast(next)) if first == next => GapCause::Evicted,
            (Some(_), NextId::Exactly(_)) => GapCause::Lost,
            _ => GapCause::Unknown,
        };
        // `last < last + 1 <= sequence - 1`, as at least one number is gone.
        Judgement::Gap { from: self.last + 1, to: message.sequence - 1, cause }
    }

    /// A number at or below the last one.
    fn judge_old(&self, message: &Observed) -> Judgement {
        let fit = self.history.fit(message, self.next_id.floor().is_some());
        let later = message.timestamp.zip(self.timestamp).is_some_and(|(new, last)| is_later(new, last));
        match fit {
            Fit::Repeated => Judgement::Old,
            Fit::Fits if !later => Judgement::Old,
            Fit::Fits | Fit::Foreign => Judgement::OtherLife,
        }
    }

    /// `message` is the last one now.
    fn take(&mut self, message: &Observed) {
        let in_order = message.sequence - self.last == 1;
        if let (Some((first, _)), NextId::Exactly(next)) = (message.ids.range(), self.next_id) {
            self.ids_proven |= in_order && first == next;
        }
        self.next_id = self.next_id.after(message.ids, !in_order);
        self.last = message.sequence;
        self.timestamp = message.timestamp.or(self.timestamp);
        self.history.push(*message);
    }
}

/// By value, also if one is an integer and the other a float: some producers write whole floats as integers.
fn is_later(new: Timestamp, last: Timestamp) -> bool {
    match (new, last) {
        // `as` saturates, and a float beyond where it does is on the right side all the same.
        (Timestamp::Int(new), Timestamp::Float(last)) => !last.is_nan() && new > last.floor() as i128,
        (Timestamp::Float(new), Timestamp::Int(last)) => !new.is_nan() && new.ceil() as i128 > last,
        _ => new > last,
    }
}

impl Counters {
    fn count(&mut self, sequence: u64, verdict: Verdict) {
        if verdict == Verdict::Duplicate {
            self.duplicates += 1;
            return;
        }
        self.messages += 1;
        self.first_sequence.get_or_insert(sequence);
        self.last_sequence = Some(sequence);
        match verdict {
            Verdict::Gap { cause, .. } => {
                let size = verdict.gap_size();
                self.gaps += 1;
                self.missed = self.missed.saturating_add(size);
                match cause {
                    GapCause::Evicted => self.missed_evicted = self.missed_evicted.saturating_add(size),
                    GapCause::Lost => self.missed_lost = self.missed_lost.saturating_add(size),
                    GapCause::Unknown => {}
                }
            }
            Verdict::Restarted { .. } => self.restarts += 1,
            Verdict::Started { .. } | Verdict::InOrder | Verdict::Duplicate => {}
        }
    }
}
