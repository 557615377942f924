//! What the encoder writes, read by decoders that are typed as the engines' own are: `tests/python/engine_reader.py`.
//!
//! Needs Python with `msgspec`, named by `KV_EVENTS_PYTHON`; without that variable there is nothing to run, and the tests
//! say so on the standard error.
#![cfg(feature = "serde")]

use test_support::python;

use crate::engine_events::{CACHE_KIND, CACHE_SALT, Hash, Key, LORA_NAME, OTHER, Parts, SESSION, parts, with_event};
use kv_events::decode::{Batch, Timestamp};
use kv_events::engine::{Form, encode_batch};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::io::Write;
use std::process::{Command, Stdio};

const BATCHES: usize = 1_000;

/// What one engine's events can say.
struct Dialect {
    name: &'static str,
    form: Form,
    byte_hashes: bool,
    extra_keys: bool,
    groups: bool,
    /// The texts, by number, that it has no field for.
    unknown: &'static [usize],
    lora_name: bool,
}

impl Dialect {
    /// The event without what the engine cannot say, and with what it always says.
    fn restrict(&self, mut parts: Parts) -> Parts {
        parts.kind %= 3;
        parts.pairs = false;
        parts.mm = None;
        parts.tokens.get_or_insert_default();
        parts.sizes[0].get_or_insert(16);
        if !self.byte_hashes {
            parts.hashes.retain(|hash| !matches!(hash, Hash::Bytes(_)));
            parts.parent = parts.parent.filter(|hash| !matches!(hash, Hash::Bytes(_)));
        }
        if !self.extra_keys {
            parts.keys = None;
        }
        // Extensions below zero are msgpack's own, and msgspec looks into them.
        for keys in parts.keys.iter_mut().flatten().flatten() {
            keys.retain(|key| !matches!(key, Key::Ext(..0, _)));
        }
        if !self.groups {
            parts.sizes[1..].fill(None);
            parts.texts[CACHE_KIND] = None;
        } else if self.form == Form::Positional && parts.sizes[1].is_none() {
            // A window without a group cannot be told from a group.
            parts.sizes[2] = None;
        }
        if !self.lora_name {
            parts.texts[LORA_NAME] = None;
        }
        for text in self.unknown {
            parts.texts[*text] = None;
        }
        parts.texts[CACHE_SALT] = None;
        parts
    }
}

/// Sends batches made up at random to the reader, each with what it says; the reader compares.
fn read_by(dialect: &Dialect) {
    let Some(python) = python("msgspec") else { return };
    let mut reader = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/engine_reader.py"))
        .arg(dialect.name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("KV_EVENTS_PYTHON runs");
    let mut lines = std::io::BufWriter::new(reader.stdin.take().expect("it is piped"));
    let mut runner = TestRunner::deterministic();
    let batches = proptest::collection::vec(parts(40), 0..3);
    let mut sent = 0;
    for number in 0..BATCHES {
        let parts = batches.new_tree(&mut runner).expect("there is always one").current();
        let mut encoded = Vec::new();
        let timestamp = Timestamp::Float(1000.0 + number as f64 / 8.0);
        let rank = (number % 3 > 0).then_some(number as i128);
        let restricted: Vec<Parts> = parts.into_iter().map(|parts| dialect.restrict(parts)).collect();
        sent += restricted.len();
        with_events(&restricted, &mut Vec::new(), &mut |events| {
            encode_batch(timestamp, events, rank, dialect.form, &mut encoded).expect("it encodes");
        });
        let said = serde_json::to_string(&Batch::parse(&encoded).expect("it decodes")).expect("it is JSON");
        let hex: String = encoded.iter().map(|byte| format!("{byte:02x}")).collect();
        if writeln!(lines, "{hex} {said}").is_err() {
            break; // the reader has ended, and said why
        }
    }
    drop(lines);
    let output = reader.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{} found fault with a batch", dialect.name);
    let expected = format!("{BATCHES} batches, {sent} events\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(sent > BATCHES / 2);
}

/// Calls back with the events that all the parts make.
fn with_events<'a>(
    parts: &[Parts],
    events: &mut Vec<kv_events::decode::Event<'a>>,
    then: &mut dyn FnMut(&[kv_events::decode::Event<'_>]),
) {
    match parts.split_first() {
        None => then(events),
        Some((first, rest)) => with_event(first, |event| {
            let mut events = events.clone();
            events.push(event);
            with_events(rest, &mut events, then);
        }),
    }
}

#[test]
fn vllm_in_array_form() {
    read_by(&Dialect {
        name: "vllm-array",
        form: Form::Positional,
        byte_hashes: true,
        extra_keys: true,
        groups: true,
        unknown: &[SESSION, OTHER],
        lora_name: true,
    });
}

#[test]
fn vllm_in_map_form() {
    read_by(&Dialect {
        name: "vllm-map",
        form: Form::Map,
        byte_hashes: true,
        extra_keys: true,
        groups: true,
        unknown: &[],
        lora_name: true,
    });
}

#[test]
fn sglang_in_array_form() {
    read_by(&Dialect {
        name: "sglang-array",
        form: Form::Positional,
        byte_hashes: false,
        extra_keys: false,
        groups: false,
        unknown: &[SESSION, OTHER],
        lora_name: false,
    });
}

#[test]
fn sglang_in_map_form() {
    read_by(&Dialect {
        name: "sglang-map",
        form: Form::Map,
        byte_hashes: false,
        extra_keys: false,
        groups: false,
        unknown: &[SESSION, OTHER],
        lora_name: false,
    });
}
