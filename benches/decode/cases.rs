//! The payloads: what masters and engines send all day, and what an enemy would.

use kv_events::decode::{BlockHash, CacheKind, Event, Stored, Timestamp};
use kv_events::engine::{Form, encode_batch};
use rmp::encode::{self as msgpack, ByteBuf};

use crate::{Contender, contenders};

pub struct Case {
    pub name: &'static str,
    /// Of one kind, but no two the same: a processor learns a single payload's branches by heart, which no stream allows.
    pub payloads: Vec<Vec<u8>>,
    /// Events of each that can be read.
    pub events: u64,
    pub rmp_serde: Contender,
    pub rmp_serde_borrowed: Contender,
}

pub fn all() -> Vec<Case> {
    macro_rules! case {
        ($name:literal, $payload:expr, $events:expr, $struct:ident) => {
            Case {
                name: $name,
                payloads: (0..8).map($payload).collect(),
                events: $events,
                rmp_serde: |payload| contenders::$struct::<String>(payload),
                rmp_serde_borrowed: |payload| contenders::$struct::<&str>(payload),
            }
        };
    }
    let cut = |seed| {
        let mut payload = tokens(seed, Form::Positional);
        payload.pop();
        payload
    };
    vec![
        case!("master-64", |seed| master(seed, 64), 64, rmp_serde_master),
        case!("tokens-512-positional", |seed| tokens(seed, Form::Positional), 1, rmp_serde_positional),
        case!("tokens-512-map", |seed| tokens(seed, Form::Map), 1, rmp_serde_map),
        case!("hostile-junk", |seed| junk(seed, 64), 64, rmp_serde_map),
        case!("hostile-cut", cut, 0, rmp_serde_positional),
    ]
}

/// A repeatable stream of numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// A batch as this crate's publisher sends it: legacy names on, keys of 100 bytes.
fn master(seed: u64, events: u32) -> Vec<u8> {
    const TIMESTAMP: u64 = 1_790_000_000_123;
    let mut numbers = Numbers(seed);
    let mut out = ByteBuf::new();
    let text = |out: &mut ByteBuf, key: &str, value: Option<&str>| {
        let Ok(()) = msgpack::write_str(out, key);
        match value {
            Some(value) => {
                let Ok(()) = msgpack::write_str(out, value);
            }
            None => {
                let Ok(()) = msgpack::write_nil(out);
            }
        }
    };
    let number = |out: &mut ByteBuf, key: &str, value: u64| {
        let Ok(()) = msgpack::write_str(out, key);
        let Ok(_) = msgpack::write_uint(out, value);
    };
    let fixed = |out: &mut ByteBuf, key: &str, value: u64| {
        let Ok(()) = msgpack::write_str(out, key);
        let Ok(()) = msgpack::write_u64(out, value);
    };
    let empty = |out: &mut ByteBuf, key: &str| {
        let Ok(()) = msgpack::write_str(out, key);
        let Ok(_) = msgpack::write_array_len(out, 0);
    };
    let Ok(_) = msgpack::write_array_len(&mut out, 3);
    let Ok(()) = msgpack::write_u64(&mut out, TIMESTAMP);
    let Ok(_) = msgpack::write_array_len(&mut out, events);
    for n in 0..events {
        let stored = n % 3 != 2;
        let Ok(_) = msgpack::write_map_len(&mut out, if stored { 20 } else { 17 });
        fixed(&mut out, "event_id", 1_000_000 + u64::from(n));
        fixed(&mut out, "timestamp", TIMESTAMP);
        text(&mut out, "event_type", Some(if stored { "stored" } else { "removed" }));
        text(&mut out, "type", Some(if stored { "BlockStored" } else { "BlockRemoved" }));
        text(&mut out, "model_name", Some("meta-llama/Llama-3.1-70B-Instruct"));
        number(&mut out, "block_size", 64);
        text(&mut out, "additional_salt", None);
        text(&mut out, "lora_name", None);
        text(&mut out, "tenant_id", Some("tenant-17"));
        text(&mut out, "backend_id", Some("store-node-03:50051"));
        text(&mut out, "medium", Some(if n % 2 == 0 { "cpu" } else { "disk" }));
        number(&mut out, "dp_rank", 0);
        text(&mut out, "group_id", Some("g42"));
        let key = format!(
            "llama-3.1-70b@tp_rank:2@pcp1@dcp0@pp_rank:3@group:0@{:016x}{:032x}",
            numbers.next(),
            numbers.next()
        );
        text(&mut out, "object_key", Some(&key));
        empty(&mut out, "seq_hashes");
        empty(&mut out, "block_hashes");
        text(&mut out, "base_block_idx", None);
        if stored {
            text(&mut out, "parent_hash", None);
            text(&mut out, "token_ids", None);
            text(&mut out, "parent_block_hash", None);
        }
    }
    let Ok(_) = msgpack::write_uint(&mut out, 0);
    out.into_vec()
}

/// A batch of one stored event: 32 blocks of 16 tokens, ids as a vocabulary of 128k gives them.
fn tokens(seed: u64, form: Form) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let hashes: Vec<BlockHash<'_>> = (0..32).map(|_| BlockHash::Int(numbers.next())).collect();
    let tokens: Vec<u32> = (0..512)
        .map(|_| {
            // Frequent tokens have small numbers: a quarter of a text is below 1000.
            let range = if numbers.next() % 4 == 0 { 1_000 } else { 128_000 };
            (numbers.next() % range) as u32
        })
        .collect();
    let mut stored = Stored::new(&hashes);
    stored.parent_block_hash = Some(BlockHash::Int(numbers.next()));
    stored.token_ids = Some((&tokens).into());
    stored.block_size = Some(16);
    stored.medium = Some("GPU".into());
    stored.group_idx = Some(0);
    stored.kv_cache_spec_kind = Some(CacheKind::FullAttention);
    let mut out = Vec::new();
    encode_batch(Timestamp::Float(1_790_000_000.5), &[Event::Stored(stored)], Some(0), form, &mut out)
        .expect("the event has a positional form");
    out
}

/// Events whose bulk is unknown keys with nested values, all to be stepped over.
fn junk(seed: u64, events: u32) -> Vec<u8> {
    let mut out = ByteBuf::new();
    let Ok(_) = msgpack::write_array_len(&mut out, 3);
    let Ok(()) = msgpack::write_f64(&mut out, 1_790_000_000.5);
    let Ok(_) = msgpack::write_array_len(&mut out, events);
    for n in 0..events {
        let Ok(_) = msgpack::write_map_len(&mut out, 8);
        for key in 0..4 {
            let Ok(()) = msgpack::write_str(&mut out, ["zz", "future_field", "origin", "block_hashes_v2"][key]);
            nest(&mut out, 28 - key);
        }
        let Ok(()) = msgpack::write_str(&mut out, "type");
        let Ok(()) = msgpack::write_str(&mut out, "BlockStored");
        let Ok(()) = msgpack::write_str(&mut out, "block_hashes");
        let Ok(_) = msgpack::write_array_len(&mut out, 1);
        let Ok(_) = msgpack::write_uint(&mut out, seed << 32 | u64::from(n));
        let Ok(()) = msgpack::write_str(&mut out, "token_ids");
        let Ok(_) = msgpack::write_array_len(&mut out, 0);
        let Ok(()) = msgpack::write_str(&mut out, "block_size");
        let Ok(_) = msgpack::write_uint(&mut out, 16);
    }
    let Ok(_) = msgpack::write_uint(&mut out, 0);
    out.into_vec()
}

/// Containers inside containers, with a few leaves beside each.
fn nest(out: &mut ByteBuf, depth: usize) {
    for level in 0..depth {
        if level % 2 == 0 {
            let Ok(_) = msgpack::write_array_len(out, 3);
            let Ok(_) = msgpack::write_uint(out, 7);
            let Ok(()) = msgpack::write_str(out, "leaf");
        } else {
            let Ok(_) = msgpack::write_map_len(out, 1);
            let Ok(()) = msgpack::write_str(out, "k");
        }
    }
    let Ok(()) = msgpack::write_nil(out);
}
