//! The examples do what they say. `cargo test` builds them beside this test.
#![cfg(feature = "zmq")]

use crate::common::sub::{Sub, loopback};
use kv_events::engine::{Form, encode_batch};
use kv_events::{MediaSet, Object, Publisher, decode};
use std::io::{BufRead, BufReader};
#[cfg(feature = "metrics")]
use std::io::{Read, Write};
#[cfg(feature = "metrics")]
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

struct Example {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Example {
    fn run(name: &str, arguments: &[&str]) -> Example {
        let tests = std::env::current_exe().unwrap();
        let path: PathBuf = [tests.parent().unwrap().parent().unwrap().join("examples"), name.into()].iter().collect();
        let mut child = Command::new(&path)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; `cargo build --examples` makes it", path.display()));
        let lines = BufReader::new(child.stdout.take().unwrap());
        Example { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it says nothing more");
        line.trim_end().to_owned()
    }

    fn ends(&mut self) -> String {
        let last = std::iter::from_fn(|| {
            let mut line = String::new();
            (self.lines.read_line(&mut line).unwrap() > 0).then(|| line.trim_end().to_owned())
        })
        .last();
        assert!(self.child.wait().unwrap().success());
        last.expect("it says something")
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn endpoint_in(line: &str) -> String {
    line.strip_prefix("publishing on ").expect(line).to_owned()
}

#[test]
fn embed_publishes_what_its_master_does() {
    let mut example = Example::run("embed", &["tcp://127.0.0.1:0", "60"]);
    let sub = Sub::connect(&endpoint_in(&example.line()));
    let mut seen = Vec::new();
    while !seen.iter().any(|brief: &String| brief == "cleared") {
        seen.extend(sub.next().events.iter().map(crate::common::Event::brief));
    }
    assert!(seen.iter().any(|brief| brief.starts_with("stored cpu block-")), "{seen:?}");
    assert!(seen.iter().any(|brief| brief.starts_with("stored disk block-")), "{seen:?}");
    assert!(example.ends().contains("abandoned: 0, closed: true"));
}

#[test]
fn subscribe_keeps_a_view() {
    let publisher = Publisher::start(loopback()).unwrap();
    let mut example = Example::run("subscribe", &[publisher.bound_endpoint().unwrap(), "300"]);
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| example.line());
        for n in 0.. {
            publisher.committed(&Object::new("t", &n.to_string()), MediaSet::CPU);
            std::thread::sleep(Duration::from_millis(2));
            if first.is_finished() {
                break;
            }
        }
        first.join().unwrap()
    });
    assert!(first.contains("Started") && first.contains("starting over"), "{first}");
    publisher.cleared("t");
    std::thread::scope(|scope| {
        let last = scope.spawn(|| example.ends());
        while !last.is_finished() {
            publisher.committed(&Object::new("t", "one"), MediaSet::BOTH);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(last.join().unwrap().ends_with(": 1 objects are readable"));
    });
}

#[test]
fn tokio_has_time_for_other_work_while_it_waits() {
    let publisher = zmq::Context::new().socket(zmq::XPUB).unwrap();
    publisher.set_rcvtimeo(60_000).unwrap();
    publisher.bind("tcp://127.0.0.1:*").unwrap();
    let endpoint = publisher.get_last_endpoint().unwrap().unwrap();
    let mut example = Example::run("tokio", &[&endpoint, "3"]);
    assert_eq!(example.line(), "waiting");
    assert_eq!(publisher.recv_bytes(0).unwrap(), b"\x01", "it subscribes, with nothing but its runtime to drive it");
    for sequence in 0_u64..3 {
        publisher
            .send_multipart([&b""[..], &sequence.to_be_bytes(), b"\x92\x01\x91\x91\xb0AllBlocksCleared"], 0)
            .unwrap();
        if sequence == 0 {
            assert!(example.line().contains("Started"));
        }
        assert_eq!(example.line(), format!("message {sequence}: 1 events"));
        // Long enough for the other task, if it has its turn; nothing depends on how long it is.
        std::thread::sleep(Duration::from_millis(20));
    }
    let last = example.ends();
    let turns = last.strip_prefix("3 messages; the other task had ").and_then(|rest| rest.strip_suffix(" turns"));
    assert!(turns.and_then(|turns| turns.parse::<u64>().ok()).is_some_and(|turns| turns > 0), "{last}");
}

#[test]
fn relay_counts_an_engine_and_publishes_it_again() {
    let engine = zmq::Context::new().socket(zmq::XPUB).unwrap();
    engine.set_rcvtimeo(60_000).unwrap();
    engine.bind("tcp://127.0.0.1:*").unwrap();
    let mut example = Example::run("relay", &[&engine.get_last_endpoint().unwrap().unwrap(), "tcp://127.0.0.1:0", "2"]);
    let sub = Sub::connect(&endpoint_in(&example.line()));
    assert_eq!(engine.recv_bytes(0).unwrap(), b"\x01", "the relay subscribes");

    let hashes = [7u64, u64::MAX].map(decode::BlockHash::from);
    let mut payload = Vec::new();
    let stored = decode::Event::Stored(decode::Stored::new(&hashes[..]));
    encode_batch(decode::Timestamp::Float(1.5), &[stored], None, Form::Positional, &mut payload).unwrap();
    // Numbers 0 and 5: four are missed in between.
    for sequence in [0u64, 5] {
        engine.send_multipart([&b""[..], &sequence.to_be_bytes(), &payload], 0).unwrap();
    }
    assert_eq!(example.ends(), "in: 2 messages, 2 events, 4 missed; out: 6 events");
    drop(sub);
}

#[test]
#[cfg(feature = "metrics")]
fn scrape_answers_with_the_figures() {
    let mut example = Example::run("scrape", &["tcp://127.0.0.1:0", "127.0.0.1:0", "1"]);
    let line = example.line();
    let address = line.strip_prefix("figures at http://").and_then(|line| line.strip_suffix("/metrics")).expect(&line);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\nkv_events_healthy{backend_id=\"scrape-example\"} 1\n"), "{answer}");
    assert!(example.child.wait().unwrap().success());
}
