//! Encodes engine events, in every form that [`decode`](crate::decode) reads.
//!
//! For engines written in Rust, and for tests that need what an engine sends. The types are the decoder's: build an
//! [`Event`], or hand on one that was decoded. Each hash is then written as it came: an integer of either sign, or bytes.
//! The typed decoders of vLLM and SGLang read what is written, as far as their events can say it.
//!
//! ```
//! use kv_events::decode::{Batch, BlockHash, Event, Stored, Timestamp};
//! use kv_events::engine::{Form, encode_batch};
//!
//! let hashes = [BlockHash::Int(1), BlockHash::Bytes(b"\x01\x02\x03")];
//! let mut stored = Stored::new(&hashes);
//! stored.token_ids = Some((&[11, 12, 13, 14]).into());
//! stored.block_size = Some(2);
//! stored.medium = Some("GPU".into());
//!
//! let mut payload = Vec::new();
//! let events = [Event::Stored(stored)];
//! encode_batch(Timestamp::Float(1.5), &events, Some(0), Form::Positional, &mut payload)?;
//! assert_eq!(Batch::parse(&payload)?.events().next(), Some(Ok(events[0])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod map;
mod positional;
mod writer;

use std::fmt;

use crate::decode::{DecodeError, Event, Timestamp, check_structure};
use writer::Writer;

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A map by field name. Says everything; optional fields that are not set are left out, but for those that the
    /// decoders of vLLM and SGLang require, which are nil then: of a stored event `parent_block_hash`, `lora_id`, `medium`
    /// and `lora_name`, of a removed one `medium`. (Of a store's events, which carry an envelope, nobody requires these.)
    Map,
    /// An array by position, nil in every place that is not set, cut behind the last one that is, but not in front of what
    /// those decoders require: a stored event has at least 8 elements, a removed one 3. There is no place for
    /// `block_mm_infos` unless they are set. Cannot say everything: see [`EncodeError::NotPositional`].
    Positional,
}

/// Why an event cannot be encoded: no decoder would read back what was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The positional form has no place for this field, or none that can be told apart: an envelope; `locality`,
    /// `ownership`, `source_kind`; a field that the decoder does not know; a cleared event's `medium` that is not one of the
    /// usual names, since another producer has `source_kind` in its place; a `cache_salt` or `session_id` beside a `lora_name`, or on a removed event; a sliding
    /// window without a `group_idx`, since the first number of the tail is always read as that. Use [`Form::Map`].
    NotPositional(&'static str),
    /// A hash of zero bytes.
    EmptyHash,
    /// Text, bytes or a list of more than `u32::MAX` bytes or elements.
    TooLong,
    /// An integer below `i64::MIN` or above `u64::MAX`.
    IntegerRange,
    /// A timestamp that is not finite.
    NotFinite,
    /// Values in `extra_keys` are nested so deep that no decoder would take the batch.
    TooDeep,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::NotPositional(field) => {
                write!(f, "the positional form cannot say `{field}` here; use the map form")
            }
            EncodeError::EmptyHash => f.write_str("a hash of zero bytes; give it at least one"),
            EncodeError::TooLong => f.write_str("more than 4294967295 bytes or elements do not fit into msgpack"),
            EncodeError::IntegerRange => f.write_str("an integer beyond 64 bits does not fit into msgpack"),
            EncodeError::NotFinite => f.write_str("a timestamp must be finite"),
            EncodeError::TooDeep => f.write_str("`extra_keys` are nested too deep for a decoder to take"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Appends one event to `out`.
///
/// # Errors
///
/// As [`EncodeError`] says; `out` is then as it was.
pub fn encode_event(event: &Event<'_>, form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    append(out, |writer| write_event(writer, event, form))
}

/// Appends a batch to `out`, ready to be frame 3 of a message: `[timestamp, events]`, with a rank
/// `[timestamp, events, rank]`.
///
/// # Errors
///
/// As [`EncodeError`] says; `out` is then as it was.
pub fn encode_batch(
    timestamp: Timestamp,
    events: &[Event<'_>],
    rank: Option<i128>,
    form: Form,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    append(out, |writer| {
        writer.array(if rank.is_some() { 3 } else { 2 })?;
        writer.timestamp(timestamp)?;
        writer.array(events.len())?;
        events.iter().try_for_each(|event| write_event(writer, event, form))?;
        rank.map_or(Ok(()), |rank| writer.integer(rank))
    })
}

fn write_event(writer: &mut Writer, event: &Event<'_>, form: Form) -> Result<(), EncodeError> {
    match form {
        Form::Map => map::write(writer, event),
        Form::Positional => positional::write(writer, event),
    }
}

fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
    let start = out.len();
    let mut writer = Writer::new(std::mem::take(out));
    let written = write(&mut writer);
    *out = writer.into_vec();
    let checked = written.and_then(|()| check_structure(&out[start..]).map_err(|_: DecodeError| EncodeError::TooDeep));
    if checked.is_err() {
        out.truncate(start);
    }
    checked
}
