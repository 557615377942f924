//! The JSON form: what `kv-events decode` prints, and the vectors are written in.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{
    Additions, Batch, BlockHash, Cleared, Element, Envelope, ErrorClass, Event, EventError, EventKind, List, MmInfo,
    MmObject, OwnedBatch, Removed, Stored, Timestamp, Token, TokenIds, Value,
};

/// Bytes as lower-case hex.
struct Hex<'a>(&'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Digits<'a>(&'a [u8]);
        impl std::fmt::Display for Digits<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
        serializer.collect_str(&Digits(self.0))
    }
}

fn integer<S: Serializer>(value: i128, serializer: S) -> Result<S::Ok, S::Error> {
    match (u64::try_from(value), i64::try_from(value)) {
        (Ok(value), _) => serializer.serialize_u64(value),
        (_, Ok(value)) => serializer.serialize_i64(value),
        _ => serializer.serialize_i128(value),
    }
}

struct Integer(i128);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        integer(self.0, serializer)
    }
}

/// Decimal text, or `{"bytes": hex, "low64": decimal text or null}`.
impl Serialize for BlockHash<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            BlockHash::Int(_) | BlockHash::Negative(_) => serializer.collect_str(self),
            BlockHash::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("bytes", &Hex(bytes))?;
                map.serialize_entry("low64", &self.low64().map(|low64| low64.to_string()))?;
                map.end()
            }
        }
    }
}

impl<'a, T: Element<'a> + Serialize> Serialize for List<'a, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Serialize for TokenIds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Serialize for Token<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Token::Id(id) => serializer.serialize_u32(*id),
            Token::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Timestamp::Int(value) => integer(value, serializer),
            Timestamp::Float(value) => serializer.serialize_f64(value),
        }
    }
}

/// Bytes (and text that is not UTF-8) are `{"bytes": hex}`, an extension is `{"ext": [type, hex]}`, a float that is not
/// finite is text (`NaN`, `inf`, `-inf`), and so is every key of a map.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => integer(*value, serializer),
            Value::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::Float(value) => serializer.collect_str(value),
            Value::Text(text) => serializer.serialize_str(text),
            Value::BrokenText(bytes) | Value::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("bytes", &Hex(bytes))?;
                map.end()
            }
            Value::Ext(kind, bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("ext", &(kind, Hex(bytes)))?;
                map.end()
            }
            Value::Array(list) => list.serialize(serializer),
            Value::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&MapKey(key), &value)?;
                }
                map.end()
            }
        }
    }
}

struct MapKey<'a>(Value<'a>);

impl Serialize for MapKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Int(value) => serializer.collect_str(&value),
            other => serializer.collect_str(&format_args!("{other:?}")),
        }
    }
}

impl Serialize for MmInfo<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("mm_objects", &self.objects)?;
        map.end()
    }
}

impl Serialize for MmObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("mm_hash", &self.hash)?;
        map.serialize_entry("offsets", &self.offsets)?;
        map.end()
    }
}

fn additions<M: SerializeMap>(map: &mut M, additions: &Additions<'_>) -> Result<(), M::Error> {
    let all = [
        ("cache_salt", additions.cache_salt),
        ("session_id", additions.session_id),
        ("locality", additions.locality),
        ("ownership", additions.ownership),
        ("source_kind", additions.source_kind),
    ];
    for (name, value) in all {
        if let Some(value) = value {
            map.serialize_entry(name, value)?;
        }
    }
    Ok(())
}

fn envelope<M: SerializeMap>(map: &mut M, kind: EventKind, envelope: &Envelope<'_>) -> Result<(), M::Error> {
    map.serialize_entry("event_type", kind.as_str())?;
    map.serialize_entry("event_id", &envelope.event_id)?;
    map.serialize_entry("timestamp", &envelope.timestamp)?;
    map.serialize_entry("tenant_id", &envelope.tenant_id)?;
    map.serialize_entry("backend_id", &envelope.backend_id)?;
    map.serialize_entry("object_key", &envelope.object_key)?;
    map.serialize_entry("group_id", &envelope.group_id)?;
    map.serialize_entry("seq_hashes", &envelope.seq_hashes)?;
    map.serialize_entry("base_block_idx", &envelope.base_block_idx)?;
    map.serialize_entry("parent_hash", &envelope.parent_hash)?;
    map.serialize_entry("model_name", &envelope.model_name)?;
    map.serialize_entry("additional_salt", &envelope.additional_salt)?;
    map.serialize_entry("dp_rank", &envelope.dp_rank.map(Integer))
}

/// What a removed or cleared event shows beside an envelope only.
fn beside_envelope<M: SerializeMap>(
    map: &mut M,
    block_size: Option<u32>,
    lora_name: Option<&str>,
) -> Result<(), M::Error> {
    map.serialize_entry("block_size", &block_size)?;
    map.serialize_entry("lora_name", &lora_name)
}

fn stored<M: SerializeMap>(map: &mut M, event: &Stored<'_>) -> Result<(), M::Error> {
    map.serialize_entry("block_hashes", &event.block_hashes)?;
    map.serialize_entry("parent_block_hash", &event.parent_block_hash)?;
    match event.mixed_token_ids {
        Some(mixed) => map.serialize_entry("token_ids", &mixed)?,
        None => map.serialize_entry("token_ids", &event.token_ids)?,
    }
    map.serialize_entry("is_eagle", &event.token_ids.is_some_and(|tokens| tokens.is_eagle()))?;
    map.serialize_entry("block_size", &event.block_size)?;
    map.serialize_entry("lora_id", &event.lora_id)?;
    map.serialize_entry("lora_name", &event.lora_name)?;
    map.serialize_entry("medium", &event.medium.map(|medium| medium.as_str()))?;
    map.serialize_entry("extra_keys", &event.extra_keys)?;
    map.serialize_entry("block_mm_infos", &event.block_mm_infos)?;
    map.serialize_entry("group_idx", &event.group_idx)?;
    map.serialize_entry("kv_cache_spec_kind", &event.kv_cache_spec_kind.map(|kind| kind.as_str()))?;
    map.serialize_entry("kv_cache_spec_sliding_window", &event.kv_cache_spec_sliding_window)
}

fn removed<M: SerializeMap>(map: &mut M, event: &Removed<'_>) -> Result<(), M::Error> {
    map.serialize_entry("block_hashes", &event.block_hashes)?;
    map.serialize_entry("medium", &event.medium.map(|medium| medium.as_str()))?;
    map.serialize_entry("group_idx", &event.group_idx)?;
    map.serialize_entry("kv_cache_spec_kind", &event.kv_cache_spec_kind.map(|kind| kind.as_str()))?;
    map.serialize_entry("kv_cache_spec_sliding_window", &event.kv_cache_spec_sliding_window)?;
    match event.envelope {
        Some(_) => beside_envelope(map, event.block_size, event.lora_name),
        None => Ok(()),
    }
}

fn cleared<M: SerializeMap>(map: &mut M, event: &Cleared<'_>) -> Result<(), M::Error> {
    if event.envelope.is_some() {
        map.serialize_entry("medium", &event.medium.map(|medium| medium.as_str()))?;
        beside_envelope(map, event.block_size, event.lora_name)?;
    }
    Ok(())
}

/// The normal form, the same for every shape of event.
impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind().as_str())?;
        match self {
            Event::Stored(event) => {
                stored(&mut map, event)?;
                additions(&mut map, &event.additions)?;
            }
            Event::Removed(event) => {
                removed(&mut map, event)?;
                additions(&mut map, &event.additions)?;
            }
            Event::Cleared(event) => {
                cleared(&mut map, event)?;
                // The form leaves out what stands behind the tag of a positional event.
                if !event.by_place.0 {
                    additions(&mut map, &event.additions)?;
                }
            }
            Event::Ignored => {}
        }
        if let Some(fields) = self.envelope() {
            envelope(&mut map, self.kind(), fields)?;
        }
        map.end()
    }
}

/// The class's name.
impl Serialize for ErrorClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn error<S: Serializer>(class: ErrorClass, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("error", &class)?;
    map.end()
}

/// `{"error": class}`.
impl Serialize for EventError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        error(self.class(), serializer)
    }
}

/// `{"error": class}`.
impl Serialize for super::DecodeError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        error(self.class(), serializer)
    }
}

/// `{"timestamp", "data_parallel_rank", "events"}`, with `{"error": class}` in the place of a bad event.
impl Serialize for Batch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Items<'a>(Batch<'a>);
        impl Serialize for Items<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
                for event in self.0 {
                    match event {
                        Ok(event) => seq.serialize_element(&event)?,
                        Err(error) => seq.serialize_element(&error)?,
                    }
                }
                seq.end()
            }
        }
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("timestamp", &self.timestamp())?;
        map.serialize_entry("data_parallel_rank", &self.data_parallel_rank().map(Integer))?;
        map.serialize_entry("events", &Items(*self))?;
        map.end()
    }
}

/// As [`Batch`].
impl Serialize for OwnedBatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.batch().serialize(serializer)
    }
}
