//! What goes over a real TCP socket, field by field.
#![cfg(feature = "zmq")]

use crate::common::sub::{Sub, loopback};
use crate::common::{Event, Message};
use kv_events::{Before, Config, MediaSet, Medium, Object, Outcome, Publisher, Refusal};
use rmpv::Value;
use std::time::Duration;

const ENVELOPE: [&str; 12] = [
    "event_id",
    "timestamp",
    "event_type",
    "type",
    "model_name",
    "block_size",
    "additional_salt",
    "lora_name",
    "tenant_id",
    "backend_id",
    "medium",
    "dp_rank",
];
const OF_OBJECT: [&str; 5] = ["group_id", "object_key", "seq_hashes", "block_hashes", "base_block_idx"];
const OF_STORED: [&str; 3] = ["parent_hash", "token_ids", "parent_block_hash"];
const LEGACY: [&str; 3] = ["type", "block_hashes", "parent_block_hash"];

/// One event of each kind: stored cpu, removed disk, cleared.
fn one_of_each(config: Config) -> (Vec<Message>, Publisher) {
    let publisher = Publisher::start(config).unwrap();
    let sub = Sub::of(&publisher);
    let object = Object::new("", "key/1").in_group("group");
    publisher.stored_on(&object, Medium::Cpu);
    publisher.removed_from(&Object { group: "", ..object }, Medium::Disk);
    publisher.cleared("tenant");
    (sub.events(3), publisher)
}

fn events(messages: &[Message]) -> Vec<&Event> {
    messages.iter().flat_map(|message| &message.events).collect()
}

#[test]
fn every_field_stands_in_its_place_with_the_legacy_names() {
    let config = loopback().model_name("m").block_size(16).additional_salt("s").lora_name("l").dp_rank(3);
    let (messages, _publisher) = one_of_each(config);
    let [stored, removed, cleared] = events(&messages)[..] else { panic!("{messages:?}") };

    assert_eq!(stored.keys(), [&ENVELOPE[..], &OF_OBJECT, &OF_STORED].concat());
    assert_eq!(removed.keys(), [&ENVELOPE[..], &OF_OBJECT].concat());
    assert_eq!(cleared.keys(), ENVELOPE);

    for (event, event_type, legacy) in [
        (stored, "stored", "BlockStored"),
        (removed, "removed", "BlockRemoved"),
        (cleared, "cleared", "AllBlocksCleared"),
    ] {
        assert_eq!((event.text("event_type"), event.text("type")), (event_type, legacy));
        assert_eq!((event.text("model_name"), event.number("block_size")), ("m", 16));
        assert_eq!((event.text("additional_salt"), event.text("lora_name")), ("s", "l"));
        assert_eq!((event.text("backend_id"), event.number("dp_rank")), ("backend-0", 3));
    }
    assert_eq!((stored.text("tenant_id"), stored.text("group_id")), ("default", "group"));
    assert_eq!((stored.text("object_key"), stored.text("medium")), ("key/1", "cpu"));
    assert_eq!((removed.text("object_key"), removed.text("medium")), ("key/1", "disk"));
    assert_eq!((cleared.text("tenant_id"), cleared.get("medium")), ("tenant", Some(&Value::Nil)));
    assert_eq!(removed.get("group_id"), Some(&Value::Nil), "an empty group is nil");
    for key in ["base_block_idx", "parent_hash", "token_ids", "parent_block_hash"] {
        assert_eq!(stored.get(key), Some(&Value::Nil), "{key}");
    }
    for key in ["seq_hashes", "block_hashes"] {
        assert_eq!(stored.get(key), Some(&Value::Array(vec![])), "{key}");
    }
    for message in &messages {
        assert_eq!(message.dp_rank, 3);
        assert!(message.events.iter().all(|event| event.number("timestamp") == message.timestamp));
    }
}

#[test]
fn without_the_legacy_names_they_are_absent_and_empty_settings_are_nil() {
    let (messages, _publisher) = one_of_each(loopback().emit_legacy_compat(false));
    let [stored, removed, cleared] = events(&messages)[..] else { panic!("{messages:?}") };
    assert_eq!((stored.0.len(), removed.0.len(), cleared.0.len()), (17, 15, 11));
    for event in [stored, removed, cleared] {
        for legacy in LEGACY {
            assert_eq!(event.get(legacy), None);
        }
        for empty in ["model_name", "block_size", "additional_salt", "lora_name"] {
            assert_eq!(event.get(empty), Some(&Value::Nil), "{empty}");
        }
    }
}

#[test]
fn a_session_is_told_on_stored_and_nowhere_else() {
    for legacy in [true, false] {
        let publisher = Publisher::start(loopback().emit_legacy_compat(legacy)).unwrap();
        let sub = Sub::of(&publisher);
        let object = Object::new("t", "key").in_group("group");
        let in_session = object.in_session("session-7");
        publisher.committed(&in_session, MediaSet::BOTH);
        publisher.changed(&in_session, Before::mutation(MediaSet::CPU), MediaSet::DISK);
        publisher.changed(&in_session, Before::mutation(MediaSet::BOTH), MediaSet::CPU);
        publisher.removed(&in_session, Before::mutation(MediaSet::BOTH));
        publisher.committed(&object.in_session(""), MediaSet::CPU);
        publisher.cleared("t");
        let messages = sub.events(9);
        let said: Vec<_> = events(&messages)
            .iter()
            .map(|event| (event.text("event_type"), event.get("session_id").and_then(Value::as_str)))
            .collect();
        let (stored, removed) = (("stored", Some("session-7")), ("removed", None));
        let expected =
            [stored, stored, removed, stored, removed, removed, removed, ("stored", None), ("cleared", None)];
        assert_eq!(said, expected);

        let with = |session: &[&'static str]| {
            let all = [&ENVELOPE[..], &OF_OBJECT[..4], session, &OF_OBJECT[4..], &OF_STORED].concat();
            all.into_iter().filter(|key| legacy || !LEGACY.contains(key)).collect::<Vec<_>>()
        };
        for event in events(&messages) {
            assert_eq!((event.text("tenant_id"), event.get("medium").is_some()), ("t", true));
            if event.text("event_type") == "stored" {
                let session = event.get("session_id").map(|_| "session_id");
                assert_eq!(event.keys(), with(session.as_slice()));
                assert_eq!((event.text("object_key"), event.text("group_id")), ("key", "group"));
            }
        }
    }
}

#[test]
fn a_session_counts_against_the_largest_event() {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    let object = Object::new("t", "key");
    let session = "s".repeat(16_384);
    assert!(matches!(
        publisher.committed(&object.in_session(&session), MediaSet::CPU),
        Outcome::Refused(Refusal::TooLarge { bytes: 16_385.., max_event_bytes: 16_384 })
    ));
    // Where nothing is stored no session is sent.
    let removed = publisher.removed(&object.in_session(&session), Before::mutation(MediaSet::CPU));
    assert_eq!(removed, Outcome::Accepted { events: 1 });
    // The longest that fits is taken, one byte more is not.
    let fits = (0..16_384).rev().find(|len| {
        let outcome = publisher.committed(&object.in_session(&session[..*len]), MediaSet::DISK);
        outcome.is_accepted()
    });
    let fits = fits.expect("some session fits");
    let messages = sub.events(2);
    let [removed, stored] = events(&messages)[..] else { panic!("{messages:?}") };
    assert_eq!(removed.get("session_id"), None);
    assert_eq!(stored.text("session_id"), &session[..fits]);
    let map = Value::Map(stored.0.iter().map(|(k, v)| (k.as_str().into(), v.clone())).collect());
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &map).unwrap();
    // A map header and two numbers of fixed width are longer than they would have to be.
    assert!((16_384 - 18..=16_384).contains(&bytes.len()), "{} bytes", bytes.len());
}

#[test]
fn ids_and_sequence_are_dense_from_one_and_time_does_not_go_back() {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    let keys: Vec<String> = (0..500).map(|n| format!("key-{n}")).collect();
    for key in &keys {
        publisher.committed(&Object::new("t", key), MediaSet::BOTH);
    }
    let messages = sub.events(1000);
    let mut next_id = events(&messages)[0].number("event_id");
    let mut before = (messages[0].sequence - 1, 0);
    for message in &messages {
        assert_eq!(message.sequence, before.0 + 1);
        assert!(message.timestamp >= before.1);
        assert!(message.events.len() <= 64);
        assert_eq!(message.events.len() % 2, 0, "a call is not torn");
        before = (message.sequence, message.timestamp);
        for event in &message.events {
            assert_eq!(event.number("event_id"), next_id);
            next_id += 1;
        }
    }
    let report = publisher.stop(Duration::from_secs(10));
    let status = publisher.status();
    assert!(report.closed);
    assert_eq!(status.published_events, next_id - 1, "ids count the published events from 1");
    assert_eq!((status.last_sequence, status.published_batches), (before.0, before.0));
}

#[test]
fn keys_of_any_length_arrive_verbatim() {
    let publisher = Publisher::start(loopback().max_event_bytes(1 << 21)).unwrap();
    let sub = Sub::of(&publisher);
    for len in [1, 31, 32, 255, 256, 2000, 65_535, 65_536, 300_000] {
        let key: String = "k\u{e9}\0".chars().cycle().take(len).collect();
        let object = Object::new("t", &key).in_group(&key).in_session(&key);
        assert!(publisher.committed(&object, MediaSet::CPU).is_accepted());
        let message = sub.next();
        let [event] = &message.events[..] else { panic!("{} events", message.events.len()) };
        assert_eq!(event.text("object_key"), key);
        assert_eq!(event.text("group_id"), key);
        assert_eq!(event.text("session_id"), key);
    }
}

#[test]
fn an_encoded_stored_event_is_hardly_longer_than_it_has_to_be() {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    let before = publisher.status().published_bytes;
    let (key, group) = ("k".repeat(100), "g".repeat(80));
    publisher.committed(&Object::new("", &key).in_group(&group), MediaSet::CPU);
    let message = sub.next();
    let _ = publisher.stop(Duration::from_secs(10));
    let envelope = 1 + 9 + 1 + 1;
    let event = (publisher.status().published_bytes - before) as usize - envelope;
    let shortest = {
        let map = Value::Map(message.events[0].0.iter().map(|(k, v)| (k.as_str().into(), v.clone())).collect());
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &map).unwrap();
        bytes.len()
    };
    assert!(event <= shortest + 16, "{event} bytes, {shortest} at least");
}
