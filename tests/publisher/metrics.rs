//! The status as operators' systems see it.
#![cfg(all(feature = "metrics", feature = "serde", feature = "zmq"))]

use test_support::python;

use kv_events::{MediaSet, Object, Publisher, Status};
use metrics_exporter_prometheus::PrometheusBuilder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// With all that has to be escaped.
const BACKEND: &str = "b \"1\" \\n\n\u{e9}";

fn busy_publisher() -> Publisher {
    let publisher = Publisher::start(crate::common::config("tcp://127.0.0.1:0", "b").queue_capacity(1000)).unwrap();
    publisher.committed(&Object::new("t", "k"), MediaSet::BOTH);
    publisher.committed(&Object::new("t", ""), MediaSet::CPU);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
    publisher
}

/// Every number and switch of the status, by the name it has in its JSON form, and whether there is a fault.
fn figures(status: &Status) -> Vec<(String, f64)> {
    let Value::Object(json) = serde_json::to_value(status).unwrap() else { panic!() };
    let number = |value: &Value| value.as_f64().or(value.as_bool().map(|on| f64::from(u8::from(on))));
    let fault = ("endpoint_fault".to_owned(), f64::from(u8::from(status.endpoint_fault.is_some())));
    let peers = ("peers".to_owned(), status.peers.len() as f64);
    json.iter().filter_map(|(name, value)| Some((name.clone(), number(value)?))).chain([fault, peers]).collect()
}

/// The conventional name of a figure.
fn shown_as(name: &str) -> [String; 2] {
    let stem = name.strip_suffix("_events").unwrap_or(name);
    [format!("kv_events_{stem}"), format!("kv_events_{stem}_total")]
}

/// What an exporter makes of the figures.
fn scraped(status: &Status) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || status.record(BACKEND));
    recorder.handle().render()
}

#[test]
fn a_scrape_is_read_by_prometheus_own_parser_and_says_what_the_status_says() {
    let Some(python) = python("prometheus-client") else { return };
    let status = busy_publisher().status();
    let mut parser = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/scrape.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    parser.stdin.take().unwrap().write_all(scraped(&status).as_bytes()).unwrap();
    let output = parser.wait_with_output().unwrap();
    assert!(output.status.success());
    let scrape: Value = serde_json::from_slice(&output.stdout).unwrap();

    for (name, value) in figures(&status) {
        if name == "dropped_events" {
            continue; // the sum of three others
        }
        let [gauge, counter] = shown_as(&name);
        let (kind, sample) = match (&scrape[&gauge], &scrape[&counter]) {
            (Value::Null, Value::Null) => panic!("{name} is not in the scrape: {scrape}"),
            (sample, Value::Null) => ("gauge", sample),
            (_, sample) => ("counter", sample),
        };
        assert_eq!((&sample[0], &sample[1]), (&Value::from(kind), &Value::from(true)), "{name}");
        assert_eq!(sample[2].as_f64(), Some(value), "{name}");
        assert_eq!(sample[3], serde_json::json!({"backend_id": BACKEND}), "{name}");
    }
    assert_eq!(scrape["kv_events_published_total"][2].as_f64(), Some(2.0));
    assert_eq!(scrape["kv_events_skipped_keyless_total"][2].as_f64(), Some(1.0));
    assert_eq!(scrape["kv_events_refused_total"][2].as_f64(), Some(1.0));
}

#[test]
fn the_facade_gets_the_same_figures() {
    let status = busy_publisher().status();
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        status.record("b");
        status.record("b"); // absolute: recording twice doubles nothing
    });
    let mut seen = 0;
    let recorded = recorder.snapshotter().snapshot().into_vec();
    for (name, value) in figures(&status) {
        for (key, _, help, shown) in &recorded {
            if !shown_as(&name).contains(&key.key().name().to_owned()) {
                continue;
            }
            assert!(help.is_some());
            assert_eq!(key.key().labels().map(|label| label.value()).collect::<Vec<_>>(), ["b"]);
            match shown {
                DebugValue::Counter(shown) => assert_eq!(*shown as f64, value, "{name}"),
                DebugValue::Gauge(shown) => assert_eq!(shown.0, value, "{name}"),
                DebugValue::Histogram(_) => panic!("{name} is no histogram"),
            }
            seen += 1;
        }
    }
    assert_eq!(seen, recorded.len(), "every figure recorded is one of the status");
    assert!(seen > 15);
}
