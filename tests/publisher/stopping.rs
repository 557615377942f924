//! Stop, drop, and everything after.
#![cfg(feature = "zmq")]

use crate::common::sub::{Sub, loopback};
use kv_events::{MediaSet, Object, Outcome, Publisher, Refusal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const OBJECT: Object<'static> = Object::new("t", "k");
const LONG: Duration = Duration::from_secs(30);

#[test]
fn all_that_was_accepted_arrives() {
    for _ in 0..30 {
        let publisher = Publisher::start(loopback().linger(LONG)).unwrap();
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
fn the_last_handle_that_is_dropped_stops_it() {
    let publisher = Publisher::start(loopback()).unwrap();
    let endpoint = publisher.bound_endpoint().unwrap().to_owned();
    let handle = publisher.clone();
    drop(publisher);
    assert!(handle.committed(&OBJECT, MediaSet::CPU).is_accepted());
    let sweep = handle.sweep("t");
    drop(handle);
    assert!(Publisher::start(loopback().bind_endpoint(&endpoint)).is_err(), "the sweep has a handle");
    drop(sweep);
    assert!(Publisher::start(loopback().bind_endpoint(&endpoint)).is_ok());
}

#[test]
fn the_endpoint_is_free_after_a_stop() {
    // With and without a subscriber
    let first = Publisher::start(loopback()).unwrap();
    let endpoint = first.bound_endpoint().unwrap().to_owned();
    assert!(first.stop(LONG).closed);
    for n in 0..50 {
        let publisher = Publisher::start(loopback().bind_endpoint(&endpoint).linger(LONG)).unwrap();
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

/// With a sender that is held up inside a send.
mod held_up {
    use super::{LONG, OBJECT};
    use crate::common::recorder::{Recorder, Verdict};
    use kv_events::{Config, MediaSet, Publisher};
    use std::time::Duration;

    const SHORT: Duration = Duration::from_millis(50);

    /// One message in the sender's hands, `calls` behind it in a queue of 4.
    fn held_up(calls: usize) -> (Publisher, Recorder) {
        let (publisher, recorder) = Recorder::start(Config::new("memory", "b").queue_capacity(4).eviction_burst(1));
        recorder.pause(|| {
            publisher.committed(&OBJECT, MediaSet::CPU);
        });
        for _ in 0..calls {
            publisher.committed(&OBJECT, MediaSet::CPU);
        }
        (publisher, recorder)
    }

    #[test]
    fn stop_returns_at_its_deadline_and_its_report_is_final() {
        for deadline in [SHORT, Duration::ZERO] {
            let (publisher, recorder) = held_up(3);
            let report = publisher.stop(deadline);
            assert_eq!((report.published, report.abandoned, report.closed), (0, 3, false));
            recorder.resume();
            let messages = recorder.all();
            assert_eq!(messages.len(), 1, "what was in the sender's hands, and nothing behind it");
            let report = publisher.stop(LONG);
            assert_eq!((report.published, report.abandoned, report.closed), (1, 3, true));
        }
    }

    #[test]
    fn a_sender_that_is_overdue_ends_though_its_loss_is_untold() {
        // The message in hand fails, so a loss waits to be told when the deadline has passed.
        let (publisher, recorder) = held_up(3);
        recorder.plan([Verdict::Fail]);
        assert!(!publisher.stop(SHORT).closed);
        recorder.resume();
        assert_eq!(recorder.all(), []);
        assert_eq!(recorder.attempts().len(), 1, "nothing is sent after the deadline");
        assert_eq!(publisher.stop(LONG).published, 0);
        let status = publisher.status();
        assert_eq!((status.failed_events, status.abandoned_events, status.last_sequence), (1, 3, 1));
    }

    #[test]
    fn what_was_evicted_behind_the_last_batch_has_its_numbers() {
        let (publisher, recorder) = held_up(10);
        assert_eq!(publisher.stop(SHORT).abandoned, 4);
        recorder.resume();
        assert_eq!(recorder.all().len(), 1);
        assert!(publisher.stop(LONG).closed);
        let status = publisher.status();
        assert_eq!((status.published_events, status.evicted_events, status.abandoned_events), (1, 6, 4));
        assert_eq!(status.last_sequence, 7);
    }

    #[test]
    fn closing_lingers_no_longer_than_the_deadline_allows() {
        let hour = Duration::from_secs(3600);
        let lingers = |linger, deadline| {
            let (publisher, recorder) = Recorder::start(Config::new("memory", "b").linger(linger));
            publisher.committed(&OBJECT, MediaSet::CPU);
            let _ = publisher.stop(deadline);
            recorder.all();
            let [linger] = recorder.lingers()[..] else { panic!("set once: {:?}", recorder.lingers()) };
            linger
        };
        let cut = lingers(hour, LONG);
        // What a slow machine took until then is not to be assumed, but it is not all of it.
        assert!(cut <= LONG.mul_f64(0.9) && !cut.is_zero(), "{cut:?}");
        assert_eq!(lingers(hour, Duration::ZERO), Duration::ZERO);
        assert_eq!(lingers(Duration::from_millis(5), LONG), Duration::from_millis(5));
        assert_eq!(lingers(hour, Duration::MAX), hour);
    }
}

/// From inside the sender, as a logger may that is told of a failure.
mod on_the_senders_thread {
    use super::{LONG, OBJECT};
    use kv_events::transport::{Message, SendError, Transport};
    use kv_events::{Config, MediaSet, Publisher, StopReport};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// Stops the publisher that it was given, without a deadline, and hands on the report.
    struct Stops(Receiver<Publisher>, Sender<StopReport>);

    impl Transport for Stops {
        fn send(&mut self, _: &Message<'_>) -> Result<(), SendError> {
            let publisher = self.0.recv().unwrap();
            self.1.send(publisher.stop(Duration::MAX)).unwrap();
            // Perhaps the last one.
            drop(publisher);
            Ok(())
        }
    }

    #[test]
    fn a_stop_or_a_drop_does_not_wait_for_itself() {
        for is_last in [false, true] {
            let ((give, given), (tell, told)) = (channel(), channel());
            let publisher = Publisher::start_with(Config::new("stops", "b"), Stops(given, tell)).unwrap();
            publisher.committed(&OBJECT, MediaSet::BOTH);
            let kept = (!is_last).then(|| publisher.clone());
            give.send(publisher).unwrap();
            let report = told.recv().unwrap();
            assert!(!report.closed && report.published == 0, "{report:?}");
            if let Some(publisher) = kept {
                let report = publisher.stop(LONG);
                assert_eq!((report.closed, report.published), (true, 2));
            }
        }
    }
}
