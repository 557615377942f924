//! Events in array form: a fixed prefix, then a tail that is read by type.

use super::cursor::{Cursor, Head, Read};
use super::error::{ErrorClass, Fault};
use super::event::{Event, EventKind};
use super::fields::{Fields, Shape, kind, medium};
use super::hash::BlockHash;
use super::list::List;
use super::map::tag;
use super::scalar::MediumName;

/// Places of the prefix, the tag being the first.
const STORED_PREFIX: u32 = 9;
const REMOVED_PREFIX: u32 = 3;
/// Places of the tail that are looked at.
const STORED_TAIL: u32 = 4;
const REMOVED_TAIL: u32 = 3;
/// Places of a cleared event that are looked at, the tag being the first.
pub(super) const CLEARED_PLACES: u32 = 3;

/// Reads an event of `len` elements at `cursor`.
pub(super) fn read<'a>(cursor: &mut Cursor<'a>, len: u32) -> Result<Event<'a>, Fault> {
    if len == 0 {
        return Err(Fault::at(ErrorClass::MissingTag, cursor.pos()));
    }
    let kind = tag(cursor, "type", EventKind::from_tag)?;
    let mut fields = Fields::default();
    let (prefix, tail) = match kind {
        EventKind::Stored => (STORED_PREFIX, STORED_TAIL),
        EventKind::Removed => (REMOVED_PREFIX, REMOVED_TAIL),
        EventKind::Cleared => (CLEARED_PLACES, 0),
        EventKind::Ignored => (1, 0),
    };
    fields.by_place = true;
    for place in 1..len {
        let start = cursor.pos();
        let (field, outcome) = if place >= prefix + tail {
            ("", cursor.skip())
        } else if place >= prefix {
            fields.read_tail(cursor, kind == EventKind::Stored)
        } else {
            match kind {
                EventKind::Stored => fields.read_stored(place, cursor),
                EventKind::Cleared => fields.read_cleared(cursor),
                EventKind::Removed | EventKind::Ignored => fields.read_removed(place, cursor),
            }
        };
        outcome.map_err(|class| Fault::in_field(class, field, start))?;
    }
    let shape = Shape { kind, envelope: false };
    match fields.missing(shape, cursor.pos()) {
        Some(fault) => Err(fault),
        None => Ok(fields.into_event(shape)),
    }
}

/// What stands in a place of a cleared event.
pub(super) enum ClearedPlace<'a> {
    Medium(MediumName<'a>),
    SourceKind(&'a str),
}

/// Reads a place of a cleared event. One producer has the medium behind the tag, another where the order came from, both as
/// text: what names a medium is one. All else is passed over.
pub(super) fn cleared_place<'a>(cursor: &mut Cursor<'a>) -> Read<Option<ClearedPlace<'a>>> {
    let start = cursor.pos();
    let Head::Str(bytes) = cursor.head()? else {
        cursor.seek(start);
        return cursor.skip().map(|()| None);
    };
    Ok(std::str::from_utf8(bytes).ok().map(|text| match MediumName::new(text) {
        medium if medium.is_usual() => ClearedPlace::Medium(medium),
        _ => ClearedPlace::SourceKind(text),
    }))
}

type Named = (&'static str, Read<()>);

impl<'a> Fields<'a> {
    #[inline(always)]
    fn read_stored(&mut self, place: u32, cursor: &mut Cursor<'a>) -> Named {
        match place {
            1 => ("block_hashes", List::read(cursor).map(|value| self.block_hashes = Some(Some(value)))),
            2 => {
                let read = cursor.optional(BlockHash::parse);
                ("parent_block_hash", read.map(|value| self.parent_block_hash = value))
            }
            3 => ("token_ids", self.read_tokens(cursor)),
            4 => ("block_size", cursor.optional(Cursor::uint32).map(|value| self.block_size = Some(value))),
            5 => ("lora_id", cursor.optional(Cursor::uint).map(|value| self.lora_id = value)),
            6 => ("medium", cursor.optional(medium).map(|value| self.medium = value)),
            7 => ("lora_name", self.read_lora_name_or_metadata(cursor)),
            _ => ("extra_keys", cursor.optional(List::read).map(|value| self.extra_keys = value)),
        }
    }

    #[inline(always)]
    fn read_removed(&mut self, place: u32, cursor: &mut Cursor<'a>) -> Named {
        match place {
            1 => ("block_hashes", List::read(cursor).map(|value| self.block_hashes = Some(Some(value)))),
            _ => ("medium", cursor.optional(medium).map(|value| self.medium = value)),
        }
    }

    #[cold]
    fn read_cleared(&mut self, cursor: &mut Cursor<'a>) -> Named {
        let read = cleared_place(cursor).map(|place| match place {
            Some(ClearedPlace::Medium(medium)) => _ = self.medium.get_or_insert(medium),
            Some(ClearedPlace::SourceKind(kind)) => _ = self.additions.source_kind.get_or_insert(kind),
            None => {}
        });
        ("", read)
    }

    /// Position 7 of a stored event: the LoRA name, or the map that one producer puts there for salted blocks.
    fn read_lora_name_or_metadata(&mut self, cursor: &mut Cursor<'a>) -> Read<()> {
        let start = cursor.pos();
        let Head::Map(len) = cursor.head()? else {
            cursor.seek(start);
            self.lora_name = cursor.optional(Cursor::text)?;
            return Ok(());
        };
        for _ in 0..len {
            match cursor.key()? {
                Some(b"cache_salt") => self.additions.cache_salt = cursor.optional(Cursor::text)?,
                Some(b"session_id") => self.additions.session_id = cursor.optional(Cursor::text)?,
                _ => cursor.skip()?,
            }
        }
        Ok(())
    }

    /// A place of the tail, by type: the first array, the first two numbers and the first string have a meaning.
    fn read_tail(&mut self, cursor: &mut Cursor<'a>, takes_mm_infos: bool) -> Named {
        let start = cursor.pos();
        let head = match cursor.head() {
            Ok(head) => head,
            Err(class) => return ("", Err(class)),
        };
        cursor.seek(start);
        match head {
            Head::Array(_) if takes_mm_infos && self.block_mm_infos.is_none() => {
                ("block_mm_infos", List::read(cursor).map(|value| self.block_mm_infos = Some(value)))
            }
            Head::Uint(_) | Head::Negative(_) if self.group_idx.is_none() => {
                ("group_idx", cursor.uint32().map(|value| self.group_idx = Some(value)))
            }
            Head::Uint(_) | Head::Negative(_) if self.window.is_none() => {
                ("kv_cache_spec_sliding_window", cursor.uint32().map(|value| self.window = Some(value)))
            }
            Head::Str(_) if self.kind.is_none() => {
                ("kv_cache_spec_kind", kind(cursor).map(|value| self.kind = Some(value)))
            }
            Head::Nil | Head::Uint(_) | Head::Negative(_) | Head::Str(_) => ("", cursor.skip()),
            Head::Array(_) if takes_mm_infos => ("block_mm_infos", cursor.skip()),
            _ => ("tail", Err(ErrorClass::WrongType)),
        }
    }
}
