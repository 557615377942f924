//! What the encoder writes the decoder reads, and what the decoder has read the encoder writes again.

use kv_events::decode::{
    Batch, BlockHash, CacheKind, Cleared, Event, List, MmInfo, MmObject, Removed, Stored, Timestamp, TokenIds, Value,
};
use kv_events::engine::{EncodeError, Form, encode_batch, encode_event};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// An event that owns its parts, so that a borrowing one can be made from it.
#[derive(Clone, Debug)]
struct Parts {
    kind: u8,
    hashes: Vec<Result<u64, Vec<u8>>>,
    parent: Option<u64>,
    tokens: Option<Vec<u32>>,
    pairs: bool,
    sizes: [Option<u32>; 3],
    lora_id: Option<u64>,
    texts: [Option<String>; 6],
    keys: Option<Vec<Option<Vec<Key>>>>,
    mm: Option<Vec<Option<(u64, u64)>>>,
}

#[derive(Clone, Debug)]
enum Key {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Ext(i8, Vec<u8>),
}

impl Key {
    fn value(&self) -> Value<'_> {
        match self {
            Key::Nil => Value::Nil,
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(value) => Value::Int(i128::from(*value)),
            Key::Float(value) => Value::Float(*value),
            Key::Text(text) => Value::Text(text),
            Key::Bytes(bytes) => Value::Bytes(bytes),
            Key::Ext(kind, bytes) => Value::Ext(*kind, bytes),
        }
    }
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        Just(Key::Nil),
        any::<bool>().prop_map(Key::Bool),
        any::<i64>().prop_map(Key::Int),
        any::<f64>().prop_map(Key::Float),
        ".{0,40}".prop_map(Key::Text),
        vec(any::<u8>(), 0..40).prop_map(Key::Bytes),
        (any::<i8>(), vec(any::<u8>(), 0..20)).prop_map(|(kind, bytes)| Key::Ext(kind, bytes)),
    ]
}

/// Token ids of all encoded sizes.
fn token() -> impl Strategy<Value = u32> {
    prop_oneof![0..128_u32, 0..256_u32, 0..65_536_u32, any::<u32>()]
}

fn parts() -> impl Strategy<Value = Parts> {
    let hash = prop_oneof![any::<u64>().prop_map(Ok), vec(any::<u8>(), 1..40).prop_map(Err)];
    (
        (0..4_u8, vec(hash, 0..40), of(any::<u64>()), of(vec(token(), 0..600)), any::<bool>()),
        (proptest::array::uniform3(of(any::<u32>())), of(any::<u64>()), proptest::array::uniform6(of(".{0,40}"))),
        (of(vec(of(vec(key(), 0..5)), 0..5)), of(vec(of(any::<(u64, u64)>()), 0..4))),
    )
        .prop_map(|((kind, hashes, parent, tokens, pairs), (sizes, lora_id, texts), (keys, mm))| Parts {
            kind,
            hashes,
            parent,
            tokens,
            pairs,
            sizes,
            lora_id,
            texts,
            keys,
            mm,
        })
}

/// Calls back with the event that the parts make.
fn with_event(parts: &Parts, check: impl FnOnce(Event<'_>)) {
    let hashes: Vec<BlockHash<'_>> = parts
        .hashes
        .iter()
        .map(|hash| hash.as_ref().map_or_else(|bytes| BlockHash::Bytes(bytes), |int| BlockHash::Int(*int)))
        .collect();
    let pairs: Vec<(u32, u32)> =
        parts.tokens.iter().flatten().zip(parts.tokens.iter().flatten().skip(1)).map(|(a, b)| (*a, *b)).collect();
    let keys: Option<Vec<Option<Vec<Value<'_>>>>> = parts.keys.as_ref().map(|blocks| {
        blocks.iter().map(|block| block.as_ref().map(|keys| keys.iter().map(Key::value).collect())).collect()
    });
    let lists: Option<Vec<Option<List<'_, Value<'_>>>>> =
        keys.as_ref().map(|blocks| blocks.iter().map(|block| block.as_ref().map(List::from)).collect());
    let offsets: Vec<[(u64, u64); 1]> = parts.mm.iter().flatten().flatten().map(|offsets| [*offsets]).collect();
    let objects: Vec<[MmObject<'_>; 1]> = offsets
        .iter()
        .map(|offsets| [MmObject { hash: BlockHash::Int(offsets[0].0), offsets: offsets.into() }])
        .collect();
    let mut objects = objects.iter();
    let mm: Option<Vec<Option<MmInfo<'_>>>> = parts.mm.as_ref().map(|infos| {
        infos
            .iter()
            .map(|info| info.and_then(|_| objects.next()).map(|objects| MmInfo { objects: objects.into() }))
            .collect()
    });
    let text = |n: usize| parts.texts[n].as_deref();
    match parts.kind {
        0 => {
            let mut stored = Stored::new(&hashes);
            stored.parent_block_hash = parts.parent.map(BlockHash::Int);
            stored.token_ids = match &parts.tokens {
                Some(_) if parts.pairs => Some(TokenIds::from(&pairs[..])),
                tokens => tokens.as_ref().map(TokenIds::from),
            };
            [stored.block_size, stored.group_idx, stored.kv_cache_spec_sliding_window] = parts.sizes;
            stored.lora_id = parts.lora_id;
            stored.medium = text(0).map(Into::into);
            stored.lora_name = text(1);
            stored.kv_cache_spec_kind = text(2).map(CacheKind::from_wire);
            stored.additions.cache_salt = text(3);
            stored.additions.session_id = text(4);
            stored.additions.locality = text(5);
            stored.extra_keys = lists.as_ref().map(List::from);
            stored.block_mm_infos = mm.as_ref().map(List::from);
            check(Event::Stored(stored));
        }
        1 => {
            let mut removed = Removed::new(&hashes);
            removed.medium = text(0).map(Into::into);
            [_, removed.group_idx, removed.kv_cache_spec_sliding_window] = parts.sizes;
            removed.kv_cache_spec_kind = text(2).map(CacheKind::from_wire);
            removed.additions.ownership = text(5);
            check(Event::Removed(removed));
        }
        2 => {
            let mut cleared = Cleared::default();
            cleared.additions.source_kind = text(5);
            check(Event::Cleared(cleared));
        }
        _ => check(Event::Ignored),
    }
}

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
    fn events(parts in parts()) {
        with_event(&parts, |event| {
            round_trip(&event, Form::Map);
            round_trip(&event, Form::Positional);
        });
    }

    #[test]
    fn batches(parts in parts(), ts in any::<i64>(), rank in of(any::<i64>())) {
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
