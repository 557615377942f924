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
//! Ids that jump *ahead* while the numbers are in order can't come from one incarnation of a dense stream. If this incarnation has
//! shown its ids to run on across messages, it is a restart; if it has not, the producer's ids are not dense after
//! all, and are not used from then on.
//!
//! # What no tracker can see
//!
//! A publisher that was restarted while the subscriber was away, and whose numbers and ids have passed the last ones
//! seen (engines give no ids: whose numbers have), looks like a gap, or even like order. A router that lost its
//! connection for long enough for that should resync whatever the tracker says. Loss behind the last message that
//! arrived shows only when the next one comes; the publisher's heartbeat bounds how long that takes.

mod history;
mod ids;
mod observed;
mod rules;
mod topics;
mod verdict;

pub use ids::{EventId, EventIds};
pub use observed::{Base, Observed};
pub use rules::Tracker;
pub use topics::{Numbering, Topics};
pub use verdict::{Counters, GapCause, Verdict};
