//! Numbers of threads, each one's own for as long as it lives. There are so many; later threads have none.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 2;
/// How many there are.
pub(crate) const LANES: usize = WORDS * 64;

/// The calling thread's number. It stays on its thread.
#[derive(Clone, Copy)]
pub(crate) struct Lane(usize, PhantomData<*const ()>);

impl Lane {
    #[inline(always)]
    pub(crate) fn get(self) -> usize {
        self.0
    }
}

static TAKEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

const UNKNOWN: usize = usize::MAX;
const NONE: usize = usize::MAX - 1;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static KEEP: Keep = Keep::new();
}

/// Has the number for as long as the thread lives.
struct Keep(usize);

impl Keep {
    fn new() -> Self {
        for (word, taken) in TAKEN.iter().enumerate() {
            let mut seen = taken.load(Ordering::Relaxed);
            while seen != u64::MAX {
                let bit = seen.trailing_ones();
                // Acquire: what the thread that had the number before did under it comes before what this one does.
                match taken.compare_exchange_weak(seen, seen | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return Keep(word * 64 + bit as usize),
                    Err(newer) => seen = newer,
                }
            }
        }
        Keep(NONE)
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        // Destructors of other thread-locals may still make calls.
        NUMBER.set(NONE);
        if self.0 != NONE {
            // Release: pairs with the Acquire in `new`.
            TAKEN[self.0 / 64].fetch_and(!(1 << (self.0 % 64)), Ordering::Release);
        }
    }
}

/// The calling thread's number, if it has one.
#[inline(always)]
pub(crate) fn lane() -> Option<Lane> {
    let number = NUMBER.get();
    if number < LANES { Some(Lane(number, PhantomData)) } else { lane_of_new_thread(number) }
}

#[cold]
#[inline(never)]
fn lane_of_new_thread(number: usize) -> Option<Lane> {
    // A thread-local with a destructor takes some: the standard library and the C library end the process without.
    if number == NONE || !crate::memory::is_left() {
        return None;
    }
    let number = KEEP.try_with(|keep| keep.0).unwrap_or(NONE);
    NUMBER.set(number);
    (number < LANES).then_some(Lane(number, PhantomData))
}
