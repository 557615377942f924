//! What is logged, and how often: once at start, never on the path of a call.
#![cfg(feature = "zmq")]

use crate::common::sub::{Sub, loopback};
use kv_events::{Before, Config, MediaSet, Object, Outcome, Publisher};
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::sync::Mutex;
use std::time::Duration;
use test_support::alone;

struct Lines(Mutex<Vec<(Level, String)>>);

static LINES: Lines = Lines(Mutex::new(Vec::new()));

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        assert_ne!(record.level(), Level::Error, "a logger that panics");
        self.0.lock().unwrap().push((record.level(), record.args().to_string()));
    }

    fn flush(&self) {}
}

/// What was logged since the last time.
fn logged() -> Vec<(Level, String)> {
    std::mem::take(&mut LINES.0.lock().unwrap())
}

/// One warning that holds `text`.
fn warned_once_of(text: &str) {
    let lines = logged();
    let [(Level::Warn, line)] = &lines[..] else { panic!("{text}: {lines:?}") };
    assert!(line.contains(text), "{line}");
}

/// One test for all, since a process has one logger.
#[test]
fn warnings_come_once_at_start() {
    if !alone!("warnings_come_once_at_start") {
        return;
    }
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let calls = |publisher: &Publisher| {
        for _ in 0..1000 {
            publisher.committed(&Object::new("t", "k"), MediaSet::BOTH);
            publisher.committed(&Object::new("t", &"k".repeat(20_000)), MediaSet::BOTH);
            publisher.cleared("t");
        }
    };

    // There is no default endpoint, loopback is silent, everything wider is told of.
    assert!(Publisher::start(Config::default().enabled(true).backend_id("b")).is_err());
    let local = Publisher::start(loopback()).unwrap();
    calls(&local);
    assert_eq!(logged(), []);
    for wide in ["tcp://*:0", "tcp://0.0.0.0:0"] {
        let publisher = Publisher::start(loopback().bind_endpoint(wide)).unwrap();
        calls(&publisher);
        assert!(publisher.stop(Duration::from_secs(60)).closed);
        calls(&publisher);
        warned_once_of("can be reached from other machines");
    }

    let keyless = Publisher::start(loopback().emit_object_key(false)).unwrap();
    let sub = Sub::of(&keyless);
    let before = keyless.status().skipped_keyless_events;
    for _ in 0..10 {
        assert_eq!(keyless.committed(&Object::new("t", "k"), MediaSet::CPU), Outcome::Suppressed { events: 1 });
        assert_eq!(
            keyless.stored_on(&Object::new("t", ""), kv_events::Medium::Disk),
            Outcome::Suppressed { events: 1 }
        );
    }
    keyless.cleared("end");
    assert_eq!(sub.events(1)[0].events[0].text("tenant_id"), "end");
    assert_eq!(keyless.status().skipped_keyless_events - before, 20);
    assert!(keyless.status().keys_suppressed);
    warned_once_of("kv_events_emit_object_key=false");
    let keyed = Publisher::start(loopback()).unwrap();
    assert_eq!(keyed.committed(&Object::new("t", ""), MediaSet::BOTH), Outcome::Suppressed { events: 2 });
    assert_eq!((keyed.status().skipped_keyless_events, keyed.status().keys_suppressed), (2, false));
    assert_eq!(logged(), []);

    let forgotten = Publisher::start(loopback().enabled(false)).unwrap();
    calls(&forgotten);
    assert!(!forgotten.status().enabled);
    warned_once_of("enable_kv_events is false");
    Publisher::start(Config::default()).unwrap();
    assert_eq!(logged(), [], "nothing is set, nothing is amiss");

    // A mutation that was not published is logged once.
    for _ in 0..3 {
        drop(Before::mutation(MediaSet::CPU));
    }
    warned_once_of("a `Before` was dropped");
    Before::mutation(MediaSet::CPU).discard();
    assert_eq!(logged(), []);

    // What the logger does, the sender is visibly dead.
    {
        use crate::common::recorder::{Recorder, Verdict};
        let (publisher, recorder) = Recorder::start(loopback());
        recorder.plan([Verdict::Fail, Verdict::Break]);
        publisher.cleared("t");
        assert!(recorder.all().is_empty());
        let status = publisher.status();
        assert!(!status.healthy && !status.stopped, "{status:?}");
        assert_eq!(publisher.cleared("t"), Outcome::Refused(kv_events::Refusal::SenderDead));
        assert!(publisher.stop(Duration::from_secs(60)).closed);
        assert!(publisher.status().stopped);
        warned_once_of("did not take a message (planned), 1 so far");
    }
}
