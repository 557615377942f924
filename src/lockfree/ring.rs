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

use super::frames::Held;
use super::prefetch;
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
#[cfg(not(all(loom, feature = "loom")))]
const LEAST_SLOTS: usize = 64;
#[cfg(all(loom, feature = "loom"))]
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

/// Frames that one exchange of `head` removed.
struct Victims {
    found: [(u32, bool); CHUNK],
    length: usize,
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

    /// Queues a call of `events` (1 or 2), evicting the oldest if there is no room; the evicted go to `recycle`, and so does
    /// this one if it was overtaken. `heavy` if the call is not light or its frame above the pool's limit.
    ///
    /// # Errors
    ///
    /// Gives the frame back if the ring is closed.
    #[inline(always)]
    pub fn push(
        &self,
        frame: Held,
        events: u64,
        heavy: bool,
        mut recycle: impl FnMut(Held, bool),
        placed: impl FnOnce(&Held, u64),
    ) -> Result<(), Held> {
        // Relaxed: a position publishes nothing; its word does.
        let at = self.tail.claimed.fetch_add(events, Ordering::Relaxed);
        if at & CLOSED != 0 {
            return Err(frame);
        }
        prefetch::write(self.slot(at));
        placed(&frame, at);
        let until = at + events - self.capacity - u64::from(fault!(RingOneTooMany));
        // Relaxed, like every load of `head`: an older value only makes the caller look again.
        if self.tail.room.load(Ordering::Relaxed) < until && !fault!(RingMakesNoRoom) {
            self.push_evicting(at, until, frame, events, heavy, recycle);
        } else if let Err(frame) = self.publish(at, frame, events, heavy) {
            recycle(frame, heavy);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn push_evicting(
        &self,
        at: u64,
        until: u64,
        frame: Held,
        events: u64,
        heavy: bool,
        mut recycle: impl FnMut(Held, bool),
    ) {
        let mut head = self.head.load(Ordering::Relaxed);
        let mut left = self.burst;
        let mut evicted = Victims::new();
        // Only a full ring begins to evict; a burst that has begun goes on. One exchange is enough, nearly always: its victims
        // are recycled once the call is queued, those of others at once.
        while head < until || left < self.burst && left > 0 && head < at {
            evicted.recycle(&mut recycle);
            head = self.evict(head, at, left.max(1), &mut evicted);
            left = left.saturating_sub(evicted.length);
        }
        // With ENDED, `head` is greater than any position: the call is abandoned, unless there was room for it (see `end`).
        let room = head & ENDED == 0 || head & !ENDED >= until;
        if room && head & ENDED == 0 && head > until {
            // Relaxed: any value that `head` has had will do, whoever stores last.
            self.tail.room.store(head, Ordering::Relaxed);
        }
        let queued = if room { self.publish(at, frame, events, heavy) } else { Err(frame) };
        evicted.recycle(&mut recycle);
        if let Err(frame) = queued {
            recycle(frame, heavy);
        }
    }

    /// Removes up to `burst` of the calls that are oldest, none from `before` on, by one exchange; returns the new `head`. If
    /// another moves it first nothing is removed.
    fn evict(&self, head: u64, before: u64, burst: usize, victims: &mut Victims) -> u64 {
        let mut next = head;
        while next < before && victims.length < burst.min(CHUNK) {
            match self.read(next) {
                Entry::Call { index, events, heavy } => {
                    victims.add(index, heavy);
                    next += events;
                }
                Entry::Skipped => next += 1,
                Entry::Unwritten if next == head => {
                    // On the slot as it is: if its claimer comes first, it is looked at again.
                    if self.skip(next) {
                        self.skipped.add(1);
                        next += 1;
                    }
                }
                Entry::Unwritten => break,
                Entry::Gone => {
                    victims.length = 0;
                    // A read-modify-write, so that what is read is the last value. Relaxed, as everywhere.
                    return self.head.fetch_add(0, Ordering::Relaxed);
                }
            }
        }
        if fault!(RingMovesBlindly) {
            self.head.store(next, Ordering::Relaxed);
            return next;
        }
        // Relaxed: `head` publishes nothing. The frames come from whoever wrote the words, which were read above.
        match self.head.compare_exchange(head, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => next,
            Err(newer) => {
                victims.length = 0;
                newer
            }
        }
    }

    /// Marks an unwritten position as skipped; `false` if it is not unwritten.
    fn skip(&self, at: u64) -> bool {
        if fault!(RingLeavesOutSkip) {
            return true;
        }
        let slot = self.slot(at);
        let mut word = slot.load(Ordering::Relaxed);
        // A slot's word changes at most twice under this: by an older skip, and by the claimer.
        while self.lap_of(word) < self.lap(at) {
            // Relaxed: it hands nothing over.
            match slot.compare_exchange(word, self.lap(at) | SKIPPED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(newer) => word = newer,
            }
        }
        false
    }

    /// Writes the word of a claimed position. The frame comes back if the position was skipped meanwhile.
    #[inline(always)]
    fn publish(&self, at: u64, frame: Held, events: u64, heavy: bool) -> Result<(), Held> {
        let slot = self.slot(at);
        let kind = if events == 1 { ONE } else { TWO };
        let heavy = if heavy { HEAVY } else { 0 };
        let new = self.lap(at) | u64::from(frame.index()) << FLAG_BITS | heavy | kind;
        let mut word = slot.load(Ordering::Relaxed);
        // At most thrice: see `skip`.
        while self.lap_of(word) < self.lap(at) || fault!(RingPublishesBlindly) {
            // Release: whoever reads the index finds what was written into the frame. Relaxed on failure: what is there is an
            // older lap's word, or a skip, and is not followed.
            match slot.compare_exchange(word, new, weaken!(RingPublish, Ordering::Release), Ordering::Relaxed) {
                Ok(_) => {
                    frame.into_index();
                    return Ok(());
                }
                Err(newer) => word = newer,
            }
        }
        if events == 2 && !fault!(RingSkipsNoSecond) {
            self.skip(at + 1);
        }
        Err(frame)
    }

    /// Sender: moves the oldest calls, at most `events` events and `calls` calls, to `take`; `None` if there
    /// is none. Takes nothing across a loss if `joined`, which says that these go
    /// into the batch that was begun. A heavy call comes alone.
    pub fn take(
        &self,
        taker: &mut Taker,
        events: u64,
        calls: usize,
        joined: bool,
        mut take: impl FnMut(Held, bool),
    ) -> Option<Taken> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head & ENDED != 0 {
                return None;
            }
            let Some((mut first, next, heavy)) = self.plan(taker, head, events, calls) else {
                head = self.head.fetch_add(0, Ordering::Relaxed);
                continue;
            };
            if next == head || joined && first != taker.expected && !fault!(RingJoinsAcrossLoss) {
                return None;
            }
            loop {
                // Before the exchange, so that no one sees the calls neither here nor there, and counts them as evicted.
                let taken = self.taken.get();
                self.taken.set(taken + (next - first));
                // Release, for figures: whoever sees it sees `taken` too. Relaxed on failure: it publishes nothing else.
                match self.head.compare_exchange(head, next, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) if taker.plan.is_empty() => {
                        // Skipped positions alone: they are told with the next batch.
                        head = next;
                        break;
                    }
                    Ok(_) => {
                        let early = if fault!(GapEarly) { self.head.load(Ordering::Relaxed) - next } else { 0 };
                        let gap = first - taker.expected + early;
                        taker.expected = next + early;
                        taker.plan.drain(..).for_each(|(_, index)| take(Held::of(index), heavy));
                        return Some(Taken { gap, events: next - first });
                    }
                    Err(newer) => {
                        self.taken.set(taken);
                        head = newer;
                        // What is left of the plan holds: its words stay until `head` has passed them.
                        let gone = taker.plan.iter().take_while(|(at, _)| *at < head).count();
                        taker.plan.drain(..gone);
                        match taker.plan.first() {
                            Some(&(at, _)) if head & ENDED == 0 && !joined => first = at,
                            _ => break,
                        }
                    }
                }
            }
        }
    }

    /// Reads what could be taken: the first position, the one behind the last, and whether it is one heavy call. `None` if
    /// `head` is out of date.
    fn plan(&self, taker: &mut Taker, head: u64, events: u64, calls: usize) -> Option<(u64, u64, bool)> {
        taker.plan.clear();
        let (mut first, mut next) = (head, head);
        loop {
            match self.read(next) {
                Entry::Call { index, events: more, heavy } => {
                    let full = taker.plan.len() == calls || next + more - first > events;
                    if full || heavy && !taker.plan.is_empty() {
                        return Some((first, next, false));
                    }
                    taker.plan.push((next, index));
                    next += more;
                    if heavy {
                        return Some((first, next, true));
                    }
                }
                Entry::Skipped if taker.plan.is_empty() => {
                    next += 1;
                    first = next;
                }
                Entry::Skipped | Entry::Unwritten => return Some((first, next, false)),
                Entry::Gone => return None,
            }
        }
    }

    /// Whether nothing can be taken. Exact only if no producer is inside a push; a claim that is not written yet does not count.
    pub fn is_empty(&self) -> bool {
        // A read-modify-write: an old value could say "not empty" for ever.
        let head = self.head.fetch_add(0, Ordering::Relaxed);
        head & ENDED != 0 || matches!(self.read(head), Entry::Unwritten)
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

    /// Takes and evicts nothing from now on; what is left is abandoned and goes to `recycle`. The ring has to be closed.
    pub fn end(&self, mut recycle: impl FnMut(Held, bool)) {
        debug_assert!(self.end.load(Ordering::Acquire) != OPEN, "close it first");
        let before = self.head.fetch_or(ENDED, Ordering::Relaxed);
        if before & ENDED != 0 {
            return;
        }
        // Calls that had no room find ENDED and keep their frames, so each slot has one position here at most. One that had
        // room writes its word before it is skipped here, or finds that it was.
        let last = self.end.load(Ordering::Acquire).min(before + self.slots.len() as u64);
        if fault!(RingEndsWithoutWalk) {
            return;
        }
        let mut at = before;
        while at < last {
            match self.read(at) {
                Entry::Call { index, events, heavy } => {
                    recycle(Held::of(index), heavy);
                    at += events;
                }
                Entry::Unwritten if !self.skip(at) => {}
                _ => at += 1,
            }
        }
    }

    /// Sender, after [`end`](Self::end): the events that were lost since the last batch, which is to be told once.
    pub fn rest(&self, taker: &mut Taker) -> u64 {
        let head = self.head.load(Ordering::Relaxed) & !ENDED;
        head - std::mem::replace(&mut taker.expected, head)
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

impl Victims {
    fn new() -> Self {
        Victims { found: [(0, false); CHUNK], length: 0 }
    }

    fn add(&mut self, index: u32, heavy: bool) {
        self.found[self.length] = (index, heavy);
        self.length += 1;
    }

    fn recycle(&mut self, recycle: &mut impl FnMut(Held, bool)) {
        let length = std::mem::take(&mut self.length);
        self.found[..length].iter().for_each(|&(index, heavy)| recycle(Held::of(index), heavy));
    }
}
