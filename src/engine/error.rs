//! Why an event cannot be encoded.

use std::fmt;

/// Why an event cannot be encoded: no decoder would read back what was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The positional form has no place for this field, or none that can be told apart: an envelope; `locality`,
    /// `ownership`, `source_kind`; a field that the decoder does not know; a cleared event's `medium` that is not one of the
    /// usual names, since another producer has `source_kind` in its place; a `cache_salt` or `session_id` beside a `lora_name`, or on a removed event; a sliding
    /// window without a `group_idx`, since the first number of the tail is always read as that. Use [`Form::Map`](super::Form::Map).
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
