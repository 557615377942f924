//! What is one call's own, encoded, in a pooled buffer.
//!
//! The buffer is a `BytesMut` that only ever moves: from the pool to a caller, through the queue to the sender (or to whoever
//! evicts it), and back. It is never frozen, split or shared, so there is no handle that could keep it alive, nothing to
//! reclaim, and no release function that runs on some thread of ZeroMQ's: the sender copies its bytes, once, into the message
//! it hands over, and has the buffer back right after. That copy costs less than what handing the buffer over would (a
//! control block for each message, and a buffer that stays out for as long as the slowest subscriber), and a message has to
//! be put together from many buffers anyway.

use super::encode::{NONE, Plan};
use crate::config::SMALLEST_BUFFER;
use crate::lockfree::Call;
use bytes::BytesMut;

/// Where an event's `event_id` number stands, counted from the event's first byte.
pub(crate) const EVENT_ID_AT: usize = 13;
/// Where its `timestamp` number stands.
pub(crate) const TIMESTAMP_AT: usize = 32;
/// The length of what every event begins with: map header, `event_id`, `timestamp`.
pub(crate) const PREFIX_LEN: usize = 40;

/// What a buffer begins with: where tenant, group and key end, as three little-endian `u32`, and the plan, as two bytes.
const HEADER: usize = 16;
/// What stands between the key and a session: the session's length, as a little-endian `u32`.
pub(crate) const SESSION_HEADER: usize = 4;

/// A pooled buffer holding what the one or two events of a call do not have in common with all others: tenant, group, key
/// and perhaps a session, each encoded.
///
/// The buffer is kept initialised over its whole length, so that writing into it is plain slice copies: no capacity checks,
/// no `unsafe`. `size` says what the queue's ends want to know, so that nobody has to look into the buffer, which is seldom
/// in the caches, while others wait. The buffer's handle is boxed, once for its life, because a frame moves through two
/// queues with every call: 16 bytes instead of 40 make slots of 24 instead of 48, and fewer cache lines to be fetched from
/// another processor (four producers on a full queue: 25 % off a call).
#[derive(Debug)]
pub struct Frame {
    buffer: Box<BytesMut>,
    size: Size,
}

const _: () = assert!(size_of::<Frame>() <= 16);

/// Bytes of the events in a message in the low 63 bits; the highest is set if there are two events.
#[derive(Clone, Copy, Debug)]
struct Size(u64);

impl Size {
    const TWO: u64 = 1 << 63;
}

impl Frame {
    /// A frame that is good for at least `bytes`.
    pub fn with_room(bytes: usize) -> Self {
        Frame { buffer: Box::new(buffer_for(bytes)), size: Size(0) }
    }

    /// Makes room for `bytes`, which allocates if the buffer is smaller, and hands it out to be written.
    #[inline]
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() < HEADER + bytes {
            *self.buffer = buffer_for(bytes);
        }
        &mut self.buffer[HEADER..HEADER + bytes]
    }

    /// Says what has been written: where tenant, group and key end, and how long the events of `plan` get.
    #[inline]
    pub(crate) fn set_written(&mut self, plan: Plan, ends: [usize; 3], bytes: usize) {
        debug_assert!(ends.is_sorted());
        let mut header = [0; HEADER];
        for (place, end) in header.chunks_exact_mut(4).zip(ends) {
            place.copy_from_slice(&(end as u32).to_le_bytes());
        }
        header[12] = plan.first;
        header[13] = plan.second;
        self.buffer[..HEADER].copy_from_slice(&header);
        self.size = Size(bytes as u64 | if plan.second != NONE { Size::TWO } else { 0 });
    }

    /// The templates its events are made with.
    #[inline]
    pub(crate) fn plan(&self) -> Plan {
        Plan { first: self.buffer[12], second: self.buffer[13] }
    }

    /// Tenant, group and key, encoded.
    #[inline]
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        let [tenant, group, key] = [0, 4, 8].map(|at| self.number(at));
        let used = &self.buffer[HEADER..HEADER + key];
        [&used[..tenant], &used[tenant..group], &used[group..]]
    }

    /// The session, encoded. Only a frame of which a template has a place for it holds one.
    #[inline]
    pub(crate) fn session(&self) -> &[u8] {
        let at = HEADER + self.number(8);
        let start = at + SESSION_HEADER;
        &self.buffer[start..start + self.number(at)]
    }

    /// The number at `at`.
    #[inline]
    fn number(&self, at: usize) -> usize {
        let place = self.buffer[at..].first_chunk().copied();
        place.map_or(0, u32::from_le_bytes) as usize
    }
}

#[cold]
fn buffer_for(bytes: usize) -> BytesMut {
    let bytes = bytes + HEADER;
    BytesMut::zeroed(bytes.max(SMALLEST_BUFFER).checked_next_power_of_two().unwrap_or(bytes))
}

impl Call for Frame {
    #[inline]
    fn events(&self) -> u64 {
        1 + (self.size.0 >> 63)
    }

    #[inline]
    fn bytes(&self) -> usize {
        (self.size.0 & !Size::TWO) as usize
    }

    #[inline]
    fn prefetch(&self) {
        prefetch_line(&raw const *self.buffer);
    }

    #[inline]
    fn prefetch_bytes(&self) {
        for line in self.buffer[..self.buffer.len().min(SMALLEST_BUFFER)].chunks(64) {
            prefetch_line(line.as_ptr());
        }
    }

    #[inline]
    fn footprint(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line<T>(place: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing as far as the program can tell, and cannot fail. It took the sender's time for an event
    // of a full queue from 87 to 61 ns.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch_line<T>(_: *const T) {}
