//! Where a publisher may live, in what order it may end, and that its end leaves nothing behind.
#![cfg(all(feature = "zmq", target_os = "linux", target_env = "gnu"))]

use crate::common::briefs;
use crate::common::sub::{Sub, loopback};
use crate::common::wait_until;
use kv_events::{Before, MediaSet, Object, Outcome, Publisher, Refusal, SweepOutcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use test_support::alone;
use test_support::alone::{bytes_in_use, resident, threads_and_files};

const OBJECT: Object<'static> = Object::new("t", "k");
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_thousand_lives_leave_no_thread_no_file_and_no_memory() {
    if !alone!("a_thousand_lives_leave_no_thread_no_file_and_no_memory") {
        return;
    }
    let live = |n: usize| {
        let publisher = Publisher::start(loopback().queue_capacity(64)).unwrap();
        publisher.committed(&OBJECT, MediaSet::BOTH);
        // Some are stopped, some dropped.
        if n % 2 == 0 {
            assert!(publisher.stop(LONG).closed);
        }
    };
    (0..50).for_each(live);
    let before = (threads_and_files(), bytes_in_use(), resident());
    (0..1000).for_each(live);
    wait_until("threads and files are as before", || threads_and_files() == before.0);
    let (grown, resident) = (bytes_in_use().saturating_sub(before.1), resident().saturating_sub(before.2));
    println!("measured: after 1000 lives {grown} bytes more in use, {} KiB more resident", resident >> 10);
    assert!(grown < 100_000, "{grown} bytes");
}

#[test]
fn two_publishers_do_not_know_of_each_other() {
    let (one, two) = (Publisher::start(loopback()).unwrap(), Publisher::start(loopback()).unwrap());
    let (sub_one, sub_two) = (Sub::of(&one), Sub::of(&two));
    std::thread::scope(|scope| {
        for (publisher, key) in [(&one, "one"), (&two, "two")] {
            scope.spawn(move || {
                (0..500).for_each(|_| assert!(publisher.committed(&Object::new("t", key), MediaSet::CPU).is_accepted()))
            });
        }
    });
    assert!(briefs(&sub_one.events(500)).iter().all(|event| event == "stored cpu one"));
    assert!(one.stop(LONG).closed);
    two.committed(&Object::new("t", "two"), MediaSet::CPU);
    assert!(briefs(&sub_two.events(501)).iter().all(|event| event == "stored cpu two"));
}

#[test]
fn a_publisher_may_live_in_a_static_and_be_stopped_there() {
    static PUBLISHER: OnceLock<Publisher> = OnceLock::new();
    static OFF: Publisher = Publisher::disabled();
    assert_eq!(OFF.committed(&OBJECT, MediaSet::CPU), Outcome::Disabled);
    let publisher = PUBLISHER.get_or_init(|| Publisher::start(loopback()).unwrap());
    let sub = Sub::of(publisher);
    let calls: Vec<_> =
        (0..4).map(|_| std::thread::spawn(|| PUBLISHER.get().unwrap().committed(&OBJECT, MediaSet::CPU))).collect();
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_accepted()));
    sub.events(4);
    assert!(PUBLISHER.get().unwrap().stop(LONG).closed);
    assert_eq!(publisher.committed(&OBJECT, MediaSet::CPU), Outcome::Refused(Refusal::Stopped));
}

#[test]
fn a_process_that_ends_with_a_publisher_in_a_static_ends() {
    static PUBLISHER: OnceLock<Publisher> = OnceLock::new();
    if !alone!("a_process_that_ends_with_a_publisher_in_a_static_ends") {
        return;
    }
    // With a subscriber that has not read, and nothing stopped or dropped: `alone` sees that this process ends well.
    let publisher = PUBLISHER.get_or_init(|| Publisher::start(loopback()).unwrap());
    std::mem::forget(Sub::of(publisher));
    for _ in 0..10_000 {
        publisher.committed(&OBJECT, MediaSet::BOTH);
    }
}

#[test]
fn publishers_sockets_and_subscribers_may_go_in_any_order() {
    for order in 0..6 {
        let (one, two) = (Publisher::start(loopback()).unwrap(), Publisher::start(loopback()).unwrap());
        let sub = Sub::of(&one);
        one.committed(&OBJECT, MediaSet::BOTH);
        two.committed(&OBJECT, MediaSet::BOTH);
        let sweep_end = one.sweep("t").finish();
        assert_eq!(sweep_end, SweepOutcome::NothingRemoved);
        match order {
            0 => drop((one, two, sub)),
            1 => drop((one, sub, two)),
            2 => drop((two, one, sub)),
            3 => drop((two, sub, one)),
            4 => drop((sub, one, two)),
            _ => drop((sub, two, one)),
        }
    }
}

#[test]
fn a_panic_in_a_caller_leaves_the_publisher_working() {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    for _ in 0..10 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let sweep = publisher.sweep("t");
            sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
            let _before = Before::mutation(MediaSet::CPU);
            panic!("in the middle of a sweep, with a snapshot in hand");
        }));
        assert!(panicked.is_err());
    }
    // None of those sweeps is left to be interrupted, to interrupt, or to end in `cleared`.
    let sweep = publisher.sweep("t");
    sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    assert_eq!(sweep.finish(), SweepOutcome::Cleared(Outcome::Accepted { events: 1 }));
    publisher.committed(&OBJECT, MediaSet::CPU);
    let seen = briefs(&sub.events(13));
    assert!(seen[..11].iter().all(|event| event == "removed cpu k"));
    assert_eq!(seen[11..], ["cleared", "stored cpu k"]);
    assert!(publisher.stop(LONG).closed);
}

#[test]
fn stopping_without_time_in_the_middle_of_sending_leaves_the_socket_to_the_sender() {
    // That nobody else can touch the socket is a matter of types: it never leaves the sender's thread.
    if !alone!("stopping_without_time_in_the_middle_of_sending_leaves_the_socket_to_the_sender") {
        return;
    }
    let before = threads_and_files();
    for _ in 0..300 {
        let publisher = Publisher::start(loopback().queue_capacity(256)).unwrap();
        let accepted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Outcome::Accepted { events } = publisher.committed(&OBJECT, MediaSet::BOTH) {
                        accepted.fetch_add(events.into(), Ordering::Relaxed);
                    }
                });
            }
            while publisher.status().published_events == 0 {
                std::thread::yield_now();
            }
            let _ = publisher.stop(Duration::ZERO);
        });
        assert!(publisher.stop(LONG).closed, "the sender closes it when it can");
        let status = publisher.status();
        assert_eq!(accepted.into_inner(), status.published_events + status.dropped_events, "{status:?}");
    }
    wait_until("no thread and no file is left", || threads_and_files() == before);
}
