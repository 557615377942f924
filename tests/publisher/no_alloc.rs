//! Nothing is allocated per event by Rust code at steady state, neither by callers nor by the sender.
#![cfg(feature = "zmq")]

use crate::common::sub::{Sub, loopback};
use crate::common::transport::is_native;
use kv_events::{Before, MediaSet, Object, Publisher};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use test_support::alone;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Set while a thread does something for the test's own sake.
    static ASIDE: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !ASIDE.get() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: passes every call on to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is this one's.
        unsafe { System.alloc(layout) }
    }

    // Handed on as it is, since the system need not touch pages that it zeroes: other tests here measure memory.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Calls of every kind, with keys of several lengths.
fn calls(publisher: &Publisher, rounds: usize, keys: &[String]) {
    for round in 0..rounds {
        let object = Object::new("tenant", &keys[round % keys.len()]).in_group("group");
        publisher.committed(&object, MediaSet::BOTH);
        publisher.committed(&object.in_session("session"), MediaSet::BOTH);
        publisher.changed(&object, Before::mutation(MediaSet::CPU), MediaSet::DISK);
        publisher.removed(&object, Before::mutation(MediaSet::DISK));
        publisher.cleared("tenant");
    }
}

/// Events published so far. The status owns strings, which are not the calls' doing.
fn published(publisher: &Publisher) -> u64 {
    ASIDE.set(true);
    let published = publisher.status().published_events;
    ASIDE.set(false);
    published
}

#[test]
fn a_saturated_publisher_allocates_nothing() {
    if !alone!("a_saturated_publisher_allocates_nothing") {
        return;
    }
    let publisher = Publisher::start(loopback().queue_capacity(256).eviction_burst(16)).unwrap();
    let _sub = Sub::of(&publisher);
    let keys: Vec<String> = [20, 100, 300, 600].map(|length| "k".repeat(length)).into();
    // Saturates the queue, so that every buffer there can be exists: with calls of one event, since a message holds most
    // of those, each with a key as long as the longest call. (A buffer that only ever held small calls grows, once, when
    // it first meets a larger one.)
    let longest = "k".repeat(1500);
    while publisher.status().evicted_events < 200_000 {
        for _ in 0..10_000 {
            publisher.committed(&Object::new("tenant", &longest).in_group("group"), MediaSet::CPU);
        }
    }
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > 256, "the counter counts");
    let before = published(&publisher);
    let messages = publisher.status().published_batches;
    let allocations = ALLOCATIONS.load(Ordering::Relaxed);
    // Flat out (evicting), then one round at a time (the sender parks and is woken).
    calls(&publisher, 50_000, &keys);
    for _ in 0..500 {
        let before = published(&publisher);
        calls(&publisher, 1, &keys);
        while published(&publisher) == before {
            std::thread::yield_now();
        }
    }
    assert!(published(&publisher) - before > 500);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    // For each message that waits for a peer there may be two, as there are for libzmq, whose are not counted here.
    let of_messages = if is_native() { 2 * (publisher.status().published_batches - messages) } else { 0 };
    println!("measured: {allocations} allocations for {of_messages} that messages may make");
    assert!(allocations <= of_messages, "{allocations} allocations");
}
