//! Stop, drop, and everything after.
#![cfg(feature = "zmq")]

mod common;

use common::sub::{Sub, loopback};
use kv_events::{MediaSet, Object, Outcome, Publisher, Refusal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const OBJECT: Object<'static> = Object::new("t", "k");
const LONG: Duration = Duration::from_secs(30);

#[test]
fn all_that_was_accepted_arrives() {
    // PC-48
    for _ in 0..30 {
        let publisher = Publisher::start(loopback()).unwrap();
        let sub = Sub::of(&publisher);
        for _ in 0..100 {
            publisher.committed(&OBJECT, MediaSet::CPU);
        }
        let report = publisher.stop(LONG);
        assert!(report.closed);
        assert_eq!(report.abandoned, 0);
        sub.events(100);
    }
}

#[test]
fn the_endpoint_is_free_after_a_stop() {
    // PC-34: with and without a subscriber
    let first = Publisher::start(loopback()).unwrap();
    let endpoint = first.bound_endpoint().unwrap().to_owned();
    assert!(first.stop(LONG).closed);
    for n in 0..50 {
        let publisher = Publisher::start(loopback().bind_endpoint(&endpoint)).unwrap();
        let sub = (n % 2 == 0).then(|| Sub::of(&publisher));
        for _ in 0..10 {
            publisher.committed(&OBJECT, MediaSet::CPU);
        }
        assert!(publisher.stop(LONG).closed);
        if let Some(sub) = sub {
            sub.events(10);
        }
    }
}

#[test]
fn calls_after_stop_are_refused_and_counted() {
    // PC-49
    let publisher = Publisher::start(loopback()).unwrap();
    publisher.committed(&OBJECT, MediaSet::CPU);
    let first = publisher.stop(LONG);
    assert_eq!((first.published, first.abandoned, first.closed), (1, 0, true));
    assert_eq!(publisher.stop(LONG), first, "a second stop changes nothing");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let outcome = publisher.committed(&OBJECT, MediaSet::BOTH);
                assert_eq!(outcome, Outcome::Refused(Refusal::Stopped));
            });
        }
    });
    assert_eq!(publisher.status().refused_events, 8);
    assert!(publisher.status().healthy, "a stopped publisher is well");
    drop(publisher);
}

#[test]
fn two_threads_may_stop_at_once() {
    let publisher = Publisher::start(loopback()).unwrap();
    publisher.committed(&OBJECT, MediaSet::CPU);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(publisher.stop(LONG).closed));
        }
    });
    assert_eq!(publisher.status().published_events, 1);
}

#[test]
fn a_stop_in_the_middle_of_a_flood_accounts_for_every_event() {
    for round in 0..50 {
        let publisher = Publisher::start(loopback().queue_capacity(1 << (round % 11))).unwrap();
        let accepted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        match publisher.committed(&OBJECT, MediaSet::BOTH) {
                            Outcome::Accepted { events } => accepted.fetch_add(events.into(), Ordering::Relaxed),
                            Outcome::Refused(Refusal::Stopped) => break,
                            other => panic!("{other:?}"),
                        };
                    }
                });
            }
            while publisher.status().published_events < 100 {
                std::thread::yield_now();
            }
            // Every other round has no time to drain.
            let _ = publisher.stop(if round % 2 == 0 { LONG } else { Duration::ZERO });
        });
        assert!(publisher.stop(LONG).closed);
        let status = publisher.status();
        let told = status.published_events + status.evicted_events + status.failed_events + status.abandoned_events;
        assert_eq!(accepted.into_inner(), told, "{status:?}");
    }
}

#[test]
fn a_subscriber_that_does_not_read_does_not_keep_stop_beyond_its_deadline() {
    let publisher = Publisher::start(loopback().linger(Duration::from_secs(3600))).unwrap();
    let sub = Sub::of(&publisher);
    let key = "k".repeat(10_000);
    for _ in 0..20_000 {
        publisher.committed(&Object::new("t", &key), MediaSet::CPU);
    }
    // Returns at all: its linger alone is an hour.
    let report = publisher.stop(Duration::from_millis(300));
    assert!(report.published > 0);
    drop(publisher);
    drop(sub);
}

#[test]
fn dropping_without_a_stop_sends_the_rest() {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    for _ in 0..100 {
        publisher.committed(&OBJECT, MediaSet::CPU);
    }
    drop(publisher);
    sub.events(100);
}
