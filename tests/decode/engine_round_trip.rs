//! What the encoder writes the decoder reads, and what the decoder has read the encoder writes again.

use crate::engine_events::{parts, token, with_event};
use kv_events::decode::{Batch, BlockHash, Event, Removed, Stored, Timestamp};
use kv_events::engine::{EncodeError, Form, encode_batch, encode_event};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// Encodes, decodes, compares; then the decoded one once more.
fn round_trip(event: &Event<'_>, form: Form) {
    let mut first = Vec::new();
    match encode_event(event, form, &mut first) {
        Ok(()) => {}
        Err(EncodeError::NotPositional(_)) if form == Form::Positional => return,
        Err(error) => panic!("{error}"),
    }
    let decoded = Event::parse(&first).expect("what was encoded decodes");
    assert_eq!(decoded, *event);
    let mut second = Vec::new();
    encode_event(&decoded, form, &mut second).expect("what was decoded encodes");
    assert_eq!(first, second, "and to the same bytes");
    assert_eq!(decoded.into_owned().event(), *event);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn events(parts in parts(600)) {
        with_event(&parts, |event| {
            round_trip(&event, Form::Map);
            round_trip(&event, Form::Positional);
        });
    }

    #[test]
    fn batches(parts in parts(600), ts in any::<i64>(), rank in of(any::<i64>())) {
        with_event(&parts, |event| {
            let mut payload = Vec::new();
            let (timestamp, rank) = (Timestamp::Int(i128::from(ts)), rank.map(i128::from));
            encode_batch(timestamp, &[event, event], rank, Form::Map, &mut payload).expect("it encodes");
            let batch = Batch::parse(&payload).expect("it decodes");
            assert_eq!((batch.timestamp(), batch.data_parallel_rank()), (timestamp, rank));
            assert!(batch.events().eq([Ok(event), Ok(event)]));
            assert_eq!(batch.outlines().flatten().map(|outline| outline.kind).collect::<Vec<_>>(), [event.kind(); 2]);
        });
    }

    /// The runs that are decoded ahead are the same tokens as those read one by one, wherever an odd one stands.
    #[test]
    fn tokens(tokens in vec(token(), 0..700), wide in vec(any::<prop::sample::Index>(), 0..4)) {
        let mut bytes = b"\x95\xabBlockStored\x90\xc0\xdd".to_vec();
        bytes.extend_from_slice(&(tokens.len() as u32).to_be_bytes());
        let wide: Vec<usize> = wide.iter().filter(|_| !tokens.is_empty()).map(|at| at.index(tokens.len())).collect();
        for (at, token) in tokens.iter().enumerate() {
            if wide.contains(&at) {
                rmp::encode::write_u64(&mut bytes, u64::from(*token)).expect("a vector takes it");
            } else {
                rmp::encode::write_uint(&mut bytes, u64::from(*token)).expect("a vector takes it");
            }
        }
        bytes.push(1);
        let Ok(Event::Stored(stored)) = Event::parse(&bytes) else { panic!("it decodes") };
        let read = stored.token_ids.expect("they are there");
        prop_assert_eq!(read.len(), tokens.len());
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), &tokens[..]);
        let mut folded = Vec::new();
        let mut iter = read.iter();
        folded.extend(iter.by_ref().take(3));
        iter.for_each(|token| folded.push(token));
        prop_assert_eq!(folded, tokens);
    }

    /// Any bytes at all: an answer, and the same one twice.
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(Event::parse(&bytes), Event::parse(&bytes));
        if let Ok(batch) = Batch::parse(&bytes) {
            prop_assert_eq!(batch.events().count(), batch.len());
        }
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn again(payload: &[u8], form: Form) -> Vec<u8> {
    let batch = Batch::parse(payload).expect("a batch");
    let events: Vec<Event<'_>> = batch.events().collect::<Result<_, _>>().expect("good events");
    let mut out = Vec::new();
    encode_batch(batch.timestamp(), &events, batch.data_parallel_rank(), form, &mut out).expect("it encodes");
    out
}

/// What earlier versions wrote: `block_mm_infos` nil, in a place that no engine has empty. It is read, and written without.
#[test]
fn there_is_no_place_for_infos_that_are_not_there() {
    let with_slot = unhex(
        "93cb3ff8000000000000919bab426c6f636b53746f72656492cf1122334455667788cffffffffffffffffacf992233445566778894cd03e8\
         cd044ccd04b0cd051402c0a3475055c0c0c00100",
    );
    let without = again(&with_slot, Form::Positional);
    let expected = unhex(
        "93cb3ff8000000000000919aab426c6f636b53746f72656492cf1122334455667788cffffffffffffffffacf992233445566778894cd03e8\
         cd044ccd04b0cd051402c0a3475055c0c00100",
    );
    assert_eq!(without, expected);
    assert_eq!(again(&without, Form::Positional), expected);
    let event = |payload| Batch::parse(payload).unwrap().events().next().unwrap().unwrap();
    assert_eq!(event(&with_slot), event(&without));
    let Event::Stored(stored) = event(&without) else { panic!("stored") };
    assert_eq!((stored.group_idx, stored.block_mm_infos), (Some(1), None));
}

#[test]
fn a_hash_keeps_its_sign() {
    let payload = unhex("93cb3ff80000000000009196ab426c6f636b53746f72656491fbf9910101c000");
    let hashes = [BlockHash::signed(-5)];
    let mut stored = Stored::new(&hashes);
    stored.parent_block_hash = Some(BlockHash::signed(-7));
    stored.token_ids = Some((&[1]).into());
    stored.block_size = Some(1);
    let decoded = Batch::parse(&payload).unwrap().events().next().unwrap().unwrap();
    assert_eq!(decoded, Event::Stored(stored));
    // Two places more, which typed decoders require.
    let expected = unhex("93cb3ff80000000000009198ab426c6f636b53746f72656491fbf9910101c0c0c000");
    assert_eq!(again(&payload, Form::Positional), expected);
    let map = again(&payload, Form::Map);
    let key = b"\xb1parent_block_hash\xf9";
    assert!(map.windows(key.len()).any(|window| window == key));
    assert_eq!(again(&map, Form::Positional), expected);
    // Its 64 bits are what counts, whatever the sign they came with.
    let (negative, positive) = (BlockHash::Negative(-7), BlockHash::Int(-7_i64 as u64));
    assert!(negative == positive && negative.cmp(&positive).is_eq() && negative.low64() == positive.low64());
    assert_eq!((negative.to_string(), positive.to_string()), ("18446744073709551609".into(), format!("{negative:?}")));
}

#[test]
fn what_typed_decoders_require_is_always_written() {
    let hashes = [BlockHash::Int(1)];
    let (stored, removed) = (Event::Stored(Stored::new(&hashes)), Event::Removed(Removed::new(&hashes)));
    let encoded = |event, form| {
        let mut out = Vec::new();
        encode_event(&event, form, &mut out).unwrap();
        out
    };
    assert_eq!(encoded(stored, Form::Positional), b"\x98\xabBlockStored\x91\x01\xc0\xc0\xc0\xc0\xc0\xc0");
    assert_eq!(encoded(removed, Form::Positional), b"\x93\xacBlockRemoved\x91\x01\xc0");
    let keys = |event| {
        let map = rmpv::decode::read_value(&mut &encoded(event, Form::Map)[..]).unwrap();
        let map = map.as_map().unwrap().clone();
        map.into_iter().map(|(key, value)| (key.to_string(), value.is_nil())).collect::<Vec<_>>()
    };
    let expected = |names: &[&str]| {
        let text = |name: &str| format!("\"{name}\"");
        let set = [("type", false), ("block_hashes", false)];
        let nil = names.iter().map(|name| (*name, true));
        set.into_iter().chain(nil).map(|(name, nil)| (text(name), nil)).collect::<Vec<_>>()
    };
    let all = ["parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name"];
    assert_eq!(keys(stored), expected(&all));
    assert_eq!(keys(removed), expected(&["medium"]));
}
