//! Events of engines made up at random.

use kv_events::decode::{
    BlockHash, CacheKind, Cleared, Event, List, MmInfo, MmObject, Removed, Stored, TokenIds, Value,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// The number of a text in [`Parts::texts`].
pub const MEDIUM: usize = 0;
pub const LORA_NAME: usize = 1;
pub const CACHE_KIND: usize = 2;
pub const CACHE_SALT: usize = 3;
pub const SESSION: usize = 4;
/// `locality` of a stored event, `ownership` of a removed one, `source_kind` of a cleared one.
pub const OTHER: usize = 5;

/// An event that owns its parts, so that a borrowing one can be made from it.
#[derive(Clone, Debug)]
pub struct Parts {
    pub kind: u8,
    pub hashes: Vec<Hash>,
    pub parent: Option<Hash>,
    pub tokens: Option<Vec<u32>>,
    pub pairs: bool,
    pub sizes: [Option<u32>; 3],
    pub lora_id: Option<u64>,
    pub texts: [Option<String>; 6],
    pub keys: Option<Vec<Option<Vec<Key>>>>,
    pub mm: Option<Vec<Option<(u64, u64)>>>,
}

/// A block's hash.
#[derive(Clone, Debug)]
pub enum Hash {
    Int(u64),
    Negative(i64),
    Bytes(Vec<u8>),
}

impl Hash {
    fn borrow(&self) -> BlockHash<'_> {
        match self {
            Hash::Int(value) => BlockHash::Int(*value),
            Hash::Negative(value) => BlockHash::Negative(*value),
            Hash::Bytes(bytes) => BlockHash::Bytes(bytes),
        }
    }
}

fn hash() -> impl Strategy<Value = Hash> {
    prop_oneof![
        any::<u64>().prop_map(Hash::Int),
        (i64::MIN..0).prop_map(Hash::Negative),
        (-40..0_i64).prop_map(Hash::Negative),
        vec(any::<u8>(), 1..40).prop_map(Hash::Bytes),
    ]
}

/// Something in `extra_keys`.
#[derive(Clone, Debug)]
pub enum Key {
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
pub fn token() -> impl Strategy<Value = u32> {
    prop_oneof![0..128_u32, 0..256_u32, 0..65_536_u32, any::<u32>()]
}

/// Parts with at most so many tokens, of which there is a tree of values behind each.
pub fn parts(most_tokens: usize) -> impl Strategy<Value = Parts> {
    (
        (0..4_u8, vec(hash(), 0..40), of(hash()), of(vec(token(), 0..=most_tokens)), any::<bool>()),
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
pub fn with_event(parts: &Parts, check: impl FnOnce(Event<'_>)) {
    let hashes: Vec<BlockHash<'_>> = parts.hashes.iter().map(Hash::borrow).collect();
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
            stored.parent_block_hash = parts.parent.as_ref().map(Hash::borrow);
            stored.token_ids = match &parts.tokens {
                Some(_) if parts.pairs => Some(TokenIds::from(&pairs[..])),
                tokens => tokens.as_ref().map(TokenIds::from),
            };
            [stored.block_size, stored.group_idx, stored.kv_cache_spec_sliding_window] = parts.sizes;
            stored.lora_id = parts.lora_id;
            stored.medium = text(MEDIUM).map(Into::into);
            stored.lora_name = text(LORA_NAME);
            stored.kv_cache_spec_kind = text(CACHE_KIND).map(CacheKind::from_wire);
            stored.additions.cache_salt = text(CACHE_SALT);
            stored.additions.session_id = text(SESSION);
            stored.additions.locality = text(OTHER);
            stored.extra_keys = lists.as_ref().map(List::from);
            stored.block_mm_infos = mm.as_ref().map(List::from);
            check(Event::Stored(stored));
        }
        1 => {
            let mut removed = Removed::new(&hashes);
            removed.medium = text(MEDIUM).map(Into::into);
            [_, removed.group_idx, removed.kv_cache_spec_sliding_window] = parts.sizes;
            removed.kv_cache_spec_kind = text(CACHE_KIND).map(CacheKind::from_wire);
            removed.additions.ownership = text(OTHER);
            check(Event::Removed(removed));
        }
        2 => {
            let mut cleared = Cleared::default();
            cleared.additions.source_kind = text(OTHER);
            check(Event::Cleared(cleared));
        }
        _ => check(Event::Ignored),
    }
}
