//! What the tests of the publisher share: a raw subscriber, an in-memory socket, and payloads read by someone else's
//! decoder (`rmpv`), so that no mistake of this crate can hide itself.
#![allow(dead_code)]

pub mod recorder;
#[cfg(feature = "zmq")]
pub mod sub;
pub mod transport;

pub use transport::config;

use rmpv::Value;

/// One message as a subscriber sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub sequence: u64,
    pub timestamp: u64,
    pub events: Vec<Event>,
    pub dp_rank: u64,
}

/// One event map, keys in wire order.
#[derive(Clone, Debug, PartialEq)]
pub struct Event(pub Vec<(String, Value)>);

impl Event {
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn number(&self, key: &str) -> u64 {
        self.get(key).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number {key} in {self:?}"))
    }

    pub fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(key, _)| key.as_str()).collect()
    }

    /// `stored cpu KEY`, the way the tests write what they expect.
    pub fn brief(&self) -> String {
        let words = [self.text("event_type"), self.text("medium"), self.text("object_key")];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }
}

/// Reads a payload, which has to be one value with nothing behind it.
pub fn read_payload(sequence: u64, payload: &[u8]) -> Message {
    let mut rest = payload;
    let value = rmpv::decode::read_value(&mut rest).expect("the payload is msgpack");
    assert!(rest.is_empty(), "nothing stands behind the payload");
    let Value::Array(batch) = value else { panic!("not an array: {value}") };
    let [timestamp, Value::Array(events), dp_rank] = &batch[..] else { panic!("not a batch: {batch:?}") };
    let event = |value: &Value| match value {
        Value::Map(entries) => {
            Event(entries.iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), value.clone())).collect())
        }
        other => panic!("not an event: {other}"),
    };
    Message {
        sequence,
        timestamp: timestamp.as_u64().expect("an integer timestamp"),
        events: events.iter().map(event).collect(),
        dp_rank: dp_rank.as_u64().expect("a rank"),
    }
}

/// The events of some messages, in brief.
pub fn briefs(messages: &[Message]) -> Vec<String> {
    messages.iter().flat_map(|message| &message.events).map(Event::brief).collect()
}

/// Waits until `done`; a minute of waiting is a failure.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !done() {
        assert!(std::time::Instant::now() < until, "waited a minute until {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
