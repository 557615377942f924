//! What goes over the wire, as the publisher writes it.
//!
//! A message has three frames: an empty topic; the sequence, a big-endian `u64`; and the payload, one msgpack value
//! `[timestamp_ms, [event, ...], dp_rank]`. `message` puts a payload together, `encode` makes its events,
//! `template` what these have in common.

pub(crate) mod encode;
pub(crate) mod frame;
pub(crate) mod message;
mod plan;
mod template;
