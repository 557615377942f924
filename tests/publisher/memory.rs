//! How much memory a publisher can come to hold, against what its settings promise, and that it comes back.
#![cfg(all(feature = "zmq", target_os = "linux", target_env = "gnu"))]

use crate::common::sub::loopback;
use crate::common::wait_until;
use kv_events::{Before, Config, MediaSet, Object, Outcome, Publisher, Refusal, SweepOutcome};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use test_support::alone;
use test_support::alone::{bytes_in_use, resident};
use test_support::zmtp::{connect, shake_hands, subscription};

/// A peer that subscribes to everything, waits for the first bytes, and never reads again.
fn stuck(publisher: &Publisher) -> TcpStream {
    let mut stream = connect(publisher.bound_endpoint().unwrap());
    shake_hands(&mut stream).unwrap();
    stream.write_all(&subscription(b"")).unwrap();
    stream.set_nonblocking(true).unwrap();
    wait_until("the subscription is in force", || {
        publisher.cleared("t");
        stream.read(&mut [0]).is_ok()
    });
    stream
}

/// Floods a publisher that has a stuck subscriber with events at their limit; the most memory seen is no more than promised,
/// and not so much less that the promise means nothing.
fn stays_within_its_bound(config: Config, max_event_bytes: usize) {
    let config = config.max_event_bytes(max_event_bytes);
    let before = (bytes_in_use(), resident());
    let publisher = Publisher::start(config.clone()).unwrap();
    let _stuck = stuck(&publisher);
    // The longest key that is taken.
    let refused = |length: usize| {
        let key = "k".repeat(length);
        let outcome = publisher.changed(&Object::new("t", &key), Before::mutation(MediaSet::CPU), MediaSet::DISK);
        matches!(outcome, Outcome::Refused(Refusal::TooLarge { .. }))
    };
    let longest = (max_event_bytes - 600..max_event_bytes).rev().find(|length| !refused(*length)).unwrap();
    let key = "k".repeat(longest);
    let bound = config.memory_bound(1).unwrap();
    let (mut most, mut most_resident, calls) = (0, 0, AtomicU64::new(0));
    // Until the subscriber's share is used up and the queue has overflowed, which takes more callers than one where the sender
    // is fast.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let outcome =
                        publisher.changed(&Object::new("t", &key), Before::mutation(MediaSet::CPU), MediaSet::DISK);
                    assert_eq!(outcome, Outcome::Accepted { events: 2 });
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let messages = 3 * publisher.status().send_hwm + 10_000_000 / max_event_bytes as u64;
        while publisher.status().evicted_events == 0 || publisher.status().published_batches < messages {
            most = most.max(bytes_in_use().saturating_sub(before.0));
            most_resident = most_resident.max(resident().saturating_sub(before.1));
        }
        over.store(true, Ordering::Relaxed);
    });
    let calls = calls.into_inner();
    println!(
        "measured: {calls} calls of 2 x {max_event_bytes} bytes: {} MiB in use, {} MiB resident, {} MiB promised",
        most >> 20,
        most_resident >> 20,
        bound >> 20
    );
    assert!(most <= bound && most > bound / 4);
    assert!(most_resident <= bound + (16 << 20));
    drop(publisher);
    wait_until("it has come back", || bytes_in_use() < before.0 + key.len() + (1 << 20));
}

#[test]
fn keys_at_the_default_limit() {
    if alone!("keys_at_the_default_limit") {
        stays_within_its_bound(loopback().queue_capacity(1000).send_hwm(100), 16 << 10);
    }
}

#[test]
fn keys_of_a_mebibyte() {
    if alone!("keys_of_a_mebibyte") {
        stays_within_its_bound(loopback().queue_capacity(40).send_hwm(20), 1 << 20);
    }
}

#[test]
fn with_the_default_limit_a_key_of_a_mebibyte_is_refused() {
    let publisher = Publisher::start(loopback()).unwrap();
    let outcome = publisher.committed(&Object::new("t", &"k".repeat(1 << 20)), MediaSet::CPU);
    assert!(matches!(outcome, Outcome::Refused(Refusal::TooLarge { bytes, .. }) if bytes > 1 << 20), "{outcome:?}");
}

#[test]
fn what_a_stuck_subscriber_held_comes_back_after_the_publisher_is_gone() {
    // No buffer of ours is out; what ZeroMQ copied is freed with its socket, whether or not the peer ever reads.
    if !alone!("what_a_stuck_subscriber_held_comes_back_after_the_publisher_is_gone") {
        return;
    }
    let before = bytes_in_use();
    let publisher = Publisher::start(loopback().queue_capacity(64)).unwrap();
    let stuck = stuck(&publisher);
    let key = "k".repeat(10_000);
    while publisher.status().published_bytes < 64 << 20 {
        publisher.committed(&Object::new("t", &key), MediaSet::BOTH);
    }
    assert!(bytes_in_use() > before + (16 << 20), "the subscriber is stuck");
    drop(publisher);
    wait_until("it has come back", || bytes_in_use() < before + (1 << 20));
    drop(stuck);
}

#[test]
fn the_pool_serves_nearly_every_call() {
    // Nobody outside can hold a buffer, so the same few go round.
    let publisher = Publisher::start(loopback()).unwrap();
    for round in 0..20_000 {
        publisher.committed(&Object::new("t", "k"), MediaSet::BOTH);
        if round % 20 == 0 {
            wait_until("it is sent", || publisher.status().published_events == 2 * (round + 1));
        }
    }
    let status = publisher.status();
    assert!(status.pool_misses < 200, "{status:?}");
    assert_eq!(status.pool_freed, 0);
}

#[test]
fn one_huge_call_leaves_no_huge_buffer_among_ten_thousand_small_ones() {
    if !alone!("one_huge_call_leaves_no_huge_buffer_among_ten_thousand_small_ones") {
        return;
    }
    let publisher = Publisher::start(loopback().max_event_bytes(64 << 20)).unwrap();
    publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
    let before = bytes_in_use();
    publisher.committed(&Object::new("t", &"k".repeat(32 << 20)), MediaSet::CPU);
    for _ in 0..10_000 {
        publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
    }
    wait_until("all is sent", || publisher.status().published_events == 10_002);
    assert_eq!(publisher.status().pool_freed, 1);
    wait_until("it has come back", || bytes_in_use() < before + (16 << 20));
}

/// Takes all the memory that the process may have, in pieces down to the smallest.
fn hoard() -> Vec<*mut libc::c_void> {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let bytes = pages * 4096 + (32 << 20);
    let mut pieces = Vec::with_capacity(4 << 20);
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid and only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    for size in [1 << 16, 1 << 12, 512, 64, 16, 1] {
        while pieces.len() < pieces.capacity() {
            // SAFETY: whatever it returns is freed by `give_back`.
            match unsafe { libc::malloc(size) } {
                piece if piece.is_null() => break,
                piece => pieces.push(piece),
            }
        }
    }
    pieces
}

fn give_back(pieces: Vec<*mut libc::c_void>) {
    // SAFETY: each comes from `malloc` and is freed once.
    pieces.iter().for_each(|piece| unsafe { libc::free(*piece) });
}

#[test]
fn where_there_is_no_memory_left_calls_are_refused_and_nothing_ends() {
    if !alone!("where_there_is_no_memory_left_calls_are_refused_and_nothing_ends") {
        return;
    }
    let publisher = Publisher::start(loopback()).unwrap();
    let object = Object::new("t", "k");
    // This thread has made no call yet, and finds no memory for its first one.
    let pieces = hoard();
    let refused = (0..1000).filter(|_| publisher.committed(&object, MediaSet::BOTH).is_accepted()).count() == 0;
    let sweep = publisher.sweep("tenant");
    let _ = sweep.removed(&Object::new("tenant", "k"), Before::mutation(MediaSet::CPU));
    let swept = sweep.finish();
    let status = publisher.status();
    give_back(pieces);
    assert!(refused && status.healthy, "{status:?}");
    // The 1001st call was the sweep's.
    assert_eq!((status.refused_events, status.published_events), (2001, 0));
    assert_eq!(swept, SweepOutcome::Skipped);
    assert!(publisher.committed(&object, MediaSet::BOTH).is_accepted());
    let report = publisher.stop(std::time::Duration::from_secs(60));
    assert!(report.closed && report.published == 2, "{report:?}");
}
