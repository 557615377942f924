//! The rules: what a number says, given those before it.

use super::history::{History, Memory};
use super::ids::NextId;
use super::observed::{Base, Observed};
use super::verdict::{Counters, GapCause, Verdict};
use crate::decode::Timestamp;

/// Follows the numbers of one source. See the [module's text](super) for the rules.
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
    incarnation: Option<Incarnation>,
    /// The connection was lost since the last message that was no duplicate.
    pub(super) reconnected: bool,
    counters: Counters,
}

/// What is known of the publisher's present incarnation.
#[derive(Clone, Debug)]
struct Incarnation {
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
        Tracker { base, incarnation: None, reconnected: false, counters: Counters::default() }
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
        self.reconnected = self.incarnation.is_some();
        self.counters.reconnections += u64::from(self.reconnected);
        self.reconnected
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.incarnation.as_ref().map(|incarnation| incarnation.last)
    }

    /// Likewise, where several topics share one tracker: a number that was seen under another topic was another message's.
    pub(super) fn observe_under(&mut self, message: &Observed, topic: u32) -> Judgement {
        let missed = self.base.missed_before(message);
        let judgement = match &mut self.incarnation {
            None => Judgement::New(Verdict::Started { missed }),
            Some(incarnation) => incarnation.judge(message, topic, self.reconnected, missed),
        };
        if let Judgement::New(verdict) = judgement {
            match (&mut self.incarnation, verdict) {
                (Some(incarnation), Verdict::InOrder | Verdict::Gap { .. }) => incarnation.take(message, topic),
                (Some(incarnation), _) => incarnation.begin(message, topic),
                (none, _) => none.insert(Incarnation::new(message.sequence)).begin(message, topic),
            }
            self.reconnected = false;
        }
        self.counters.count(message.sequence, judgement.verdict());
        judgement
    }
}

/// A verdict, and whether a duplicate is known to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// No duplicate.
    New(Verdict),
    /// This very message was seen.
    Repeated,
    /// An old number, and nothing says that it is a new incarnation's.
    Old,
}

impl Judgement {
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Judgement::New(verdict) => verdict,
            Judgement::Repeated | Judgement::Old => Verdict::Duplicate,
        }
    }
}

impl Incarnation {
    fn new(sequence: u64) -> Self {
        let history = History::default();
        Incarnation { last: sequence, timestamp: None, next_id: NextId::Unknown, ids_proven: false, history }
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
