//! The stream read by a subscriber that shares no code with this crate: `tests/python/subscriber.py`.
//!
//! Needs Python with `pyzmq` and `msgspec`, named by `KV_EVENTS_PYTHON`; without that variable there is nothing to run,
//! and the tests say so on the standard error.
#![cfg(feature = "zmq")]

use test_support::python;

use crate::common::sub::loopback;
use kv_events::{Before, Config, MediaSet, Object, Publisher};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// How long the rest of the stream may take to be fetched: ZeroMQ drops it then.
const PATIENCE: Duration = Duration::from_secs(60);

struct Python {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Python {
    /// A subscriber that is known to receive; `None` where there is no Python to run it.
    fn subscribe(publisher: &Publisher, names: &str) -> Option<Python> {
        let mut child = Command::new(python("pyzmq and msgspec")?)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/subscriber.py"))
            .args([publisher.bound_endpoint().unwrap(), names])
            .stdout(Stdio::piped())
            .spawn()
            .expect("KV_EVENTS_PYTHON runs");
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let ready = std::thread::scope(|scope| {
            let ready = scope.spawn(|| {
                let mut line = String::new();
                lines.read_line(&mut line).unwrap();
                line
            });
            while !ready.is_finished() {
                publisher.cleared("probe");
                std::thread::sleep(Duration::from_millis(5));
            }
            ready.join().unwrap()
        });
        assert_eq!(ready.trim(), "ready");
        Some(Python { child, lines })
    }

    fn report(mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success(), "the subscriber found fault with the stream");
        serde_json::from_str(&line).unwrap()
    }
}

fn every_field_of_every_kind(config: Config, names: &str, context: Value) {
    let publisher = Publisher::start(config.linger(PATIENCE)).unwrap();
    let Some(python) = Python::subscribe(&publisher, names) else { return };
    let object = Object::new("tenant", "k/\u{e9}\u{1F600}\n").in_group("group");
    publisher.committed(&object, MediaSet::BOTH);
    publisher.changed(&Object { tenant: "", group: "", ..object }, Before::mutation(MediaSet::CPU), MediaSet::DISK);
    let in_session = object.in_session("s\u{e9}");
    publisher.removed(&in_session, Before::mutation(MediaSet::BOTH));
    publisher.changed(&in_session, Before::mutation(MediaSet::DISK), MediaSet::CPU);
    publisher.cleared("tenant");
    publisher.cleared("end");
    assert!(publisher.stop(PATIENCE).closed);

    let report = python.report();
    assert_eq!(report["seen"], json!({"stored": 4, "removed": 4, "cleared": 2}));
    let row_in = |session: Option<&str>, kind: &str, tenant: &str, medium: &str, group: Value| {
        let mut row = vec![json!(kind), json!(tenant), json!(medium), json!(object.key), group, json!(session)];
        row.extend(context.as_array().unwrap().iter().cloned());
        Value::from(row)
    };
    let row = |kind: &str, tenant: &str, medium: &str, group: Value| row_in(None, kind, tenant, medium, group);
    let group = || json!("group");
    let expected = json!([
        row("stored", "tenant", "cpu", group()),
        row("stored", "tenant", "disk", group()),
        row("removed", "default", "cpu", Value::Null),
        row("stored", "default", "disk", Value::Null),
        row("removed", "tenant", "cpu", group()),
        row("removed", "tenant", "disk", group()),
        row("removed", "tenant", "disk", group()),
        row_in(Some(in_session.session), "stored", "tenant", "cpu", group()),
    ]);
    assert_eq!(report["objects"], expected);
    numbers_agree(&publisher, &report);
}

/// `sequence_last = messages + evicted + failed`, seen from the outside.
fn numbers_agree(publisher: &Publisher, report: &Value) {
    let status = publisher.status();
    let number = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(number("last_sequence"), status.last_sequence);
    assert_eq!(status.last_sequence, status.published_batches + status.evicted_events + status.failed_events);
    assert_eq!(number("last_event_id"), status.published_events);
    let unseen = number("first_sequence") - 1;
    assert_eq!(number("messages") + unseen, status.published_batches, "probes before the first one seen were not lost");
    assert_eq!(number("missed"), status.evicted_events + status.failed_events);
}

#[test]
fn with_legacy_names_and_a_full_context() {
    let config =
        loopback().model_name("model").block_size(128).additional_salt("salt").lora_name("lora").dp_rank(70_000);
    every_field_of_every_kind(config, "legacy", json!(["backend-0", "model", 128, "salt", "lora", 70_000]));
}

#[test]
fn without_legacy_names_and_with_an_empty_context() {
    let context = json!(["backend-0", null, null, null, null, 0]);
    every_field_of_every_kind(loopback().emit_legacy_compat(false), "rfc", context);
}

#[test]
fn through_overload() {
    let publisher = Publisher::start(loopback().queue_capacity(64).send_hwm(0).linger(PATIENCE)).unwrap();
    let Some(python) = Python::subscribe(&publisher, "legacy") else { return };
    std::thread::scope(|scope| {
        for producer in 0..4 {
            let publisher = &publisher;
            scope.spawn(move || {
                for n in 0..5_000 {
                    let key = format!("{producer}/{n}");
                    publisher.committed(&Object::new("tenant", &key), MediaSet::BOTH);
                }
            });
        }
    });
    publisher.cleared("end");
    assert!(publisher.stop(PATIENCE).closed);
    let report = python.report();
    assert!(publisher.status().evicted_events > 0);
    numbers_agree(&publisher, &report);
}

/// Runs one of these tests by itself, with or without a Python.
fn run_alone(python: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "independent_subscriber::with_legacy_names_and_a_full_context"])
        .env_remove("KV_EVENTS_PYTHON");
    command.envs(python.map(|python| ("KV_EVENTS_PYTHON", python))).output().unwrap()
}

#[test]
fn without_a_python_it_is_plain_to_see_that_nothing_was_tested() {
    // What a test that passes prints is held back; this must not be.
    let output = run_alone(None);
    assert!(output.status.success());
    let expected = "skipped: independent_subscriber::with_legacy_names_and_a_full_context: it needs a Python with pyzmq and msgspec; \
                    set KV_EVENTS_PYTHON=$(.ci/venv)\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}

#[test]
fn a_python_that_is_of_no_use_fails_the_test() {
    for python in ["", "/nonexistent/python", "false"] {
        assert!(!run_alone(Some(python)).status.success(), "{python:?}");
    }
}
