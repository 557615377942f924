//! Tells loss, repetition and restart from order: a pure state machine over sequence numbers, one per source.
//!
//! A **source** is what numbers its messages for itself: with most producers one endpoint and topic, with some one
//! endpoint (see [`Numbering`]; [`Topics`] follows all topics of an endpoint and finds out which). Sharing a tracker
//! between two sources gives endless false gaps. Feed it every message with a readable sequence number, in the order of
//! arrival, *before* the message is used; it answers with a [`Verdict`]. Tell it with [`Tracker::reconnected`] when the
//! connection was lost and is there again. There is no clock, no I/O and no allocation on the word of the input in here:
//! a tracker holds the last 1024 messages' numbers, timestamps and ids (40 KiB once it has seen so many), and its
//! counters.
//!
//! # The rules
//!
//! The first message starts the source. From then on, with `last` the last number taken:
//!
//! - **`last + 1`** is in order, **a higher number** reveals a gap, unless the event ids go back: then the publisher
//!   was restarted and has come just as far, or farther, while nobody listened.
//! - **`last` or lower** is
//!   - a *duplicate* if that number is remembered with the same timestamp and ids,
//!   - a *restart* if it is remembered with others, if its batch's timestamp is later than the last message's, if its
//!     event ids went back, or if the connection was lost since the last message: a publisher that begins anew may have
//!     its clock behind, and withholding all it says would be worse than a snapshot too many,
//!   - else a *duplicate*: a message that was seen long ago, or one that was missed and comes late.
//!
//! Event ids are reliable only where they are dense (see [`EventIds`]). A repeated message has lower ids than the last
//! one, and so has a restarted publisher. What tells them apart is memory: a repeated one has the ids it had, and one
//! that was missed has ids between its neighbours'. A number before all that is remembered with ids below theirs counts
//! as a restart.
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
mod topics;
mod verdict;

use crate::decode::Timestamp;
use history::{History, Memory};
use ids::NextId;
pub use ids::{EventId, EventIds};
pub use topics::{Numbering, Topics};
pub use verdict::{Counters, GapCause, Verdict};

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
    /// The connection was lost since the last message that was no duplicate.
    reconnected: bool,
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
        Tracker { base, life: None, reconnected: false, counters: Counters::default() }
    }

    /// What this message says about those before it. Call it once for every message, in the order of arrival.
    pub fn observe(&mut self, message: &Observed) -> Verdict {
        self.observe_under(message, 0).verdict()
    }

    /// The connection was lost and is there again: what was sent meanwhile may be missing, and the next number tells.
    /// Call it before [`observe`](Tracker::observe) is given the first message of the new connection.
    ///
    /// Returns whether that is worth telling: before the first message there was nothing to lose.
    pub fn reconnected(&mut self) -> bool {
        self.reconnected = self.life.is_some();
        self.counters.reconnections += u64::from(self.reconnected);
        self.reconnected
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn last(&self) -> Option<u64> {
        self.life.as_ref().map(|life| life.last)
    }

    /// Likewise, where several topics share one tracker: a number that was seen under another topic was another message's.
    fn observe_under(&mut self, message: &Observed, topic: u32) -> Judgement {
        let missed = self.base.missed_before(message);
        let judgement = match &mut self.life {
            None => Judgement::New(Verdict::Started { missed }),
            Some(life) => life.judge(message, topic, self.reconnected, missed),
        };
        if let Judgement::New(verdict) = judgement {
            match (&mut self.life, verdict) {
                (Some(life), Verdict::InOrder | Verdict::Gap { .. }) => life.take(message, topic),
                (Some(life), _) => life.begin(message, topic),
                (none, _) => none.insert(Life::new(message.sequence)).begin(message, topic),
            }
            self.reconnected = false;
        }
        self.counters.count(message.sequence, judgement.verdict());
        judgement
    }
}

/// A verdict, and whether a duplicate is known to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// No duplicate.
    New(Verdict),
    /// This very message was seen.
    Repeated,
    /// An old number, and nothing says that it is a new life's.
    Old,
}

impl Judgement {
    fn verdict(self) -> Verdict {
        match self {
            Judgement::New(verdict) => verdict,
            Judgement::Repeated | Judgement::Old => Verdict::Duplicate,
        }
    }
}

impl Life {
    fn new(sequence: u64) -> Self {
        let history = History::default();
        Life { last: sequence, timestamp: None, next_id: NextId::Unknown, ids_proven: false, history }
    }

    /// Begins anew with `message`, in the memory that is there.
    fn begin(&mut self, message: &Observed, topic: u32) {
        self.last = message.sequence;
        self.timestamp = message.timestamp;
        self.next_id = NextId::Unknown.after(message.ids, false);
        self.ids_proven = false;
        self.history.clear();
        self.history.push(message, topic);
    }

    fn judge(&mut self, message: &Observed, topic: u32, reconnected: bool, missed: Option<u64>) -> Judgement {
        let restarted = Judgement::New(Verdict::Restarted { previous: self.last, missed });
        let next_id = self.next_id;
        let first_id = message.ids.range().map(|(first, _)| first);
        let gone = match message.sequence.checked_sub(self.last) {
            None | Some(0) => {
                let later = message.timestamp.zip(self.timestamp).is_some_and(|(new, last)| is_later(new, last));
                return match self.history.recall(message, topic, next_id.floor().is_some()) {
                    Memory::Same => Judgement::Repeated,
                    Memory::Unknown if !later && !reconnected => Judgement::Old,
                    Memory::Unknown | Memory::Other => restarted,
                };
            }
            Some(step) => step - 1,
        };
        if first_id.zip(next_id.floor()).is_some_and(|(first, floor)| first < floor) {
            return restarted;
        }
        if gone == 0 {
            return match (first_id, next_id) {
                (Some(first), NextId::Exactly(next)) if first > next => {
                    if self.ids_proven {
                        return restarted;
                    }
                    self.next_id = NextId::NoWitness;
                    Judgement::New(Verdict::InOrder)
                }
                _ => Judgement::New(Verdict::InOrder),
            };
        }
        let cause = match (first_id, next_id) {
            (Some(first), NextId::Exactly(next) | NextId::AtLeast(next)) if first == next => GapCause::Evicted,
            (Some(_), NextId::Exactly(_)) => GapCause::Lost,
            _ => GapCause::Unknown,
        };
        // `last < last + 1 <= sequence - 1`, as at least one number is gone.
        Judgement::New(Verdict::Gap { from: self.last + 1, to: message.sequence - 1, cause })
    }

    /// `message` is the last one now.
    fn take(&mut self, message: &Observed, topic: u32) {
        let in_order = message.sequence - self.last == 1;
        if let (Some((first, _)), NextId::Exactly(next)) = (message.ids.range(), self.next_id) {
            self.ids_proven |= in_order && first == next;
        }
        self.next_id = self.next_id.after(message.ids, !in_order);
        self.last = message.sequence;
        self.timestamp = message.timestamp.or(self.timestamp);
        self.history.push(message, topic);
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
