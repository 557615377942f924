//! The positional form. Every place in front of the last one that is set is written, nil where there is nothing to say:
//! leaving one out would shift all that follow. The places that engines' own decoders require are always written. The one
//! place left out is that of `block_mm_infos` if there are none: engines that have it put it in front of `group_idx`, those
//! that do not have no place there, and this crate's decoder tells it by its type.

use super::error::EncodeError;
use super::writer::{Writer, Written};
use crate::decode::{Additions, CacheKind, Event, Removed, Stored};

/// Writes places until the last that is set.
struct Places<'w> {
    writer: &'w mut Writer,
    left: usize,
}

impl Places<'_> {
    fn place<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T) -> Written) -> Written {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        match value {
            Some(value) => write(self.writer, value),
            None => {
                self.writer.nil();
                Ok(())
            }
        }
    }

    fn number(&mut self, value: Option<impl Into<u64>>) -> Written {
        self.place(value, |writer, value| {
            writer.uint(value.into());
            Ok(())
        })
    }

    fn text(&mut self, value: Option<&str>) -> Written {
        self.place(value, Writer::text)
    }
}

pub(super) fn write(writer: &mut Writer, event: &Event<'_>) -> Written {
    if event.envelope().is_some() {
        return Err(EncodeError::NotPositional("event_type"));
    }
    if !event.other().is_empty() {
        return Err(EncodeError::NotPositional("a field that has no place"));
    }
    match event {
        Event::Stored(stored) => write_stored(writer, stored),
        Event::Removed(removed) => write_removed(writer, removed),
        Event::Cleared(cleared) => {
            refuse(&cleared.additions, true)?;
            // Another text there would be read as the other thing that producers put there.
            if cleared.medium.is_some_and(|medium| !medium.is_usual()) {
                return Err(EncodeError::NotPositional("medium"));
            }
            writer.array(1 + usize::from(cleared.medium.is_some()))?;
            writer.text(event.kind().tag())?;
            cleared.medium.map_or(Ok(()), |medium| writer.text(medium.as_str()))
        }
        Event::Ignored => {
            writer.array(1)?;
            writer.text(event.kind().tag())
        }
    }
}

/// Refuses the additions that have no place.
fn refuse(additions: &Additions<'_>, metadata_too: bool) -> Written {
    let all = [
        ("locality", additions.locality, true),
        ("ownership", additions.ownership, true),
        ("source_kind", additions.source_kind, true),
        ("cache_salt", additions.cache_salt, metadata_too),
        ("session_id", additions.session_id, metadata_too),
    ];
    match all.into_iter().find(|(_, value, refused)| *refused && value.is_some()) {
        Some((name, ..)) => Err(EncodeError::NotPositional(name)),
        None => Ok(()),
    }
}

fn refuse_lone_window(group: Option<u32>, window: Option<u32>) -> Written {
    if group.is_none() && window.is_some() {
        return Err(EncodeError::NotPositional("kv_cache_spec_sliding_window"));
    }
    Ok(())
}

/// Places that every stored event has: the tag, and all up to the LoRA name.
const STORED_PLACES: usize = 8;
/// Places that every removed event has: the tag, the hashes, the medium.
const REMOVED_PLACES: usize = 3;

/// Number of places up to the last one that is set.
fn places(set: &[bool]) -> usize {
    set.iter().rposition(|set| *set).map_or(0, |last| last + 1)
}

fn write_stored(writer: &mut Writer, stored: &Stored<'_>) -> Written {
    let additions = &stored.additions;
    let has_metadata = additions.cache_salt.is_some() || additions.session_id.is_some();
    refuse(additions, stored.lora_name.is_some())?;
    refuse_lone_window(stored.group_idx, stored.kv_cache_spec_sliding_window)?;
    let tail = [
        stored.group_idx.is_some(),
        stored.kv_cache_spec_kind.is_some(),
        stored.kv_cache_spec_sliding_window.is_some(),
    ];
    let has_infos = stored.block_mm_infos.is_some();
    let behind = match places(&tail) {
        0 if has_infos => 2,
        0 => usize::from(stored.extra_keys.is_some()),
        tail => 1 + usize::from(has_infos) + tail,
    };
    let left = STORED_PLACES + behind;
    writer.array(left)?;
    let mut places = Places { writer, left };
    places.text(Some("BlockStored"))?;
    places.place(Some(stored.block_hashes), Writer::hashes)?;
    places.place(stored.parent_block_hash, Writer::hash)?;
    match stored.mixed_token_ids {
        Some(mixed) => places.place(Some(mixed), Writer::mixed_tokens)?,
        None => places.place(stored.token_ids, Writer::tokens)?,
    }
    places.number(stored.block_size)?;
    places.number(stored.lora_id)?;
    places.text(stored.medium.map(|medium| medium.as_str()))?;
    if has_metadata {
        places.place(Some(additions), write_metadata)?;
    } else {
        places.text(stored.lora_name)?;
    }
    places.place(stored.extra_keys, Writer::extra_keys)?;
    if has_infos {
        places.place(stored.block_mm_infos, Writer::mm_infos)?;
    }
    write_tail(&mut places, stored.group_idx, stored.kv_cache_spec_kind, stored.kv_cache_spec_sliding_window)
}

/// The map that stands in the place of the LoRA name on salted blocks.
fn write_metadata(writer: &mut Writer, additions: &Additions<'_>) -> Written {
    let entries = [("cache_salt", additions.cache_salt), ("session_id", additions.session_id)];
    writer.map(entries.iter().filter(|(_, value)| value.is_some()).count())?;
    for (name, value) in entries {
        if let Some(value) = value {
            writer.text(name)?;
            writer.text(value)?;
        }
    }
    Ok(())
}

fn write_removed(writer: &mut Writer, removed: &Removed<'_>) -> Written {
    refuse(&removed.additions, true)?;
    refuse_lone_window(removed.group_idx, removed.kv_cache_spec_sliding_window)?;
    let behind = [
        removed.group_idx.is_some(),
        removed.kv_cache_spec_kind.is_some(),
        removed.kv_cache_spec_sliding_window.is_some(),
    ];
    let left = REMOVED_PLACES + places(&behind);
    writer.array(left)?;
    let mut places = Places { writer, left };
    places.text(Some("BlockRemoved"))?;
    places.place(Some(removed.block_hashes), Writer::hashes)?;
    places.text(removed.medium.map(|medium| medium.as_str()))?;
    write_tail(&mut places, removed.group_idx, removed.kv_cache_spec_kind, removed.kv_cache_spec_sliding_window)
}

fn write_tail(
    places: &mut Places<'_>,
    group: Option<u32>,
    kind: Option<CacheKind<'_>>,
    window: Option<u32>,
) -> Written {
    places.number(group)?;
    places.text(kind.map(|kind| kind.as_str()))?;
    places.number(window)
}
