//! The bounded ring with stamped slots.
//!
//! A position is a lap and an index: laps are multiples of the smallest power of two above the capacity, so positions wrap
//! with `u64`. A slot's stamp says whose turn it is: equal to a position, that position may be filled; one more, it is
//! full and may be emptied. Emptying sets the stamp one lap on.

use super::Call;
use crate::faults::fault;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread::yield_now;

#[derive(Debug)]
pub(super) struct Ring<T> {
    /// The next position to be emptied.
    head: AtomicU64,
    /// The next position to be filled.
    tail: AtomicU64,
    slots: Box<[Slot<T>]>,
    lap: u64,
    tells: bool,
}

#[derive(Debug)]
struct Slot<T> {
    stamp: AtomicU64,
    item: UnsafeCell<Option<T>>,
}

// SAFETY: a slot's item is touched only by the thread that won its position, between winning it and setting the stamp;
// loom's cell panics if that is ever not so, before it lets anyone in.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    fn replace(&self, item: Option<T>) -> Option<T> {
        // SAFETY: as said above, nobody else is in here; loom's cell checks it.
        self.item.with_mut(|place| unsafe { std::mem::replace(&mut *place, item) })
    }
}

impl<T: Call> Ring<T> {
    pub(super) fn new(capacity: usize, start: u64, tells: bool) -> Self {
        let lap = (capacity as u64 + 1).next_power_of_two();
        let (first_lap, first_index) = (start & !(lap - 1), start & (lap - 1));
        assert!(first_index < capacity as u64, "no slot has the index {first_index}");
        let slots = (0..capacity as u64).map(|index| {
            // Slots before the first are for the next lap.
            let lap = if index < first_index { first_lap.wrapping_add(lap) } else { first_lap };
            Slot { stamp: AtomicU64::new(lap + index), item: UnsafeCell::new(None) }
        });
        Ring { head: AtomicU64::new(start), tail: AtomicU64::new(start), slots: slots.collect(), lap, tells }
    }

    pub(super) fn push(&self, item: T) -> Result<(), T> {
        self.insert(item, false).map(|victim| assert!(victim.is_none(), "push evicts nothing"))
    }

    pub(super) fn force_push(&self, item: T) -> Option<T> {
        self.insert(item, true).unwrap_or_else(|_| unreachable!("force_push has room always"))
    }

    /// `Ok` with the victim, if there had to be one; `Err` if it is full and nothing may be evicted.
    fn insert(&self, item: T, evict: bool) -> Result<Option<T>, T> {
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            let (slot, next) = self.at(tail);
            // Acquire: the slot was emptied before it may be filled again.
            let stamp = slot.stamp.load(Ordering::Acquire);
            if stamp == tail {
                match self.tail.compare_exchange_weak(tail, next, Ordering::SeqCst, Ordering::Relaxed) {
                    Ok(_) => {
                        self.tell(&item);
                        let was = slot.replace(Some(item));
                        assert!(was.is_none(), "a slot is emptied before it is filled again");
                        self.hand_over(slot, tail + 1);
                        return Ok(None);
                    }
                    Err(moved) => tail = moved,
                }
                continue;
            }
            if stamp.wrapping_add(self.lap) == tail + 1 {
                // What is in the slot is a lap old: full, unless it is being emptied this moment.
                fence(Ordering::SeqCst);
                let oldest = tail.wrapping_sub(self.lap);
                if evict {
                    let newer = next.wrapping_sub(self.lap);
                    if self.head.compare_exchange_weak(oldest, newer, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                        self.tell(&item);
                        self.tail.store(next, Ordering::SeqCst);
                        let victim = slot.replace(Some(item));
                        self.hand_over(slot, tail + 1);
                        assert!(victim.is_some(), "a full slot has something in it");
                        return Ok(victim);
                    }
                } else if self.head.load(Ordering::Relaxed) == oldest {
                    return Err(item);
                }
            }
            // Somebody has won the slot and is not done with it.
            yield_now();
            tail = self.tail.load(Ordering::Relaxed);
        }
    }

    pub(super) fn pop(&self) -> Option<T> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            let (slot, next) = self.at(head);
            // Acquire: the item was put in before it is taken out.
            let stamp = slot.stamp.load(Ordering::Acquire);
            if stamp == head + 1 {
                match self.head.compare_exchange_weak(head, next, Ordering::SeqCst, Ordering::Relaxed) {
                    Ok(_) => {
                        let item = slot.replace(None);
                        assert!(item.is_some(), "a full slot has something in it");
                        // Release: whoever fills the slot next comes after it was emptied.
                        slot.stamp.store(head.wrapping_add(self.lap), Ordering::Release);
                        return item;
                    }
                    Err(moved) => head = moved,
                }
                continue;
            }
            if stamp == head {
                fence(Ordering::SeqCst);
                if self.tail.load(Ordering::Relaxed) == head {
                    return None;
                }
            }
            // Somebody has won the slot and is not done with it.
            yield_now();
            head = self.head.load(Ordering::Relaxed);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::SeqCst);
        self.tail.load(Ordering::SeqCst) == head
    }

    /// The slot at a position, and the position after it.
    fn at(&self, position: u64) -> (&Slot<T>, u64) {
        let (lap, index) = (position & !(self.lap - 1), (position & (self.lap - 1)) as usize);
        let next = if index + 1 < self.slots.len() { position + 1 } else { lap.wrapping_add(self.lap) };
        (&self.slots[index], next)
    }

    fn tell(&self, item: &T) {
        if self.tells {
            item.placed();
        }
    }

    /// Release: whoever takes the item out sees it, and all that its maker did to it.
    fn hand_over(&self, slot: &Slot<T>, stamp: u64) {
        let order = if fault!(RingReleaseRelaxed) { Ordering::Relaxed } else { Ordering::Release };
        slot.stamp.store(stamp, order);
    }
}
