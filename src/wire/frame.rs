//! One call's events, encoded, in a pooled buffer.
//!
//! The buffer is a `BytesMut` that only ever moves: from the pool to a caller, through the queue to the sender (or to whoever
//! evicts it), and back. It is never frozen, split or shared, so there is no handle that could keep it alive, nothing to
//! reclaim, and no release function that runs on some thread of ZeroMQ's: the sender copies its bytes, once, into the message
//! it hands over, and has the buffer back before the call to the socket is made. That copy costs less than what handing
//! the buffer over would (a control block for each message, and a buffer that stays out for as long as the slowest
//! subscriber), and a batch has to be put together from many buffers anyway.

use crate::config::SMALLEST_BUFFER;
use crate::lockfree::Call;
use bytes::BytesMut;

/// Where an event's `event_id` number stands, counted from the event's first byte.
pub(crate) const EVENT_ID_AT: usize = 13;
/// Where its `timestamp` number stands.
pub(crate) const TIMESTAMP_AT: usize = 32;
/// The length of what every event begins with: map header, `event_id`, `timestamp`.
pub(crate) const PREFIX_LEN: usize = 40;

/// A pooled buffer holding the one or two events of a call.
///
/// The buffer is kept initialised over its whole length and `len` says how much of it is in use, so that writing into
/// it is plain slice copies: no capacity checks, no `unsafe`.
#[derive(Debug)]
pub struct Frame {
    buffer: BytesMut,
    len: u32,
    /// Where the second event begins; 0 if there is none.
    second: u32,
}

impl Frame {
    /// A frame with a buffer of its own, good for at least `bytes`.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Frame { buffer: BytesMut::zeroed(room_for(bytes)), len: 0, second: 0 }
    }

    /// Makes room for `bytes`, which allocates if the buffer is smaller, and hands it out to be written.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() < bytes {
            *self = Frame::with_room(bytes);
        }
        &mut self.buffer[..bytes]
    }

    /// Says what has been written: `len` bytes, the second event beginning at `second` (0: there is one event).
    pub(crate) fn set_written(&mut self, len: usize, second: usize) {
        debug_assert!(len <= self.buffer.len() && second < len);
        self.len = len as u32;
        self.second = second as u32;
    }

    /// The encoded events.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.buffer[..self.len as usize]
    }

    /// Where each event begins.
    pub(crate) fn starts(&self) -> impl Iterator<Item = usize> {
        let second = self.second as usize;
        std::iter::once(0).chain((second > 0).then_some(second))
    }
}

impl Call for Frame {
    fn events(&self) -> u64 {
        1 + u64::from(self.second > 0)
    }

    fn bytes(&self) -> usize {
        self.len as usize
    }

    fn footprint(&self) -> usize {
        self.buffer.len()
    }
}

/// Buffers grow in steps that fit what allocators hand out.
fn room_for(bytes: usize) -> usize {
    bytes.max(SMALLEST_BUFFER).checked_next_power_of_two().unwrap_or(bytes)
}
