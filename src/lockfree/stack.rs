//! A stack of numbers whose links lie elsewhere: what lists of idle frames are made of.

use crate::faults::{fault, weaken};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Low bits of the top: the number that is on top, 0 for none. The rest counts changes, so that a top that was taken and
/// came back is another value.
const NUMBER_BITS: u32 = 28;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// A lock-free stack of numbers from 1 on. Each number has a link (an atomic of its own), which the stack uses while the
/// number is in it.
#[derive(Debug)]
pub(super) struct Stack {
    top: AtomicU64,
}

impl Stack {
    /// The numbers that it can hold are below this.
    pub(super) const LIMIT: u32 = 1 << NUMBER_BITS;

    pub(super) fn new() -> Self {
        Stack { top: AtomicU64::new(0) }
    }

    /// Puts `number` on top.
    pub(super) fn push<'a>(&self, number: u32, link: impl Fn(u32) -> &'a AtomicU32) {
        // Relaxed: the number below is not followed.
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            link(number).store((top & NUMBER) as u32, Ordering::Relaxed);
            let new = next_count(top) | u64::from(number);
            // Release: whoever pops the number finds its link and what was written under it. Relaxed on failure, as above.
            match self.top.compare_exchange_weak(top, new, weaken!(StackPush, Ordering::Release), Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => top = newer,
            }
        }
    }

    /// The number on top, 0 for none; out of date as soon as it is read.
    #[cfg(not(kv_events_loom))]
    pub(super) fn top(&self) -> u32 {
        (self.top.load(Ordering::Relaxed) & NUMBER) as u32
    }

    /// Takes the number on top; `None` if there is none.
    pub(super) fn pop<'a>(&self, link: impl Fn(u32) -> &'a AtomicU32) -> Option<u32> {
        // Acquire, here and below: the number's link, and in the end what was written under it, come from whoever pushed it.
        // All changes are read-modify-writes, so this holds however many lie between that push and this pop.
        let acquire = weaken!(StackPop, Ordering::Acquire);
        let mut top = self.top.load(acquire);
        loop {
            let number = (top & NUMBER) as u32;
            if number == 0 {
                return None;
            }
            // Relaxed: may be out of date if the number was popped meanwhile; then the exchange fails.
            let below = link(number).load(Ordering::Relaxed);
            match self.top.compare_exchange_weak(top, next_count(top) | u64::from(below), acquire, acquire) {
                Ok(_) => return Some(number),
                Err(newer) => top = newer,
            }
        }
    }
}

fn next_count(top: u64) -> u64 {
    if fault!(StackWithoutCount) {
        return top & !NUMBER;
    }
    (top | NUMBER).wrapping_add(1)
}
