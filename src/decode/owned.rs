//! Batches and events that own their bytes.

use std::fmt;

use bytes::Bytes;

use super::batch::{Batch, BatchHead};
use super::error::DecodeError;
use super::event::{ByPlace, Cleared, Event};
use crate::engine;

/// A batch that owns its payload: to be queued, kept or sent to another thread.
///
/// It holds the bytes, not structs made of them, so it is never larger than what came, and [`batch`](OwnedBatch::batch)
/// gives the borrowed form for nothing. Cloning shares the bytes.
#[derive(Clone)]
pub struct OwnedBatch {
    payload: Bytes,
    head: BatchHead,
}

impl OwnedBatch {
    /// Reads frame 3 of a message, as [`Batch::parse`] does. No copy is made of what is [`Bytes`] or a [`Vec`] already.
    ///
    /// # Errors
    ///
    /// As [`Batch::parse`].
    pub fn parse(payload: impl Into<Bytes>) -> Result<OwnedBatch, DecodeError> {
        let payload = payload.into();
        let head = Batch::parse(&payload)?.head;
        Ok(OwnedBatch { payload, head })
    }

    /// The borrowed form. Nothing is checked or read again.
    pub fn batch(&self) -> Batch<'_> {
        Batch { payload: &self.payload, head: self.head }
    }

    /// The payload.
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }
}

impl From<Batch<'_>> for OwnedBatch {
    fn from(batch: Batch<'_>) -> Self {
        OwnedBatch { payload: Bytes::copy_from_slice(batch.payload), head: batch.head }
    }
}

impl fmt::Debug for OwnedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.batch().fmt(f)
    }
}

/// An event that owns its bytes: the event in map form, about as large as it was on the wire.
#[derive(Clone)]
pub struct OwnedEvent {
    encoded: Box<[u8]>,
    /// Of a cleared event that came in positional form, which the map does not tell.
    by_place: ByPlace,
}

impl OwnedEvent {
    /// The borrowed form. Reads the event again, so keep what it returns where you need it more than once.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        match Event::parse(&self.encoded) {
            Ok(Event::Cleared(cleared)) => Event::Cleared(Cleared { by_place: self.by_place, ..cleared }),
            Ok(event) => event,
            Err(error) => unreachable!("an event that was encoded by this crate does not decode: {error}"),
        }
    }

    /// The event in map form, as an engine would send it.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.encoded
    }
}

impl Event<'_> {
    /// An event of its own. Lists are copied as they are, so the memory taken is in proportion to the event's bytes.
    ///
    /// # Panics
    ///
    /// An event that was decoded never panics. One built by hand does if no decoder could read it
    /// (see [`EncodeError`](engine::EncodeError)).
    #[must_use]
    pub fn into_owned(self) -> OwnedEvent {
        let by_place = match &self {
            Event::Cleared(cleared) => cleared.by_place,
            _ => ByPlace::default(),
        };
        let mut encoded = Vec::new();
        match engine::encode_event(&self, engine::Form::Map, &mut encoded) {
            Ok(()) => OwnedEvent { encoded: encoded.into_boxed_slice(), by_place },
            Err(error) => panic!("an event built by hand cannot be encoded: {error}"),
        }
    }
}

/// Equal if the events are.
impl PartialEq for OwnedEvent {
    fn eq(&self, other: &Self) -> bool {
        self.event() == other.event()
    }
}

impl fmt::Debug for OwnedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event().fmt(f)
    }
}
