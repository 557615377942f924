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

/// What fits into a body without a buffer of its own: a body is four cache lines.
const INLINE: usize = 208;
/// Buffers beyond that grow in steps that fit what allocators hand out.
const SMALLEST: usize = 512;

/// A pooled buffer holding what the one or two events of a call do not have in common with all others: tenant, group and
/// key, each encoded.
///
/// It goes through two queues with every call, so it is two words, which move in registers, and one of them says what the
/// queues' ends want to know: nobody has to look into the body, which is never in the caches, while others wait.
#[derive(Debug)]
pub struct Frame {
    body: Box<Body>,
    size: Size,
}

/// The buffer is kept initialised over its whole length and `ends` says how much of it is in use, so that writing into
/// it is plain slice copies: no capacity checks, no `unsafe`.
#[derive(Debug)]
#[repr(align(64))]
struct Body {
    /// Where the tenant, the group and the key end.
    ends: [u32; 3],
    plan: Plan,
    inline: [u8; INLINE],
    /// Takes the place of `inline` if that is too short.
    spill: BytesMut,
}

const _: () = assert!(size_of::<Body>() == 256 && size_of::<Frame>() == 16);

/// From the low end: 32 bits of the events' bytes in a message, 31 of its own buffer's bytes, one that is set if there are
/// two events.
#[derive(Clone, Copy, Debug)]
struct Size(u64);

impl Size {
    const TWO: u64 = 1 << 63;

    fn new(bytes: usize, held: usize, two: bool) -> Self {
        debug_assert!(bytes >> 32 == 0 && held >> 31 == 0);
        Size(bytes as u64 | (held as u64) << 32 | if two { Self::TWO } else { 0 })
    }
}

impl Frame {
    /// A frame that is good for at least `bytes`.
    pub fn with_room(bytes: usize) -> Self {
        let mut body = Box::new(Body {
            ends: [0; 3],
            plan: Plan { first: NONE, second: NONE },
            inline: [0; INLINE],
            spill: BytesMut::new(),
        });
        if bytes > INLINE {
            body.grow(bytes);
        }
        Frame { size: Size::new(0, body.held(), false), body }
    }

    /// Makes room for `bytes`, which allocates if the buffer is smaller, and hands it out to be written.
    #[inline]
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if bytes <= INLINE {
            return &mut self.body.inline[..bytes];
        }
        if self.body.spill.len() < bytes {
            self.body.grow(bytes);
        }
        &mut self.body.spill[..bytes]
    }

    /// Says what has been written: where tenant, group and key end, and how long the events of `plan` get.
    #[inline]
    pub(crate) fn set_written(&mut self, plan: Plan, ends: [usize; 3], bytes: usize) {
        debug_assert!(ends.is_sorted());
        self.body.ends = ends.map(|end| end as u32);
        self.body.plan = plan;
        self.size = Size::new(bytes, self.body.held(), plan.second != NONE);
    }

    /// The templates its events are made with.
    #[inline]
    pub(crate) fn plan(&self) -> Plan {
        self.body.plan
    }

    /// Tenant, group and key, encoded.
    #[inline]
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        let [tenant, group, key] = self.body.ends.map(|end| end as usize);
        let used = if key <= INLINE { &self.body.inline[..key] } else { &self.body.spill[..key] };
        [&used[..tenant], &used[tenant..group], &used[group..]]
    }
}

impl Body {
    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.spill = BytesMut::zeroed(bytes.max(SMALLEST).checked_next_power_of_two().unwrap_or(bytes));
    }

    /// Memory it holds on to beyond itself, bytes.
    fn held(&self) -> usize {
        self.spill.len()
    }
}

impl Call for Frame {
    #[inline]
    fn events(&self) -> u64 {
        1 + (self.size.0 >> 63)
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.size.0 as u32 as usize
    }

    #[inline]
    fn prefetch(&self) {
        prefetch(&self.body);
    }

    #[inline]
    fn footprint(&self) -> usize {
        ((self.size.0 & !Size::TWO) >> 32) as usize
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch(body: &Body) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let start = std::ptr::from_ref(body).cast::<i8>();
    for line in 0..size_of::<Body>() / 64 {
        // SAFETY: the address is inside `body`, and a prefetch reads nothing as far as the program can tell.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(line * 64)) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch(_: &Body) {}
