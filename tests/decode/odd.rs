//! Payloads that are odd and not wrong: what their producers mean by them is delivered, and costs nothing else.

use kv_events::decode::{Batch, ErrorClass, Event, ForeignKind, Stored, Token, Value};
use kv_events::engine::{EncodeError, Form, encode_batch, encode_event};

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

/// `{"type": tag, ...}` in msgpack.
fn map(tag: &str, rest: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = vec![0x81 + rest.len() as u8];
    for (key, value) in [("type", &text(tag)[..])].iter().chain(rest) {
        out.extend(text(key));
        out.extend_from_slice(value);
    }
    out
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    rmp::encode::write_str(&mut out, text).expect("a vector takes it");
    out
}

fn batch(events: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0x92, 1, 0x90 + events.len() as u8];
    events.iter().for_each(|event| out.extend_from_slice(event));
    out
}

fn stored<'a>(event: &'a [u8]) -> Stored<'a> {
    match Event::parse(event) {
        Ok(Event::Stored(stored)) => stored,
        other => panic!("{other:?}"),
    }
}

#[test]
fn token_ids_may_hold_text() {
    let payload = unhex(
        "92019184a474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739101a9746f6b656e5f6964739207a26162aa626c6f63\
         6b5f73697a6502",
    );
    let parsed = Batch::parse(&payload).unwrap();
    let events: Vec<Event<'_>> = parsed.events().collect::<Result<_, _>>().unwrap();
    let [Event::Stored(stored)] = events[..] else { panic!("{events:?}") };
    assert_eq!(stored.token_ids, None, "they are not all integers");
    let tokens: Vec<_> = stored.mixed_token_ids.unwrap().iter().collect();
    assert_eq!(tokens, [Token::Id(7), Token::Text("ab")]);
    assert_eq!((stored.block_size, stored.block_hashes.len()), (Some(2), 1));
    assert_eq!(events[0].into_owned().event(), events[0]);

    for form in [Form::Map, Form::Positional] {
        let mut again = Vec::new();
        encode_batch(parsed.timestamp(), &events, None, form, &mut again).unwrap();
        assert!(Batch::parse(&again).unwrap().events().eq([Ok(events[0])]), "{form:?}");
    }
    #[cfg(feature = "serde")]
    assert_eq!(serde_json::to_value(events[0]).unwrap()["token_ids"], serde_json::json!([7, "ab"]));
}

#[test]
fn what_is_neither_integer_nor_text_among_token_ids_is_still_wrong() {
    let head = b"\x95\xabBlockStored\x91\x01\xc0";
    let of = |tokens: &[u8]| [head, tokens, b"\x01"].concat();
    // A float, nil, a pair, a negative, 2^32, bytes, and text in the place of the list, each beside good text.
    for tokens in [&b"\x92\xa1a\xcb\0\0\0\0\0\0\0\0"[..], b"\x92\xa1a\xc0", b"\x92\xa1a\x92\x01\x02", b"\x92\xa1a\xff"]
    {
        assert_eq!(Event::parse(&of(tokens)).unwrap_err().class(), ErrorClass::WrongType, "{tokens:x?}");
    }
    for tokens in [&b"\x92\xa1a\xcf\0\0\0\x01\0\0\0\0"[..], b"\x92\xa1a\xc4\x01a", b"\xa1a", b"\x92\x92\x01\x02\xa1a"] {
        assert_eq!(Event::parse(&of(tokens)).unwrap_err().class(), ErrorClass::WrongType, "{tokens:x?}");
    }
    assert_eq!(Event::parse(&of(b"\x92\x01\xa1\xff")).unwrap_err().class(), ErrorClass::InvalidUtf8);
    // Long runs, the text anywhere in them.
    for at in [0, 1, 15, 16, 200, 299] {
        let mut tokens = b"\xdc\x01\x2c".to_vec();
        (0..300).for_each(|n| tokens.extend_from_slice(if n == at { b"\xa2ab" } else { b"\xcd\x12\x34" }));
        let event = of(&tokens);
        let mixed: Vec<_> = stored(&event).mixed_token_ids.unwrap().iter().collect();
        assert_eq!((mixed.len(), mixed[at]), (300, Token::Text("ab")));
        assert_eq!(mixed.iter().filter(|token| **token == Token::Id(0x1234)).count(), 299);
    }
}

#[test]
fn of_token_ids_that_come_twice_the_last_count() {
    let event = |tokens: [&[u8]; 2]| {
        let [first, second] = tokens;
        let rest =
            [("block_hashes", &b"\x91\x01"[..]), ("block_size", b"\x01"), ("token_ids", first), ("token_ids", second)];
        map("BlockStored", &rest)
    };
    let plain_last = event([b"\x91\xa1a", b"\x91\x05"]);
    let mixed_last = event([b"\x91\x05", b"\x91\xa1a"]);
    let nil_last = event([b"\x91\xa1a", b"\xc0"]);
    let is_set = |event| (stored(event).token_ids.is_some(), stored(event).mixed_token_ids.is_some());
    assert_eq!(
        [is_set(&plain_last), is_set(&mixed_last), is_set(&nil_last)],
        [(true, false), (false, true), (false, false)]
    );
}

#[test]
fn fields_without_a_place_are_there_raw() {
    let hashes = ("block_hashes", &b"\x91\x01"[..]);
    let event = map(
        "BlockStored",
        &[
            ("mm_keys", b"\x92\xa1k\xc0"),
            hashes,
            ("lookahead_token_ids", b"\x91\x07"),
            ("token_ids", b"\x90"),
            ("worker_id", b"\x03"),
            ("block_size", b"\x01"),
            ("connector_block_hash", b"\xc4\x02\xab\xcd"),
            ("worker_id", b"\x04"),
        ],
    );
    let found = stored(&event);
    let names: Vec<&str> = found.other.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["mm_keys", "lookahead_token_ids", "worker_id", "connector_block_hash", "worker_id"]);
    let Some(Value::Array(keys)) = found.other.get("mm_keys") else { panic!("{:?}", found.other) };
    assert!(keys.iter().eq([Value::Text("k"), Value::Nil]));
    assert_eq!(found.other.get("worker_id"), Some(Value::Int(4)), "the last");
    assert_eq!(found.other.get("connector_block_hash"), Some(Value::Bytes(b"\xab\xcd")));
    assert_eq!((found.other.get("block_hashes"), found.other.get("nothing")), (None, None));

    let removed = map("BlockRemoved", &[hashes, ("remaining_copy_counts", b"\x92\x00\x02")]);
    let removed = Event::parse(&removed).unwrap();
    assert!(matches!(removed.other().get("remaining_copy_counts"), Some(Value::Array(counts)) if counts.len() == 2));
    let plain = map("BlockRemoved", &[hashes]);
    assert!(Event::parse(&plain).unwrap().other().is_empty());
    assert_ne!(Event::parse(&plain).unwrap(), removed);

    // They are sent on, where there is a place for names.
    let mut again = Vec::new();
    encode_event(&removed, Form::Map, &mut again).unwrap();
    assert_eq!(Event::parse(&again), Ok(removed));
    assert!(matches!(encode_event(&removed, Form::Positional, &mut again), Err(EncodeError::NotPositional(_))));
}

#[test]
fn keys_that_are_no_text_are_nobodys() {
    let event = b"\x84\xa4type\xb0AllBlocksCleared\x01\x02\xa1\xff\x03\xa1x\x04";
    let event = Event::parse(event).unwrap();
    assert!(event.other().iter().eq([("x", Value::Int(4))]));
}

#[test]
fn a_clear_may_be_of_one_medium() {
    let of = |event: &[u8]| match Event::parse(event).unwrap() {
        Event::Cleared(cleared) => {
            let payload = batch(&[event]);
            let outline = Batch::parse(&payload).unwrap().outlines().next().unwrap().unwrap().medium;
            assert_eq!(outline.map(|medium| medium.to_string()), cleared.medium.map(|medium| medium.to_string()));
            (cleared.medium.map(|medium| medium.to_string()), cleared.additions.source_kind.map(str::to_owned))
        }
        other => panic!("{other:?}"),
    };
    let both = |medium: &str, kind: &str| (Some(medium.to_owned()), Some(kind.to_owned()));
    let cleared = |medium: &[u8], kind: &[u8]| map("AllBlocksCleared", &[("medium", medium), ("source_kind", kind)]);
    assert_eq!(of(&cleared(b"\xa3CPU", b"\xa3src")), both("CPU", "src"));
    assert_eq!(of(&cleared(b"\xc0", b"\xc0")), (None, None));
    assert_eq!(of(&cleared(b"\x05", b"\xc0")), (None, None), "it is cleared all the same");

    let places = |places: &[&[u8]]| {
        let tag = [&[0x91 + places.len() as u8], &text("AllBlocksCleared")[..]].concat();
        [&tag[..], &places.concat()].concat()
    };
    let only = |medium: &str| (Some(medium.to_owned()), None);
    assert_eq!(of(&places(&[b"\xa3CPU"])), only("CPU"));
    assert_eq!(of(&places(&[b"\xaacpu_pinned"])), only("cpu_pinned"));
    assert_eq!(of(&places(&[b"\xa3src"])), (None, Some("src".to_owned())));
    assert_eq!(of(&places(&[b"\xa3GPU", b"\xa3src"])), both("GPU", "src"));
    assert_eq!(of(&places(&[b"\xa3src", b"\xa3GPU", b"\xa3CPU"])), both("GPU", "src"));
    assert_eq!(of(&places(&[b"\xc0", b"\xa3GPU"])), only("GPU"));
    assert_eq!(of(&places(&[b"\x81\x01\x02", b"\xa1\xff", b"\xa3GPU"])), (None, None));
    assert_eq!(of(&places(&[])), (None, None));

    // The JSON form leaves the places out, of the owned event too.
    #[cfg(feature = "serde")]
    {
        let event = places(&[b"\xa3src", b"\xa3GPU"]);
        let event = Event::parse(&event).unwrap();
        let json = serde_json::json!({"type": "cleared"});
        assert_eq!(serde_json::to_value(event).unwrap(), json);
        assert_eq!(serde_json::to_value(event.into_owned()).unwrap(), json);
    }

    let mut again = Vec::new();
    let medium = places(&[b"\xa3CPU"]);
    encode_event(&Event::parse(&medium).unwrap(), Form::Positional, &mut again).unwrap();
    assert_eq!(again, medium);
    for refused in [cleared(b"\xa4tape", b"\xc0"), cleared(b"\xc0", b"\xa3src")] {
        let refused = encode_event(&Event::parse(&refused).unwrap(), Form::Positional, &mut Vec::new());
        assert!(matches!(refused, Err(EncodeError::NotPositional("medium" | "source_kind"))));
    }
}

#[test]
fn a_batch_map_may_call_its_rank_otherwise() {
    for name in ["data_parallel_rank", "dp_rank", "attn_dp_rank"] {
        let payload = [b"\x83", &text("ts")[..], b"\x01", &text(name), b"\x07", &text("events"), b"\x90"].concat();
        assert_eq!(Batch::parse(&payload).unwrap().data_parallel_rank(), Some(7), "{name}");
        let payload = [b"\x83", &text("ts")[..], b"\x01", &text(name), b"\xa1x", &text("events"), b"\x90"].concat();
        let error = Batch::parse(&payload).unwrap_err();
        assert_eq!((error.class(), error.field()), (ErrorClass::WrongType, Some(name)));
    }
}

#[test]
fn another_engines_kind_of_event_is_told_from_damage() {
    let foreign = [ForeignKind::Inactive, ForeignKind::Transferred, ForeignKind::Snapshot];
    for (kind, tag) in foreign.into_iter().zip(["BlockInactive", "BlockTransferred", "BlockSnapshot"]) {
        assert_eq!(kind.tag(), tag);
        let positional = [b"\x92", &text(tag)[..], b"\x91\x01"].concat();
        let by_name = map(tag, &[("block_hashes", b"\x91\x01")]);
        let good = map("AllBlocksCleared", &[]);
        let payload = batch(&[&positional, &by_name, &good]);
        let parsed = Batch::parse(&payload).unwrap();
        let events: Vec<_> = parsed.events().collect();
        for error in events[..2].iter().map(|event| event.unwrap_err()) {
            assert_eq!((error.class(), error.foreign_kind()), (ErrorClass::UnknownTag, Some(kind)));
            let said = error.to_string();
            assert!(said.starts_with(&format!("unknown_tag: `{tag}` is a kind of event")), "{said}");
        }
        assert!(events[2].is_ok());
        let outlines: Vec<_> = parsed.outlines().collect();
        assert_eq!(outlines[0].unwrap_err().foreign_kind(), Some(kind));
    }
    // A tag that nobody is known to send may be a damaged one.
    for tag in ["BlockStore", "Unheard-of", "blockinactive"] {
        let error = Event::parse(&map(tag, &[])).unwrap_err();
        assert_eq!((error.class(), error.foreign_kind()), (ErrorClass::UnknownTag, None));
    }
    let damaged = Event::parse(b"\x92\xacBlockRemoved\x05").unwrap_err();
    assert_eq!(damaged.foreign_kind(), None);
}
