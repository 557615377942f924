//! What a call does: claims positions, makes room if there is none, and writes the word.

use super::{CHUNK, CLOSED, ENDED, Entry, FLAG_BITS, HEAVY, Held, ONE, Ring, SKIPPED, TWO};
use crate::faults::{fault, weaken};
use crate::lockfree::prefetch;
use crate::sync::Ordering;

/// Frames that one exchange of `head` removed.
struct Victims {
    found: [(u32, bool); CHUNK],
    length: usize,
}

impl Ring {
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
    pub(super) fn skip(&self, at: u64) -> bool {
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
