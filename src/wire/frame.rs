//! What is one call's own, encoded, in a pooled buffer.
//!
//! The buffer is a `BytesMut` that stays where it is: the frame around it lives in the pool's table, and what moves from a
//! caller to the sender is its number. It is never frozen or shared, so there is no handle that could keep it alive and no
//! release function that runs on some thread of ZeroMQ's: the sender copies its bytes, once, into the message it hands over,
//! and gives the frame back right after. That copy costs less than what handing the buffer over would (a control block for
//! each message, and a buffer that stays out for as long as the slowest subscriber), and a message has to be put together
//! from many buffers anyway.

use super::plan::Plan;
use crate::config::SMALLEST_BUFFER;
use crate::lockfree::{Call, RUN, prefetch};
use bytes::{Buf, Bytes, BytesMut};

/// Where an event's `event_id` number stands, counted from the event's first byte.
pub(crate) const EVENT_ID_AT: usize = 13;
/// Where its `timestamp` number stands.
pub(crate) const TIMESTAMP_AT: usize = 32;
/// The length of what every event begins with: map header, `event_id`, `timestamp`.
pub(crate) const PREFIX_LEN: usize = 40;

/// Buffers of a run are as long as the call needs that they are made for, up to this.
const LARGEST_IN_RUN: usize = 1024;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A pooled buffer holding what the one or two events of a call do not have in common with all others: tenant, group, key
/// and perhaps a session, each encoded.
///
/// The buffer is kept initialised over its whole length, so that writing into it is plain slice copies: no capacity checks,
/// no `unsafe`. All that the ends of the queue want to know is beside the buffer's handle, on the frame's one cache line.
/// The buffers of a run are parts of one allocation.
#[derive(Debug)]
pub struct Frame {
    buffer: BytesMut,
    /// Where tenant, group, key and session end.
    ends: [u32; 4],
    /// Bytes of the events in the message.
    bytes: u32,
    plan: Plan,
}

/// With the link beside it, a line.
const _: () = assert!(size_of::<Frame>() <= LINE - 8);

impl Frame {
    fn new(buffer: BytesMut) -> Self {
        Frame { buffer, ends: [0; 4], bytes: 0, plan: Plan::NOTHING }
    }

    /// A frame of its own that is good for at least `bytes`; `None` if there is no memory. For benches and tests.
    pub fn with_room(bytes: usize) -> Option<Self> {
        Some(Frame::new(zeroed(buffer_len(bytes))?))
    }

    /// Makes room for `bytes`, which allocates if the buffer is smaller, and hands it out to be written; `None` if there is no
    /// memory.
    #[inline]
    pub(crate) fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if self.buffer.len() < bytes {
            self.grow(bytes)?;
        }
        Some(&mut self.buffer[..bytes])
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Option<()> {
        self.buffer = zeroed(buffer_len(bytes))?;
        Some(())
    }

    /// Says what has been written: where tenant, group, key and session end, and how long the events of `plan` get.
    #[inline]
    pub(crate) fn set_written(&mut self, plan: Plan, ends: [usize; 4], bytes: usize) {
        debug_assert!(ends.is_sorted());
        self.ends = ends.map(|end| end as u32);
        self.bytes = bytes as u32;
        self.plan = plan;
    }

    /// The templates its events are made with.
    #[inline]
    pub(crate) fn plan(&self) -> Plan {
        self.plan
    }

    /// Tenant, group, key and session, encoded; a session that there is not is empty.
    #[inline]
    pub(crate) fn parts(&self) -> [&[u8]; 4] {
        let [tenant, group, key, session] = self.ends.map(|end| end as usize);
        let used = &self.buffer[..session];
        [&used[..tenant], &used[tenant..group], &used[group..key], &used[key..]]
    }

    /// The lines that the last call used: the next one is seldom longer.
    fn used_lines(&self) -> impl Iterator<Item = *const u8> {
        let used = (self.ends[3] as usize).clamp(1, SMALLEST_BUFFER).min(self.buffer.len());
        self.buffer[..used].chunks(LINE).map(<[u8]>::as_ptr)
    }
}

fn buffer_len(bytes: usize) -> usize {
    bytes.max(SMALLEST_BUFFER).next_multiple_of(LINE)
}

/// A zeroed buffer that begins with a cache line; `None` if there is no memory.
fn zeroed(len: usize) -> Option<BytesMut> {
    let mut buffer = BytesMut::from(Bytes::from(crate::sync::zeroed::<u8>(len.checked_add(LINE)?)?));
    let before = buffer.as_ptr().align_offset(LINE);
    // Unlike a split, this allocates nothing.
    buffer.advance(before);
    buffer.truncate(len);
    Some(buffer)
}

impl Call for Frame {
    fn run(room: usize) -> Option<[Self; RUN]> {
        // A huge call is no reason for a huge run: its frame grows alone.
        let len = buffer_len(if room <= LARGEST_IN_RUN { room } else { 0 });
        // To split a buffer allocates a few dozen bytes, and ends the process if it cannot. So as much is put by, and given
        // back just before.
        let put_by = crate::sync::zeroed::<u8>(2 * LINE)?;
        let mut all = zeroed(len.checked_mul(RUN)?)?;
        drop(put_by);
        Some(std::array::from_fn(|_| Frame::new(all.split_to(len))))
    }

    #[inline]
    fn events(&self) -> u64 {
        self.plan.events().into()
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.bytes as usize
    }

    #[inline]
    fn footprint(&self) -> usize {
        self.buffer.len()
    }

    fn trim(&mut self) {
        self.buffer = BytesMut::new();
        self.ends = [0; 4];
    }

    #[inline]
    fn prefetch(&self) {
        self.used_lines().for_each(prefetch::read);
    }

    #[inline]
    fn prefetch_for_writing(&self) {
        self.used_lines().for_each(prefetch::write);
    }
}
