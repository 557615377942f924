//! Faults that people who run such streams have met, each with what is right instead. The hex-like notation of a case's
//! bytes is spelled out by small builders.

use kv_events::Medium;
use kv_events::decode::{
    Batch, BlockHash, CacheKind, ErrorClass, Event, FrameError, Frames, List, MediumName, OtherFields, Removed, Stored,
    Timestamp,
};
use kv_events::engine::{EncodeError, Form, encode_batch, encode_event};

/// Concatenates encoded pieces.
fn cat(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}

/// A short text, encoded.
fn text(text: &str) -> Vec<u8> {
    assert!(text.len() < 32);
    cat(&[&[0xa0 | text.len() as u8], text.as_bytes()])
}

/// A batch `[1.0, [events...], nil]`.
fn batch_of(events: &[&[u8]]) -> Vec<u8> {
    assert!(events.len() < 16);
    cat(&[b"\x93\xcb\x3f\xf0\0\0\0\0\0\0", &[0x90 | events.len() as u8], &events.concat(), b"\xc0"])
}

fn stored<'a>(event: &Event<'a>) -> Stored<'a> {
    match event {
        Event::Stored(stored) => *stored,
        other => panic!("{other:?}"),
    }
}

fn removed<'a>(event: &Event<'a>) -> Removed<'a> {
    match event {
        Event::Removed(removed) => *removed,
        other => panic!("{other:?}"),
    }
}

fn low64s(hashes: List<'_, BlockHash<'_>>) -> Vec<u64> {
    hashes.iter().filter_map(|hash| hash.low64()).collect()
}

fn class(bytes: &[u8]) -> ErrorClass {
    Event::parse(bytes).expect_err("this event is bad").class()
}

/// The shape is chosen per event, both may stand in one batch, and they give equal results.
#[test]
fn map_and_array_in_one_batch() {
    let map = cat(&[b"\x82", &text("type"), &text("BlockRemoved"), &text("block_hashes"), b"\x91\x01"]);
    let array = cat(&[b"\x93", &text("BlockRemoved"), b"\x91\x01\xc0"]);
    let payload = batch_of(&[&map, &array]);
    let events: Vec<_> = Batch::parse(&payload).expect("a batch").events().map(|event| event.expect("good")).collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], events[1]);
    assert_eq!(low64s(removed(&events[0]).block_hashes), [1]);
}

/// Hashes of any width and sign are the same 64 bits, in the parent's place too.
#[test]
fn hashes_above_i63_and_below_zero() {
    let hashes = b"\x93\xcf\xb9\x69\xff\xff\xff\xff\xff\xff\xd3\xff\xff\xff\xff\xff\xff\xff\xff\x05";
    let event = cat(&[b"\x95", &text("BlockStored"), hashes, b"\xd3\xff\xff\xff\xff\xff\xff\xff\xff\x90\x01"]);
    let stored = stored(&Event::parse(&event).expect("good"));
    assert_eq!(low64s(stored.block_hashes), [0xb969_ffff_ffff_ffff, u64::MAX, 5]);
    assert_eq!(stored.parent_block_hash, Some(BlockHash::Int(u64::MAX)));
}

/// Byte hashes keep their value and have a 64-bit view; text in a hash's place is that event's error.
#[test]
fn byte_hashes_and_text_hashes() {
    let full: Vec<u8> = (0..32).collect();
    let bytes = cat(&[b"\x92", &text("BlockRemoved"), b"\x91\xc4\x20", &full]);
    let event = Event::parse(&bytes).expect("good");
    let hash = removed(&event).block_hashes.iter().next().expect("one hash");
    assert_eq!(hash, BlockHash::Bytes(&full));
    assert_eq!(hash.low64(), Some(0x1819_1a1b_1c1d_1e1f));
    assert_eq!(BlockHash::Bytes(&full[..7]).low64(), None);

    let hex = cat(&[b"\x92", &text("BlockRemoved"), b"\x91\xd9\x40", &[b'a'; 64]]);
    let payload = batch_of(&[&hex, &bytes]);
    let outcomes: Vec<_> = Batch::parse(&payload).expect("a batch").events().collect();
    let error = outcomes[0].expect_err("text is no hash");
    assert_eq!((error.class(), error.field()), (ErrorClass::WrongType, Some("block_hashes")));
    assert_eq!(outcomes[1], Ok(event));
}

/// What producers append later changes nothing in what is known.
#[test]
fn fields_of_the_future_are_stepped_over() {
    let known = [
        text("type"),
        text("BlockStored"),
        text("block_hashes"),
        b"\x91\x01".to_vec(),
        text("token_ids"),
        b"\x91\x02".to_vec(),
        text("block_size"),
        b"\x01".to_vec(),
    ]
    .concat();
    let plain = cat(&[b"\x84", &known]);
    let more = cat(&[
        b"\x87",
        &text("event_version"),
        b"\x01",
        &known,
        &text("origin"),
        &text("NEW"),
        &text("x"),
        b"\x91\x81",
        &text("a"),
        b"\x92\x01\x80",
    ]);
    let Ok(Event::Stored(mut more)) = Event::parse(&more) else { panic!("it is stored") };
    assert_eq!(more.other.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["event_version", "origin", "x"]);
    more.other = OtherFields::default();
    assert_eq!(Ok(Event::Stored(more)), Event::parse(&plain));

    let sixteen = cat(&[
        b"\xdc\x00\x10",
        &text("BlockStored"),
        b"\x91\x01\xc0\x91\x02\x01\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0",
        b"\x91\x91\x07\x92\x01\x80\xc3",
    ]);
    assert_eq!(Event::parse(&sixteen), Event::parse(&plain));
}

/// Position 7 is a LoRA name, nil or a map with the salt; the short forms stay readable in the same stream.
#[test]
fn a_map_in_the_place_of_the_lora_name() {
    let head = cat(&[&text("BlockStored"), b"\x91\x01\xc0\x91\x02\x01\xc0"]);
    let six = cat(&[b"\x96", &head]);
    let seven = cat(&[b"\x97", &head, b"\xc0"]);
    let named = cat(&[b"\x98", &head, b"\xc0", &text("lora-a")]);
    let salted = cat(&[b"\x98", &head, b"\xc0\x81", &text("cache_salt"), &text("t1")]);
    let payload = batch_of(&[&six, &seven, &named, &salted]);
    let read: Vec<_> = Batch::parse(&payload)
        .expect("a batch")
        .events()
        .map(|event| stored(&event.expect("all four decode")))
        .map(|stored| (stored.lora_name, stored.additions.cache_salt))
        .collect();
    assert_eq!(read, [(None, None), (None, None), (Some("lora-a"), None), (None, Some("t1"))]);
}

/// An unknown kind of cache is kept as its text; a group that does not fit is an error, not cut down to 0.
#[test]
fn unknown_cache_kinds_and_groups_out_of_range() {
    let map = cat(&[
        b"\x83",
        &text("type"),
        &text("BlockRemoved"),
        &text("block_hashes"),
        b"\x90",
        &text("kv_cache_spec_kind"),
        &text("hybrid_ssm_v9"),
    ]);
    let array = cat(&[b"\x94", &text("BlockRemoved"), b"\x90\xc0", &text("hybrid_ssm_v9")]);
    for bytes in [&map, &array] {
        let event = Event::parse(bytes).expect("delivered");
        assert_eq!(removed(&event).kv_cache_spec_kind, Some(CacheKind::Unknown("hybrid_ssm_v9")));
    }
    let wide = cat(&[b"\x94", &text("BlockRemoved"), b"\x90\xc0\xcf\0\0\0\x01\0\0\0\0"]);
    let error = Event::parse(&wide).expect_err("out of range");
    assert_eq!((error.class(), error.field()), (ErrorClass::WrongType, Some("group_idx")));
}

/// A timestamp keeps its kind; what is no time is a wrong type.
#[test]
fn timestamps_keep_their_kind() {
    let read = |ts: &[u8]| Batch::parse(&cat(&[b"\x92", ts, b"\x90"])).map(|batch| batch.timestamp());
    assert_eq!(read(b"\xcf\0\0\x01\x99\0\0\0\0"), Ok(Timestamp::Int(0x199_0000_0000)));
    assert_eq!(read(b"\xcb\x41\xda\x8f\x20\0\0\0\0"), Ok(Timestamp::Float(f64::from_bits(0x41da_8f20_0000_0000))));
    assert_eq!(read(b"\x00"), Ok(Timestamp::Int(0)));
    assert_eq!(read(b"\xd3\xff\xff\xff\xff\xff\xff\xff\xff"), Ok(Timestamp::Int(-1)));
    for bad in [&b"\xcb\x7f\xf8\0\0\0\0\0\0"[..], b"\xc0"] {
        let error = read(bad).expect_err("no timestamp");
        assert_eq!((error.class(), error.field()), (ErrorClass::WrongType, Some("ts")));
    }
    assert!(Timestamp::Int(2) > Timestamp::Int(1));
    assert_eq!(Timestamp::Int(1).partial_cmp(&Timestamp::Float(1.0)), None);
}

/// A store's event names its object; nil tokens, nil size and empty hashes are no errors.
#[test]
fn store_events_without_tokens() {
    let event = cat(&[
        b"\x88",
        &text("event_id"),
        b"\xcf\0\0\0\0\0\0\0\x07",
        &text("event_type"),
        &text("stored"),
        &text("type"),
        &text("BlockStored"),
        &text("block_size"),
        b"\xc0",
        &text("block_hashes"),
        b"\x90",
        &text("token_ids"),
        b"\xc0",
        &text("object_key"),
        &text("k"),
        &text("tenant_id"),
        &text("default"),
    ]);
    let event = Event::parse(&event).expect("good");
    let stored = stored(&event);
    assert_eq!((stored.token_ids, stored.block_size, stored.block_hashes.len()), (None, None, 0));
    assert_eq!(event.event_id(), Some(7));
    let envelope = stored.envelope.expect("an envelope");
    assert_eq!((envelope.object_key, envelope.tenant_id), (Some("k"), Some("default")));
}

/// Either name of the type is enough, a contradiction is an error, and the event's own rank wins.
#[test]
fn facts_that_are_told_twice() {
    let pair = |key: &str, value: &str| cat(&[&text(key), &text(value)]);
    let hashes = cat(&[&text("block_hashes"), b"\x90"]);
    let old = cat(&[b"\x82", &pair("type", "BlockRemoved"), &hashes]);
    let new = cat(&[b"\x82", &pair("event_type", "removed"), &hashes]);
    let both = cat(&[b"\x83", &pair("event_type", "removed"), &hashes, &pair("type", "BlockRemoved")]);
    let torn = cat(&[b"\x83", &pair("event_type", "removed"), &hashes, &pair("type", "BlockStored")]);
    assert!(Event::parse(&old).expect("good").envelope().is_none());
    assert_eq!(Event::parse(&new), Event::parse(&both));
    assert_eq!(class(&torn), ErrorClass::Conflict);

    let ranked = cat(&[b"\x82", &pair("event_type", "removed"), &text("dp_rank"), b"\x01"]);
    let payload = cat(&[b"\x93\x05\x92", &ranked, &new, b"\x02"]);
    let batch = Batch::parse(&payload).expect("a batch");
    let ranks: Vec<_> = batch.events().map(|event| batch.rank_of(&event.expect("good"))).collect();
    assert_eq!(ranks, [Some(1), Some(2)]);
}

/// The positional writer fills every place in front of the last one that is set.
#[test]
fn nil_holds_the_place_of_what_is_not_set() {
    let hashes = [BlockHash::Int(1)];
    let mut event = Stored::new(&hashes);
    event.token_ids = Some((&[2]).into());
    event.block_size = Some(1);
    event.group_idx = Some(7);
    let mut out = Vec::new();
    encode_event(&Event::Stored(event), Form::Positional, &mut out).expect("it has a positional form");
    // Places 5 to 8 are nil, place 9 is the group, as there are no infos.
    assert_eq!(out, cat(&[b"\x9a", &text("BlockStored"), b"\x91\x01\xc0\x91\x02\x01\xc0\xc0\xc0\xc0\x07"]));
    assert_eq!(Event::parse(&out), Ok(Event::Stored(event)));

    event.group_idx = None;
    event.kv_cache_spec_sliding_window = Some(64);
    let before = out.clone();
    let refused = encode_event(&Event::Stored(event), Form::Positional, &mut out);
    assert_eq!(refused, Err(EncodeError::NotPositional("kv_cache_spec_sliding_window")));
    assert_eq!(out, before, "a refused event leaves nothing behind");
}

/// Bytes behind a batch are an error, and a batch that is cut anywhere is none.
#[test]
fn bytes_behind_and_bytes_missing() {
    let whole = batch_of(&[&cat(&[b"\x92", &text("BlockRemoved"), b"\x91\xcd\x01\x02"])]);
    assert!(Batch::parse(&whole).is_ok());
    let class = |payload: &[u8]| Batch::parse(payload).expect_err("no batch").class();
    assert_eq!(class(&cat(&[&whole, b"\xc0"])), ErrorClass::TrailingBytes);
    assert_eq!(class(&cat(&[&whole, &whole])), ErrorClass::TrailingBytes);
    assert_eq!(class(b""), ErrorClass::Empty);
    for cut in 1..whole.len() {
        assert_eq!(class(&whole[..cut]), ErrorClass::Truncated, "cut to {cut}");
    }
}

/// Exactly three frames, the second of 8 bytes.
#[test]
fn messages_have_three_frames() {
    for count in [0, 1, 2, 4] {
        assert_eq!(Frames::parse(&vec![b"x".to_vec(); count]), Err(FrameError::Count(count)));
    }
    for len in [0, 3, 7, 9, 16] {
        assert_eq!(Frames::parse(&[vec![], vec![0; len], vec![]]), Err(FrameError::SequenceLength(len)));
    }
    let frames = [b"kv".to_vec(), 258_u64.to_be_bytes().to_vec(), vec![]];
    let message = Frames::parse(&frames).expect("a message");
    assert_eq!((message.topic, message.sequence, message.payload), (&b"kv"[..], 258, &b""[..]));
}

/// A medium is text, compared without regard to case, and an unknown one is kept. An empty one stays empty text.
#[test]
fn media_by_any_name() {
    let read = |medium: &[u8]| {
        let bytes = cat(&[b"\x93", &text("BlockRemoved"), b"\x90", medium]);
        removed(&Event::parse(&bytes).expect("no medium is an error")).medium.map(|medium| medium.as_str().to_owned())
    };
    for name in ["GPU", "cpu", "DISK", "remote-7", ""] {
        assert_eq!(read(&text(name)).as_deref(), Some(name));
    }
    assert_eq!(read(b"\xc0"), None);
    assert_eq!(MediumName::new("DISK"), MediumName::new("disk"));
    assert_eq!(MediumName::new("Cpu").known(), Some(Medium::Cpu));
    assert_eq!(MediumName::new("gpu").known(), None);
    assert_eq!(MediumName::from(Medium::Disk).as_str(), "disk");
}

/// One bad event costs only itself, wherever the fault is, and says where it was.
#[test]
fn a_bad_event_costs_only_itself() {
    let good = cat(&[b"\x92", &text("BlockRemoved"), b"\x91\x07"]);
    for bad in
        [&b"\x90"[..], b"\x80", b"\xc0", b"\x91\x05", b"\x91\xa1x", b"\xc4\x00", b"\x92\xacBlockRemoved\x91\xc4\x00"]
    {
        let payload = batch_of(&[&good, bad, &good]);
        let batch = Batch::parse(&payload).expect("a batch");
        let outcomes: Vec<_> = batch.events().collect();
        assert_eq!(outcomes.len(), 3);
        assert_eq!(outcomes[0], outcomes[2]);
        let error = outcomes[1].expect_err("the bad one");
        let place = 11 + good.len()..=11 + good.len() + bad.len();
        assert!(place.contains(&error.offset()), "{error} for {bad:x?}");
        assert!(error.to_string().starts_with(error.class().as_str()));
        let outlines: Vec<_> = batch.outlines().map(|outline| outline.is_ok()).collect();
        assert_eq!((outlines[0], outlines[2]), (true, true));
    }
}

/// A bad value is an error wherever it stands, also before a good one of the same key.
#[test]
fn a_nil_list_of_hashes_is_an_error_before_and_behind_a_good_one() {
    let (name, nil, good) = (text("block_hashes"), &b"\xc0"[..], &b"\x91\x05"[..]);
    for (first, last) in [(nil, good), (good, nil)] {
        let event = cat(&[b"\x83", &text("type"), &text("BlockRemoved"), &name, first, &name, last]);
        let error = Event::parse(&event).expect_err("one of them is nil");
        assert_eq!(error.field(), Some("block_hashes"), "{error}");
    }
    let twice = cat(&[b"\x83", &text("type"), &text("BlockRemoved"), &name, b"\x91\x04", &name, good]);
    assert_eq!(low64s(removed(&Event::parse(&twice).expect("the last counts")).block_hashes), [5]);
}

/// An outline steps over token ids, so that a fault in them does not matter to it.
#[test]
fn outlines_do_not_look_at_tokens() {
    let event = cat(&[b"\x97", &text("BlockStored"), b"\x91\x05\xc0\xa1x\x01\xc0", &text("GPU")]);
    let payload = batch_of(&[&event]);
    let batch = Batch::parse(&payload).expect("a batch");
    assert_eq!(batch.events().next().map(|event| event.map_err(|error| error.field())), Some(Err(Some("token_ids"))));
    let outline = batch.outlines().next().expect("one").expect("an outline");
    assert_eq!(low64s(outline.block_hashes), [5]);
    assert!(outline.medium.is_some_and(|medium| medium == "gpu"));
}

/// What no decoder could read is refused, with nothing written.
#[test]
fn the_encoder_refuses_what_cannot_be_read() {
    let mut out = vec![1, 2, 3];
    let empty = [BlockHash::Bytes(b"")];
    let event = Event::Removed(Removed::new(&empty));
    assert_eq!(encode_event(&event, Form::Map, &mut out), Err(EncodeError::EmptyHash));
    let nan = encode_batch(Timestamp::Float(f64::NAN), &[], None, Form::Map, &mut out);
    assert_eq!(nan, Err(EncodeError::NotFinite));
    let rank = encode_batch(Timestamp::Int(1), &[], Some(i128::MAX), Form::Map, &mut out);
    assert_eq!(rank, Err(EncodeError::IntegerRange));
    assert_eq!(out, [1, 2, 3]);
}
