//! What a tracker is given: the number that publishers begin at, and each message.

use super::ids::EventIds;
use crate::decode::Timestamp;

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
    pub(super) fn missed_before(self, message: &Observed) -> Option<u64> {
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
    /// [`Base::Auto`], as in the settings of a subscriber.
    fn default() -> Self {
        Base::Auto
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
