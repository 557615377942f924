//! Allocations by Rust code, counted while the counting is switched on. libzmq allocates elsewhere and is not seen.

use super::run::{Who, start_ours};
use crate::support::peer::Peer;
use crate::support::{CAPACITY, KEY, OBJECTS, Publish, keys, object};
use serde::Serialize;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    if ON.load(Ordering::Relaxed) {
        ALL.fetch_add(1, Ordering::Relaxed);
        // A thread that is ending has no count of its own any more.
        let _ = OWN.try_with(|own| own.set(own.get() + 1));
    }
}

// SAFETY: every call is passed on to the system's allocator as it came; counting touches an atomic and a thread-local
// that needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocations per event at steady state.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Allocations {
    /// On the thread that calls.
    pub caller: f64,
    /// On all others.
    pub sender: f64,
}

const CALLS: usize = 200_000;

/// Allocations on a real socket; `flat_out` overflows the queue, else calls come a little slower than the sender sends.
pub fn measure(who: Who, flat_out: bool) -> Allocations {
    match who {
        Who::Ours { burst, wait } => count_calls(&start_ours(CAPACITY, burst, wait), flat_out),
        _ => count_calls(&Peer::start(who.peer_settings()), flat_out),
    }
}

fn count_calls<P: Publish>(publisher: &P, flat_out: bool) -> Allocations {
    let keys = keys(KEY);
    let calls = |count| {
        for n in 0..count {
            publisher.stored(&object(&keys[n % keys.len()]));
            if !flat_out && n % 64 == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    };
    // Counting begins once every buffer that there will be is there: a burst makes more than steps of 64 can need.
    for key in keys.iter().cycle().take(8 * OBJECTS) {
        publisher.stored(&object(key));
    }
    calls(1000);
    while flat_out && publisher.evicted() < 2 * CAPACITY as u64 {
        calls(1000);
    }
    ON.store(true, Ordering::Relaxed);
    let (all, own) = (ALL.load(Ordering::Relaxed), OWN.get());
    calls(CALLS);
    let (all, own) = (ALL.load(Ordering::Relaxed) - all, OWN.get() - own);
    ON.store(false, Ordering::Relaxed);
    publisher.finish();
    Allocations { caller: own as f64 / CALLS as f64, sender: (all - own) as f64 / CALLS as f64 }
}
