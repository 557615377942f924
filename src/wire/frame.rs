//! What is one call's own, encoded, in a pooled buffer.

use super::encode::{NONE, Plan};
use crate::lockfree::Call;
use bytes::BytesMut;

/// Where an event's `event_id` number stands, counted from the event's first byte.
pub(crate) const EVENT_ID_AT: usize = 13;
/// Where its `timestamp` number stands.
pub(crate) const TIMESTAMP_AT: usize = 32;
/// The length of what every event begins with: map header, `event_id`, `timestamp`.
pub(crate) const PREFIX_LEN: usize = 40;

/// Buffers grow in steps that fit what allocators hand out.
const SMALLEST: usize = 256;

/// A pooled buffer holding what the one or two events of a call do not have in common with all others: tenant, group and
/// key, each encoded.
///
/// The buffer is kept initialised over its whole length and `ends` says how much of it is in use, so that writing into
/// it is plain slice copies: no capacity checks, no `unsafe`.
#[derive(Debug)]
pub struct Frame {
    buffer: BytesMut,
    /// Where the tenant, the group and the key end.
    ends: [u32; 3],
    /// What the events are long in a message.
    bytes: u32,
    plan: Plan,
}

impl Frame {
    /// A frame with a buffer of its own, good for at least `bytes`.
    pub fn with_room(bytes: usize) -> Self {
        Frame {
            buffer: BytesMut::zeroed(room_for(bytes)),
            ends: [0; 3],
            bytes: 0,
            plan: Plan { first: NONE, second: NONE },
        }
    }

    /// Makes room for `bytes`, which allocates if the buffer is smaller, and hands it out to be written.
    #[inline]
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() < bytes {
            self.grow(bytes);
        }
        &mut self.buffer[..bytes]
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        *self = Frame::with_room(bytes);
    }

    /// Says what has been written: where tenant, group and key end, and how long the events of `plan` get.
    #[inline]
    pub(crate) fn set_written(&mut self, plan: Plan, ends: [usize; 3], bytes: usize) {
        debug_assert!(ends.is_sorted() && ends[2] <= self.buffer.len());
        self.ends = ends.map(|end| end as u32);
        self.bytes = bytes as u32;
        self.plan = plan;
    }

    /// The templates its events are made with.
    #[inline]
    pub(crate) fn plan(&self) -> Plan {
        self.plan
    }

    /// Tenant, group and key, encoded.
    #[inline]
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        let [tenant, group, key] = self.ends.map(|end| end as usize);
        let used = &self.buffer[..key];
        [&used[..tenant], &used[tenant..group], &used[group..]]
    }
}

impl Call for Frame {
    #[inline]
    fn events(&self) -> u64 {
        1 + u64::from(self.plan.second != NONE)
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.bytes as usize
    }

    #[inline]
    fn footprint(&self) -> usize {
        self.buffer.len()
    }
}

fn room_for(bytes: usize) -> usize {
    bytes.max(SMALLEST).checked_next_power_of_two().unwrap_or(bytes)
}
