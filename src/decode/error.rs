//! What can be wrong with a payload or an event, by stable names.

use std::fmt;

/// The kind of fault, with a name that does not change between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The tag is text, but no event is called so.
    UnknownTag,
    /// The event does not say what it is: an empty array, or a map without `type` and `event_type`.
    MissingTag,
    /// A field that the event must have is not there.
    MissingField,
    /// A value has a type (or an integer a size) that its place does not take.
    WrongType,
    /// A hash of zero bytes.
    BadHash,
    /// `type` and `event_type` contradict each other.
    Conflict,
    /// The bytes end before the value does; also a declared length that the rest could never hold.
    Truncated,
    /// Bytes follow the value.
    TrailingBytes,
    /// No bytes at all.
    Empty,
    /// More than [`MAX_DEPTH`](super::MAX_DEPTH) containers inside one another.
    DepthLimit,
    /// The byte `c1`, which msgpack never uses.
    InvalidMsgpack,
    /// A text field that is not UTF-8.
    InvalidUtf8,
}

impl ErrorClass {
    /// The stable name, as in the JSON form (`wrong_type`, `truncated` ...).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorClass::UnknownTag => "unknown_tag",
            ErrorClass::MissingTag => "missing_tag",
            ErrorClass::MissingField => "missing_field",
            ErrorClass::WrongType => "wrong_type",
            ErrorClass::BadHash => "bad_hash",
            ErrorClass::Conflict => "conflict",
            ErrorClass::Truncated => "truncated",
            ErrorClass::TrailingBytes => "trailing_bytes",
            ErrorClass::Empty => "empty",
            ErrorClass::DepthLimit => "depth_limit",
            ErrorClass::InvalidMsgpack => "invalid_msgpack",
            ErrorClass::InvalidUtf8 => "invalid_utf8",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            ErrorClass::UnknownTag => "the tag names no known event",
            ErrorClass::MissingTag => "neither `type` nor `event_type` says what the event is",
            ErrorClass::MissingField => "a required field is missing",
            ErrorClass::WrongType => "a value of the wrong type or size",
            ErrorClass::BadHash => "a hash of zero bytes",
            ErrorClass::Conflict => "`type` and `event_type` contradict each other",
            ErrorClass::Truncated => "the bytes end before the value does",
            ErrorClass::TrailingBytes => "bytes follow the value",
            ErrorClass::Empty => "there are no bytes",
            ErrorClass::DepthLimit => "more than 32 containers inside one another",
            ErrorClass::InvalidMsgpack => "the byte c1 is not msgpack",
            ErrorClass::InvalidUtf8 => "text that is not UTF-8",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Kinds of events that engines are known to send and that this crate does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForeignKind {
    /// `BlockInactive`.
    Inactive,
    /// `BlockTransferred`.
    Transferred,
    /// `BlockSnapshot`.
    Snapshot,
}

impl ForeignKind {
    const ALL: [ForeignKind; 3] = [ForeignKind::Inactive, ForeignKind::Transferred, ForeignKind::Snapshot];

    /// The tag on the wire.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            ForeignKind::Inactive => "BlockInactive",
            ForeignKind::Transferred => "BlockTransferred",
            ForeignKind::Snapshot => "BlockSnapshot",
        }
    }

    pub(super) fn from_tag(tag: &str) -> Option<ForeignKind> {
        ForeignKind::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// A fault and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) class: ErrorClass,
    pub(super) field: Option<&'static str>,
    pub(super) offset: usize,
    pub(super) foreign: Option<ForeignKind>,
}

impl Fault {
    pub(super) const fn at(class: ErrorClass, offset: usize) -> Fault {
        Fault { class, field: None, offset, foreign: None }
    }

    pub(super) const fn in_field(class: ErrorClass, field: &'static str, offset: usize) -> Fault {
        Fault { class, field: Some(field), offset, foreign: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.foreign {
            Some(foreign) => write!(f, "{}: `{}` is a kind of event that is not read here", self.class, foreign.tag())?,
            None => write!(f, "{}: {}", self.class, self.class.sentence())?,
        }
        if let Some(field) = self.field {
            write!(f, ", in `{field}`")?;
        }
        write!(f, ", at byte {}", self.offset)
    }
}

macro_rules! fault_error {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub(super) Fault);

        impl $name {
            /// The kind of fault.
            pub const fn class(&self) -> ErrorClass {
                self.0.class
            }

            /// The wire name of the field at fault, if the fault is in a field.
            pub const fn field(&self) -> Option<&'static str> {
                self.0.field
            }

            /// Where in the bytes given to the decoder: the offset of the offending value, or of the end for
            /// something that is missing.
            pub const fn offset(&self) -> usize {
                self.0.offset
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::error::Error for $name {}

        impl From<Fault> for $name {
            fn from(fault: Fault) -> Self {
                $name(fault)
            }
        }
    };
}

fault_error! {
    /// Why a whole payload could not be read: no event of it is delivered.
    DecodeError
}

fault_error! {
    /// Why one event could not be read. Its siblings are not affected.
    EventError
}

impl EventError {
    /// The event is none of this crate's, but of a kind that engines are known to send: it is not damaged, and nothing is
    /// lost that another event would have told. (The class is [`ErrorClass::UnknownTag`], as for every unknown tag.)
    #[must_use]
    pub const fn foreign_kind(&self) -> Option<ForeignKind> {
        self.0.foreign
    }
}
