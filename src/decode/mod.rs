//! Reads the KV-cache event streams of stores and engines, whatever their shape.
//!
//! A message has three frames: topic, sequence, payload. This module reads the payload (frame 3): a [`Batch`] of
//! [`Event`]s in msgpack. Events are maps or positional arrays, both may stand in one batch, and all known producers are
//! read: this crate's own publisher and other stores with the same envelope, and engines with theirs.
//!
//! ```
//! use kv_events::decode::{Batch, Event};
//!
//! // [1.5, [["BlockRemoved", [7, -1], "GPU"], ["Unheard-of"]], 0]
//! let payload = b"\x93\xcb\x3f\xf8\0\0\0\0\0\0\x92\x93\xacBlockRemoved\x92\x07\xff\xa3GPU\x91\xaaUnheard-of\x00";
//! let batch = Batch::parse(payload)?;
//! assert_eq!(batch.data_parallel_rank(), Some(0));
//! let mut events = batch.events();
//! let Some(Ok(Event::Removed(removed))) = events.next() else { panic!() };
//! let hashes: Vec<_> = removed.block_hashes.iter().filter_map(|hash| hash.low64()).collect();
//! assert_eq!(hashes, [7, u64::MAX]);
//! assert!(removed.medium.is_some_and(|medium| medium == "gpu"));
//! let bad = events.next().unwrap().unwrap_err(); // told in its place; its siblings are delivered
//! assert_eq!(bad.class().as_str(), "unknown_tag");
//! # Ok::<(), kv_events::decode::DecodeError>(())
//! ```
//!
//! # What can be relied on
//!
//! - **Structure before meaning.** [`Batch::parse`] walks the whole payload once. If it is not exactly one well-formed
//!   msgpack value, at most [`MAX_DEPTH`] containers deep, that is the payload's error and no event is delivered.
//! - **One bad event costs only itself.** [`Batch::events`] yields a `Result` for each.
//! - **Nothing is copied.** Text, hashes, token ids and extra keys borrow from the payload and are read as they are
//!   iterated over, with no allocation. [`OwnedBatch`] and [`OwnedEvent`](crate::engine::OwnedEvent) are one call away.
//! - **Nothing is believed.** No recursion on input, no memory reserved on the word of a length, no panic; work in
//!   proportion to the bytes.
//!
//! # Choices where producers disagree
//!
//! - Of a duplicate key the last value counts, but a bad value is an error wherever it stands.
//! - Keys that are not text belong to nobody and are skipped with their value.
//! - `type` and `event_type` are each enough; if both are there they must agree. A nil in either is a wrong type.
//! - An event's own `dp_rank` wins over the batch's ([`Batch::rank_of`]).
//! - A timestamp keeps its kind and is never converted ([`Timestamp`]).
//! - An event in a msgpack bin is unwrapped once; inside, the depth counts anew.
//! - Token ids with text among them are delivered as what they are ([`Stored::mixed_token_ids`]).
//! - A tag that is known to be another kind's ([`ForeignKind`]) is an error in its place like every unknown tag, and says
//!   so ([`EventError::foreign_kind`]): it is no damage.
//! - A map's keys that no event has are there raw ([`Event::other`]).
//! - In the tail of a positional event the first array, the first two integers and the first string count; what is
//!   behind them is ignored.
//!
//! With the feature `serde`, batches and events serialise to the JSON form that `kv-events decode` prints.

mod batch;
mod cursor;
mod error;
mod event;
mod fields;
mod frames;
mod hash;
mod ints;
mod item;
mod list;
mod map;
mod mm;
mod names;
mod other;
mod outline;
mod owned;
mod positional;
mod scalar;
#[cfg(feature = "serde")]
mod ser;
mod skim;
mod structure;
mod text;
mod tokens;
mod usual;
mod value;

pub use batch::{Batch, Events};
pub use error::{DecodeError, ErrorClass, EventError, ForeignKind};
pub use event::{Additions, Cleared, Envelope, Event, EventKind, Removed, Stored};
pub use frames::{FrameError, Frames};
pub use hash::BlockHash;
pub use list::{Element, List, ListIter};
pub use mm::{BlockMmInfos, MmInfo, MmObject};
pub use other::OtherFields;
pub use outline::{Outline, Outlines};
pub use owned::OwnedBatch;
pub use scalar::{CacheKind, MediumName, Timestamp};
pub use structure::MAX_DEPTH;
pub use tokens::{MixedTokenIds, Token, TokenIds, TokenIter};
pub use value::{ExtraKeys, Value};

/// Whether bytes are one well-formed value that a decoder takes.
pub(crate) fn check_structure(bytes: &[u8]) -> Result<(), DecodeError> {
    structure::check(bytes, 0)?;
    Ok(())
}

#[cfg(all(feature = "zmq", unix))]
pub(crate) use batch::BatchHead;
pub(crate) use event::ByPlace;
pub(crate) use list::Repr as ListRepr;
pub(crate) use tokens::Repr as TokenRepr;
