//! A logger that panics takes nothing with it: no sender, no start, no delivery.
#![cfg(feature = "zmq")]

use crate::common::recorder::{Recorder, Verdict};
use kv_events::subscriber::{Delivery, Settings, Subscriber};
use kv_events::{Config, MediaSet, Object, Publisher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use test_support::alone;

struct Panics;

static ASKED: AtomicU64 = AtomicU64::new(0);

impl log::Log for Panics {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target().starts_with("kv_events") {
            ASKED.fetch_add(1, Ordering::Relaxed);
        }
        panic!("the logger panics at: {}", record.args());
    }

    fn flush(&self) {}
}

/// Installs the logger; says how often it has been asked.
fn asked() -> u64 {
    let _ = log::set_logger(&Panics);
    log::set_max_level(log::LevelFilter::Trace);
    ASKED.load(Ordering::Relaxed)
}

#[test]
fn a_start_that_warns_succeeds() {
    if !alone!("a_start_that_warns_succeeds") {
        return;
    }
    let before = asked();
    // Beyond loopback, and without keys: a warning of the sender's thread, and one of the caller's.
    let publisher = Publisher::start(crate::common::config("tcp://0.0.0.0:0", "b").emit_object_key(false)).unwrap();
    publisher.cleared("t");
    let report = publisher.stop(Duration::from_secs(60));
    assert!(report.closed && report.published == 1 && publisher.status().healthy, "{report:?}");
    assert!(asked() >= before + 2);
}

#[test]
fn a_failed_message_is_counted_and_the_sender_lives() {
    if !alone!("a_failed_message_is_counted_and_the_sender_lives") {
        return;
    }
    let before = asked();
    let (publisher, recorder) = Recorder::start(Config::new("memory", "b"));
    recorder.plan([Verdict::Fail]);
    publisher.committed(&Object::new("t", "lost"), MediaSet::BOTH);
    recorder.messages(1);
    publisher.committed(&Object::new("t", "sent"), MediaSet::BOTH);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    let status = publisher.status();
    assert_eq!((status.healthy, status.failed_events, status.published_events), (true, 2, 2), "{status:?}");
    assert!(asked() > before);
}

#[test]
fn what_is_malformed_is_delivered() {
    if !alone!("what_is_malformed_is_delivered") {
        return;
    }
    let before = asked();
    let socket = zmq::Context::new().socket(zmq::PUB).unwrap();
    socket.bind("tcp://127.0.0.1:*").unwrap();
    let endpoint = socket.get_last_endpoint().unwrap().unwrap();
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
    let delivery = loop {
        socket.send("one frame", 0).unwrap();
        if let Ok(delivery) = subscriber.recv_timeout(Duration::from_millis(20)) {
            break delivery;
        }
    };
    assert!(matches!(delivery, Delivery::Malformed { .. }), "{delivery:?}");
    assert!(asked() > before);
}
