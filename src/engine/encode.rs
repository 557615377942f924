//! Events and batches, encoded.

use super::error::EncodeError;
use super::writer::Writer;
use super::{map, positional};
use crate::decode::{DecodeError, Event, Timestamp, check_structure};

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
