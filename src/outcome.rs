//! What a call comes to.

use std::fmt;

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

    /// The number of events that were queued, 0 to 2, for callers that treat a refusal as an error.
    ///
    /// # Errors
    ///
    /// Why the call was refused. An outcome that queues nothing for a reason that the master knows (nothing to say, keys
    /// switched off, disabled) is no error.
    pub const fn into_result(self) -> Result<u8, Refusal> {
        match self {
            Outcome::Accepted { events } => Ok(events),
            Outcome::Nothing | Outcome::Suppressed { .. } | Outcome::Disabled => Ok(0),
            Outcome::Refused(refusal) => Err(refusal),
        }
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
    fn an_outcome_is_a_result() {
        assert_eq!(Outcome::Accepted { events: 2 }.into_result(), Ok(2));
        for nothing_queued in [Outcome::Nothing, Outcome::Suppressed { events: 1 }, Outcome::Disabled] {
            assert_eq!(nothing_queued.into_result(), Ok(0));
        }
        assert_eq!(Outcome::Refused(Refusal::Stopped).into_result(), Err(Refusal::Stopped));
    }
}
