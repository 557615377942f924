//! Batches that own their bytes.

use std::fmt;

use bytes::Bytes;

use super::batch::{Batch, BatchHead};
use super::error::DecodeError;

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

impl Batch<'_> {
    /// A batch of its own: a copy of the payload.
    #[must_use]
    pub fn into_owned(self) -> OwnedBatch {
        OwnedBatch::from(self)
    }
}
