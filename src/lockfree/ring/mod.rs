//! The queue: a ring whose positions are the numbers of events, so that what was lost is a subtraction.
//!
//! A call of k events claims k positions by one addition to `tail`, and writes one word, which names its frame, into the slot
//! of the first. Whatever leaves, taken by the sender or evicted, leaves by one exchange of `head`. Batches and evictions
//! tile the positions; what lies between two batches was evicted.
//!
//! A word carries the *lap* of its position, that is how often the ring was gone round. Laps of a slot only rise, so a word
//! is there once. A word of the position's own lap is written; an older one means that its claimer has not come yet.
//!
//! - **Nobody waits.** An evictor that finds the oldest position unwritten marks it as skipped; its claimer will find that and
//!   take its frame back. The sender ends its batch at an unwritten position and looks again later.
//! - **A word stays until `head` has passed it**: the slot's next claimer has seen `head` beyond it before it writes. So an
//!   exchange of `head` away from p is made on words that hold, and whoever wins it owns the frames that they name.
//! - **The youngest position is never skipped or evicted**: either needs a later one. So it arrives, and shows every loss.
//! - **Closing** is one bit of `tail`: what lies below is accepted, later claims are refused. **Ending** is one bit of `head`:
//!   nothing moves it any more, and what lies between the two is abandoned.

mod push;
mod take;

use super::frames::Held;
use crate::faults::{fault, weaken};
use crate::sync::{AtomicU64, Counter, Gauge, Mutex, Ordering, zeroed};
use crossbeam_utils::CachePadded;

/// In `tail`: claims are refused.
const CLOSED: u64 = 1 << 63;
/// In `head`: nothing is taken or evicted any more.
const ENDED: u64 = 1 << 63;
/// No position.
const OPEN: u64 = u64::MAX;

/// Calls whose frames an evictor removes by one exchange at most.
pub const CHUNK: usize = 16;

/// A smaller ring would be gone round so often that laps could outgrow their bits within years.
#[cfg(not(kv_events_loom))]
const LEAST_SLOTS: usize = 64;
#[cfg(kv_events_loom)]
const LEAST_SLOTS: usize = 2;

/// What the low bits of a word say.
const ONE: u64 = 1;
const TWO: u64 = 2;
const SKIPPED: u64 = 3;
const KIND: u64 = 3;
/// The call is not [light](Limits::light), or its frame is above the pool's limit.
const HEAVY: u64 = 4;
const FLAG_BITS: u32 = 3;

/// How much one batch may carry.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events, at least 2.
    pub events: u64,
    /// Bytes, looked at after each call, so exceeded by one call at most.
    pub bytes: usize,
}

impl Limits {
    /// Calls of no more than so many bytes cannot exceed the limit together; others are looked at one by one.
    pub fn light(&self) -> usize {
        usize::try_from(self.bytes as u64 / self.events).unwrap_or(usize::MAX)
    }
}

/// A bounded queue of frames that evicts its oldest when full and knows, to the event, how many were lost where.
#[derive(Debug)]
pub struct Ring {
    tail: CachePadded<Tail>,
    /// The oldest position that is still there, and [`ENDED`].
    head: CachePadded<AtomicU64>,
    /// Events that the sender took, or is about to take: never less than what `head` has of it. Not modelled: a figure.
    taken: CachePadded<Gauge>,
    slots: Box<[AtomicU64]>,
    capacity: u64,
    burst: usize,
    index_bits: u32,
    /// `tail` when it was closed; [`OPEN`] before.
    end: AtomicU64,
    closing: Mutex<()>,
    /// Positions that an evictor had to skip because their claimer had not come.
    skipped: Counter,
}

#[derive(Debug)]
struct Tail {
    /// The next position to be claimed, and [`CLOSED`].
    claimed: AtomicU64,
    /// Some value that `head` has had: on this line, so that a call that finds room touches no other.
    room: AtomicU64,
}

/// The sender's side of the ring; there is one.
#[derive(Debug)]
pub struct Taker {
    /// The position behind the last batch.
    expected: u64,
    /// What is about to be taken: positions and indices. Kept for its memory.
    plan: Vec<(u64, u32)>,
}

/// What the sender took at once.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Events lost between the batch before and these.
    pub gap: u64,
    /// Events taken.
    pub events: u64,
}

/// What a position holds.
enum Entry {
    Call {
        index: u32,
        events: u64,
        heavy: bool,
    },
    Skipped,
    Unwritten,
    /// A later lap: `head` has passed.
    Gone,
}

impl Ring {
    /// A ring of exactly `capacity` events, at least 2, that evicts `burst` calls at once when it is full, for frames whose
    /// indices have `index_bits`. `None` if there is no memory for it.
    pub fn new(capacity: usize, burst: usize, index_bits: u32) -> Option<Ring> {
        let capacity = capacity.max(2);
        let slots = zeroed(capacity.max(LEAST_SLOTS).checked_next_power_of_two()?)?;
        // Lap 0 is what the slots are made with, so the first positions are in lap 1.
        let start = slots.len() as u64;
        Some(Ring {
            tail: CachePadded::new(Tail { claimed: AtomicU64::new(start), room: AtomicU64::new(start) }),
            head: CachePadded::new(AtomicU64::new(start)),
            taken: CachePadded::new(Gauge::new()),
            slots,
            capacity: capacity as u64,
            burst: burst.clamp(1, capacity),
            index_bits,
            end: AtomicU64::new(OPEN),
            closing: Mutex::new(()),
            skipped: Counter::new(),
        })
    }

    /// The sender's side, to be made once.
    pub fn taker(&self, limits: Limits) -> Taker {
        Taker { expected: self.start(), plan: Vec::with_capacity(limits.events as usize) }
    }

    fn start(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline(always)]
    fn slot(&self, at: u64) -> &AtomicU64 {
        &self.slots[(at & (self.slots.len() as u64 - 1)) as usize]
    }

    /// The lap of a position, where a word has it.
    #[inline(always)]
    fn lap(&self, at: u64) -> u64 {
        (at >> self.slots.len().trailing_zeros()) << (FLAG_BITS + self.index_bits)
    }

    /// The lap of a word, where [`lap`](Self::lap) puts it.
    #[inline(always)]
    fn lap_of(&self, word: u64) -> u64 {
        word & !((1 << (FLAG_BITS + self.index_bits)) - 1)
    }

    /// What `at` holds. Acquire: who gets a call's index gets what was written into the frame.
    #[inline(always)]
    fn read(&self, at: u64) -> Entry {
        let word = self.slot(at).load(weaken!(RingRead, Ordering::Acquire));
        let (lap, own) = (self.lap_of(word), self.lap(at));
        if lap != own && !fault!(RingIgnoresLap) {
            return if lap < own { Entry::Unwritten } else { Entry::Gone };
        }
        match word & KIND {
            SKIPPED => Entry::Skipped,
            kind => Entry::Call {
                index: (word >> FLAG_BITS) as u32 & ((1 << self.index_bits) - 1),
                events: if fault!(RingIgnoresKind) { ONE } else { kind },
                heavy: word & HEAVY != 0,
            },
        }
    }
    /// Refuses claims from now on; what was claimed before is accepted.
    pub fn close(&self) {
        // A mutex for those who close, never for a call: whoever is second has to find the first one's position.
        let _alone = self.closing.lock();
        // Relaxed: written under the mutex alone.
        if self.end.load(Ordering::Relaxed) == OPEN {
            if fault!(RingClosesInTwoSteps) {
                self.end.store(self.tail.claimed.load(Ordering::Relaxed), Ordering::Release);
                self.tail.claimed.fetch_or(CLOSED, Ordering::Release);
                return;
            }
            // Release: whoever is refused finds why (see `Pipe`).
            let end = self.tail.claimed.fetch_or(CLOSED, Ordering::Release);
            self.end.store(end, Ordering::Release);
        }
    }

    /// Whether everything that was accepted before the ring was closed has gone.
    pub fn is_drained(&self) -> bool {
        self.head.fetch_add(0, Ordering::Relaxed) & !ENDED == self.end.load(Ordering::Acquire)
    }

    /// Events evicted so far. While a batch is being taken it may be too low, never too high.
    pub fn evicted(&self) -> u64 {
        // Acquire: `taken`, read behind it, has all that `head` has.
        let head = self.head.load(Ordering::Acquire) & !ENDED;
        (head - self.start()).saturating_sub(self.taken.get())
    }

    /// Events abandoned: what was there when the ring was ended.
    pub fn abandoned(&self) -> u64 {
        let head = self.head.load(Ordering::Relaxed);
        if head & ENDED == 0 { 0 } else { self.end.load(Ordering::Acquire).saturating_sub(head & !ENDED) }
    }

    /// Events queued now, or claimed; stale as soon as it is read.
    pub fn len(&self) -> u64 {
        let claimed = self.tail.claimed.load(Ordering::Relaxed) & !CLOSED;
        let end = claimed.min(self.end.load(Ordering::Relaxed));
        end.saturating_sub(self.head.load(Ordering::Relaxed) & !ENDED).min(self.capacity)
    }

    /// Events that it holds at most.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Positions that were skipped because their claimer was held up.
    pub fn skipped(&self) -> u64 {
        self.skipped.get()
    }
}
