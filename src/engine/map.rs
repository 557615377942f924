//! The map form.

use super::error::EncodeError;
use super::writer::{Writer, Written};
use crate::decode::{Additions, Envelope, Event, EventKind};

/// Calls back for every key and value an event has: once to count them, once to write them.
trait Sink {
    fn entry(&mut self, key: &str, value: impl FnOnce(&mut Writer) -> Written) -> Written;

    fn optional<T>(&mut self, key: &str, value: Option<T>, write: impl FnOnce(&mut Writer, T) -> Written) -> Written {
        value.map_or(Ok(()), |value| self.entry(key, |writer| write(writer, value)))
    }

    /// An entry that must be there, but may be nil.
    fn required<T>(&mut self, key: &str, value: Option<T>, write: impl FnOnce(&mut Writer, T) -> Written) -> Written {
        self.entry(key, |writer| match value {
            Some(value) => write(writer, value),
            None => {
                writer.nil();
                Ok(())
            }
        })
    }

    /// An entry that engines' own decoders require, nil if it is not set. Nobody requires it of a store's events, where it
    /// is left out then.
    fn of_engine<T>(
        &mut self,
        key: &str,
        value: Option<T>,
        is_engine: bool,
        write: impl FnOnce(&mut Writer, T) -> Written,
    ) -> Written {
        if is_engine { self.required(key, value, write) } else { self.optional(key, value, write) }
    }

    fn number(&mut self, key: &str, value: Option<impl Into<u64>>) -> Written {
        self.optional(key, value, number)
    }

    fn text(&mut self, key: &str, value: Option<&str>) -> Written {
        self.optional(key, value, Writer::text)
    }
}

fn number(writer: &mut Writer, value: impl Into<u64>) -> Written {
    writer.uint(value.into());
    Ok(())
}

struct Count(usize);

impl Sink for Count {
    fn entry(&mut self, _key: &str, _value: impl FnOnce(&mut Writer) -> Written) -> Written {
        self.0 += 1;
        Ok(())
    }
}

impl Sink for Writer {
    fn entry(&mut self, key: &str, value: impl FnOnce(&mut Writer) -> Written) -> Written {
        Writer::text(self, key)?;
        value(self)
    }
}

pub(super) fn write(writer: &mut Writer, event: &Event<'_>) -> Result<(), EncodeError> {
    let mut count = Count(0);
    entries(&mut count, event)?;
    writer.map(count.0)?;
    entries(writer, event)
}

fn entries(sink: &mut impl Sink, event: &Event<'_>) -> Written {
    let is_engine = event.envelope().is_none();
    if is_engine {
        sink.text("type", Some(event.kind().tag()))?;
    } else {
        sink.text("event_type", Some(event.kind().as_str()))?;
    }
    match event {
        Event::Stored(stored) => {
            sink.entry("block_hashes", |writer| writer.hashes(stored.block_hashes))?;
            sink.of_engine("parent_block_hash", stored.parent_block_hash, is_engine, Writer::hash)?;
            match stored.mixed_token_ids {
                Some(mixed) => sink.entry("token_ids", |writer| writer.mixed_tokens(mixed))?,
                None => sink.required("token_ids", stored.token_ids, Writer::tokens)?,
            }
            sink.required("block_size", stored.block_size, number)?;
            sink.of_engine("lora_id", stored.lora_id, is_engine, number)?;
            sink.of_engine("medium", stored.medium.map(|medium| medium.as_str()), is_engine, Writer::text)?;
            sink.of_engine("lora_name", stored.lora_name, is_engine, Writer::text)?;
            sink.optional("extra_keys", stored.extra_keys, Writer::extra_keys)?;
            sink.optional("block_mm_infos", stored.block_mm_infos, Writer::mm_infos)?;
            sink.number("group_idx", stored.group_idx)?;
            sink.text("kv_cache_spec_kind", stored.kv_cache_spec_kind.map(|kind| kind.as_str()))?;
            sink.number("kv_cache_spec_sliding_window", stored.kv_cache_spec_sliding_window)?;
            additions(sink, &stored.additions)?;
        }
        Event::Removed(removed) => {
            sink.entry("block_hashes", |writer| writer.hashes(removed.block_hashes))?;
            sink.of_engine("medium", removed.medium.map(|medium| medium.as_str()), is_engine, Writer::text)?;
            sink.number("group_idx", removed.group_idx)?;
            sink.text("kv_cache_spec_kind", removed.kv_cache_spec_kind.map(|kind| kind.as_str()))?;
            sink.number("kv_cache_spec_sliding_window", removed.kv_cache_spec_sliding_window)?;
            if removed.envelope.is_some() {
                sink.number("block_size", removed.block_size)?;
                sink.text("lora_name", removed.lora_name)?;
            }
            additions(sink, &removed.additions)?;
        }
        Event::Cleared(cleared) => {
            sink.text("medium", cleared.medium.map(|medium| medium.as_str()))?;
            if cleared.envelope.is_some() {
                sink.number("block_size", cleared.block_size)?;
                sink.text("lora_name", cleared.lora_name)?;
            }
            additions(sink, &cleared.additions)?;
        }
        Event::Ignored => {}
    }
    event.envelope().map_or(Ok(()), |fields| envelope(sink, event.kind(), fields))?;
    event.other().iter().try_for_each(|(key, value)| sink.entry(key, |writer| writer.value(value, 0)))
}

fn additions(sink: &mut impl Sink, additions: &Additions<'_>) -> Written {
    sink.text("cache_salt", additions.cache_salt)?;
    sink.text("session_id", additions.session_id)?;
    sink.text("locality", additions.locality)?;
    sink.text("ownership", additions.ownership)?;
    sink.text("source_kind", additions.source_kind)
}

fn envelope(sink: &mut impl Sink, kind: EventKind, envelope: &Envelope<'_>) -> Written {
    sink.number("event_id", envelope.event_id)?;
    sink.optional("timestamp", envelope.timestamp, Writer::timestamp)?;
    sink.text("tenant_id", envelope.tenant_id)?;
    sink.text("backend_id", envelope.backend_id)?;
    sink.text("object_key", envelope.object_key)?;
    sink.text("group_id", envelope.group_id)?;
    if kind != EventKind::Cleared || !envelope.seq_hashes.is_empty() {
        sink.entry("seq_hashes", |writer| writer.hashes(envelope.seq_hashes))?;
    }
    sink.number("base_block_idx", envelope.base_block_idx)?;
    sink.optional("parent_hash", envelope.parent_hash, Writer::hash)?;
    sink.text("model_name", envelope.model_name)?;
    sink.text("additional_salt", envelope.additional_salt)?;
    sink.optional("dp_rank", envelope.dp_rank, Writer::integer)
}
