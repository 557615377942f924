//! The decoders. Each folds an event's fields in the same order.

use kv_events::decode::{Batch, BlockHash, Envelope, Event, MediumName, Timestamp};
use rmpv::Value;
use serde::Deserialize;

use crate::fold::Fold;

/// What is folded of an event, whoever read it.
struct Seen<'a, Hashes, Tokens> {
    event_id: Option<u64>,
    timestamp: Option<u64>,
    texts: [Option<&'a str>; 8],
    numbers: [Option<u64>; 4],
    hashes: Hashes,
    tokens: Option<Tokens>,
}

impl Fold {
    #[inline(always)]
    fn seen(&mut self, seen: Seen<'_, impl Iterator<Item = u64>, impl Iterator<Item = u32>>) {
        self.event();
        self.optional(seen.event_id);
        self.optional(seen.timestamp);
        seen.texts.into_iter().for_each(|text| self.text(text));
        seen.numbers.into_iter().for_each(|number| self.optional(number));
        seen.hashes.for_each(|hash| self.number(hash));
        match seen.tokens {
            Some(tokens) => tokens.for_each(|token| self.number(u64::from(token))),
            None => self.number(u64::MAX),
        }
    }
}

fn texts<'a>(
    envelope: Option<&Envelope<'a>>,
    lora_name: Option<&'a str>,
    medium: Option<MediumName<'a>>,
) -> [Option<&'a str>; 8] {
    [
        envelope.and_then(|envelope| envelope.model_name),
        envelope.and_then(|envelope| envelope.additional_salt),
        lora_name,
        envelope.and_then(|envelope| envelope.tenant_id),
        envelope.and_then(|envelope| envelope.backend_id),
        medium.map(|medium| medium.as_str()),
        envelope.and_then(|envelope| envelope.group_id),
        envelope.and_then(|envelope| envelope.object_key),
    ]
}

pub fn kv_events(payload: &[u8]) -> Fold {
    let mut fold = Fold::default();
    let Ok(batch) = Batch::parse(payload) else { return fold };
    for event in batch.events() {
        let Ok(event) = event else { return Fold::default() };
        let envelope = event.envelope();
        let hash = |hash: BlockHash<'_>| hash.low64().unwrap_or(u64::MAX);
        let event_id = envelope.and_then(|envelope| envelope.event_id);
        let timestamp = envelope.and_then(|envelope| envelope.timestamp).and_then(|timestamp| match timestamp {
            Timestamp::Int(value) => u64::try_from(value).ok(),
            Timestamp::Float(_) => None,
        });
        let dp_rank = envelope.and_then(|envelope| envelope.dp_rank).and_then(|rank| u64::try_from(rank).ok());
        match &event {
            Event::Stored(stored) => fold.seen(Seen {
                event_id,
                timestamp,
                texts: texts(envelope, stored.lora_name, stored.medium),
                numbers: [
                    stored.block_size.map(u64::from),
                    dp_rank,
                    stored.parent_block_hash.map(hash),
                    stored.group_idx.map(u64::from),
                ],
                hashes: stored.block_hashes.iter().map(hash),
                tokens: stored.token_ids.map(|tokens| tokens.iter()),
            }),
            Event::Removed(removed) => fold.seen(Seen {
                event_id,
                timestamp,
                texts: texts(envelope, removed.lora_name, removed.medium),
                numbers: [removed.block_size.map(u64::from), dp_rank, None, removed.group_idx.map(u64::from)],
                hashes: removed.block_hashes.iter().map(hash),
                tokens: None::<std::iter::Empty<u32>>,
            }),
            _ => fold.event(),
        }
    }
    fold
}

#[derive(Deserialize)]
struct Batched<Time, Event>(#[allow(dead_code)] Time, Vec<Event>, #[allow(dead_code)] Option<i64>);

/// A master's event; `T` is `String` for what one writes, or `&str` to borrow from the payload.
#[derive(Deserialize)]
struct Master<T> {
    event_id: u64,
    timestamp: u64,
    #[allow(dead_code)]
    event_type: T,
    #[serde(rename = "type")]
    #[allow(dead_code)]
    kind: T,
    model_name: Option<T>,
    block_size: Option<u32>,
    additional_salt: Option<T>,
    lora_name: Option<T>,
    tenant_id: T,
    backend_id: T,
    medium: Option<T>,
    dp_rank: u32,
    group_id: Option<T>,
    object_key: Option<T>,
    #[allow(dead_code)]
    seq_hashes: Vec<u64>,
    block_hashes: Vec<u64>,
    #[allow(dead_code)]
    base_block_idx: Option<u64>,
    #[allow(dead_code)]
    parent_hash: Option<u64>,
    token_ids: Option<Vec<u32>>,
    parent_block_hash: Option<u64>,
}

fn str_of<T: AsRef<str>>(text: &Option<T>) -> Option<&str> {
    text.as_ref().map(AsRef::as_ref)
}

pub fn rmp_serde_master<'de, T: Deserialize<'de> + AsRef<str>>(payload: &'de [u8]) -> Fold {
    let mut fold = Fold::default();
    let Ok(batch) = rmp_serde::from_slice::<Batched<u64, Master<T>>>(payload) else { return fold };
    for event in &batch.1 {
        fold.seen(Seen {
            event_id: Some(event.event_id),
            timestamp: Some(event.timestamp),
            texts: [
                str_of(&event.model_name),
                str_of(&event.additional_salt),
                str_of(&event.lora_name),
                Some(event.tenant_id.as_ref()),
                Some(event.backend_id.as_ref()),
                str_of(&event.medium),
                str_of(&event.group_id),
                str_of(&event.object_key),
            ],
            numbers: [event.block_size.map(u64::from), Some(u64::from(event.dp_rank)), event.parent_block_hash, None],
            hashes: event.block_hashes.iter().copied(),
            tokens: event.token_ids.as_ref().map(|tokens| tokens.iter().copied()),
        });
    }
    fold
}

/// The positional form in the engine's order of fields.
#[derive(Deserialize)]
struct Positional<T>(
    #[allow(dead_code)] T,
    Vec<u64>,
    Option<u64>,
    Vec<u32>,
    u32,
    #[allow(dead_code)] Option<u64>,
    Option<T>,
    Option<T>,
    #[allow(dead_code)] Option<serde::de::IgnoredAny>,
    Option<u32>,
    #[allow(dead_code)] Option<T>,
);

pub fn rmp_serde_positional<'de, T: Deserialize<'de> + AsRef<str>>(payload: &'de [u8]) -> Fold {
    let mut fold = Fold::default();
    let Ok(batch) = rmp_serde::from_slice::<Batched<f64, Positional<T>>>(payload) else { return fold };
    for event in &batch.1 {
        fold.engine(&event.1, event.2, &event.3, event.4, str_of(&event.6), str_of(&event.7), event.9);
    }
    fold
}

#[derive(Deserialize)]
struct Map<T> {
    #[serde(rename = "type")]
    #[allow(dead_code)]
    kind: T,
    block_hashes: Vec<u64>,
    parent_block_hash: Option<u64>,
    token_ids: Vec<u32>,
    block_size: u32,
    #[allow(dead_code)]
    lora_id: Option<u64>,
    medium: Option<T>,
    lora_name: Option<T>,
    group_idx: Option<u32>,
    #[allow(dead_code)]
    kv_cache_spec_kind: Option<T>,
}

pub fn rmp_serde_map<'de, T: Deserialize<'de> + AsRef<str>>(payload: &'de [u8]) -> Fold {
    let mut fold = Fold::default();
    let Ok(batch) = rmp_serde::from_slice::<Batched<f64, Map<T>>>(payload) else { return fold };
    for event in &batch.1 {
        fold.engine(
            &event.block_hashes,
            event.parent_block_hash,
            &event.token_ids,
            event.block_size,
            str_of(&event.medium),
            str_of(&event.lora_name),
            event.group_idx,
        );
    }
    fold
}

impl Fold {
    #[allow(clippy::too_many_arguments)]
    fn engine(
        &mut self,
        hashes: &[u64],
        parent: Option<u64>,
        tokens: &[u32],
        block_size: u32,
        medium: Option<&str>,
        lora_name: Option<&str>,
        group_idx: Option<u32>,
    ) {
        self.seen(Seen {
            event_id: None,
            timestamp: None,
            texts: [None, None, lora_name, None, None, medium, None, None],
            numbers: [Some(u64::from(block_size)), None, parent, group_idx.map(u64::from)],
            hashes: hashes.iter().copied(),
            tokens: Some(tokens.iter().copied()),
        });
    }
}

pub fn rmpv(payload: &[u8]) -> Fold {
    let mut fold = Fold::default();
    let mut rest = payload;
    let Ok(batch) = rmpv::decode::read_value(&mut rest) else { return fold };
    let Some(events) = batch.as_array().and_then(|batch| batch.get(1)).and_then(Value::as_array) else { return fold };
    for event in events {
        match event {
            Value::Map(entries) => fold.value(|name, _| {
                entries.iter().find(|(key, _)| key.as_str() == Some(name)).map_or(&Value::Nil, |(_, value)| value)
            }),
            Value::Array(places) => fold.value(|_, place| places.get(place).unwrap_or(&Value::Nil)),
            _ => {}
        }
    }
    fold
}

impl Fold {
    fn value<'a>(&mut self, get: impl Fn(&str, usize) -> &'a Value) {
        const NOWHERE: usize = usize::MAX;
        let list = |value: &'a Value| value.as_array().map(|list| list.iter().filter_map(Value::as_u64));
        self.seen(Seen {
            event_id: get("event_id", NOWHERE).as_u64(),
            timestamp: get("timestamp", NOWHERE).as_u64(),
            texts: [
                get("model_name", NOWHERE).as_str(),
                get("additional_salt", NOWHERE).as_str(),
                get("lora_name", 7).as_str(),
                get("tenant_id", NOWHERE).as_str(),
                get("backend_id", NOWHERE).as_str(),
                get("medium", 6).as_str(),
                get("group_id", NOWHERE).as_str(),
                get("object_key", NOWHERE).as_str(),
            ],
            numbers: [
                get("block_size", 4).as_u64(),
                get("dp_rank", NOWHERE).as_u64(),
                get("parent_block_hash", 2).as_u64(),
                get("group_idx", 9).as_u64(),
            ],
            hashes: list(get("block_hashes", 1)).into_iter().flatten(),
            tokens: list(get("token_ids", 3)).map(|tokens| tokens.map(|token| token as u32)),
        });
    }
}
