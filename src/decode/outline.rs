//! Events in outline, for readers who need no more.

use super::cursor::{Cursor, Head};
use super::error::{ErrorClass, EventError, Fault};
use super::event::EventKind;
use super::hash::BlockHash;
use super::item::{pass_over, unwrap_bin};
use super::list::List;
use super::map::{self, Tags, skip};
use super::names::Field;
use super::positional::{CLEARED_PLACES, ClearedPlace, cleared_place};
use super::scalar::MediumName;

/// What happened, to which hashes, on which medium: enough to keep an index of block hashes.
///
/// Everything else is stepped over without being looked at, so an event that [`Batch::events`](super::Batch::events)
/// reports as bad for a fault in, say, its token ids still has an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outline<'a> {
    /// What happened.
    pub kind: EventKind,
    /// `block_hashes`; empty on events that have none.
    pub block_hashes: List<'a, BlockHash<'a>>,
    /// `medium`.
    pub medium: Option<MediumName<'a>>,
    /// `event_id` of an event with an envelope.
    pub event_id: Option<u64>,
}

/// Iterator over the outlines of a batch's events; one item for each, good or bad.
#[derive(Clone, Debug)]
pub struct Outlines<'a> {
    cursor: Cursor<'a>,
    left: u32,
}

impl<'a> Outlines<'a> {
    pub(super) const fn new(cursor: Cursor<'a>, left: u32) -> Self {
        Outlines { cursor, left }
    }
}

impl<'a> Iterator for Outlines<'a> {
    type Item = Result<Outline<'a>, EventError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let start = self.cursor.pos();
        Some(read(&mut self.cursor, true).map_err(|fault| {
            pass_over(&mut self.cursor, start);
            EventError(fault)
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Outlines<'_> {}

impl std::iter::FusedIterator for Outlines<'_> {}

fn read<'a>(cursor: &mut Cursor<'a>, may_be_wrapped: bool) -> Result<Outline<'a>, Fault> {
    let start = cursor.pos();
    match cursor.head() {
        Ok(Head::Map(len)) => read_map(cursor, len),
        Ok(Head::Array(len)) => read_positional(cursor, len),
        Ok(Head::Bin(bytes)) if may_be_wrapped => read(&mut unwrap_bin(cursor, bytes)?, false),
        Ok(_) => Err(Fault::at(ErrorClass::WrongType, start)),
        Err(class) => Err(Fault::at(class, start)),
    }
}

fn read_map<'a>(cursor: &mut Cursor<'a>, len: u32) -> Result<Outline<'a>, Fault> {
    let mut tags = Tags::default();
    let mut hashes_at = None;
    let mut medium_at = None;
    let mut id_at = None;
    for _ in 0..len {
        let Some(key) = map::key(cursor)? else { continue };
        let value = *cursor;
        match Field::of(key) {
            Some(Field::BlockHashes) => hashes_at = Some(value),
            Some(Field::Medium) => medium_at = Some(value),
            Some(Field::EventId) => id_at = Some(value),
            Some(name @ (Field::Type | Field::EventType)) => {
                tags.read(name, cursor)?;
                continue;
            }
            _ => {}
        }
        skip(cursor)?;
    }
    let shape = tags.shape(cursor.pos())?;
    let blocks = matches!(shape.kind, EventKind::Stored | EventKind::Removed);
    let block_hashes = match hashes_at {
        Some(at) if blocks && shape.envelope => {
            field("block_hashes", at, |at| at.optional(List::read))?.unwrap_or_default()
        }
        Some(at) if blocks => field("block_hashes", at, List::read)?,
        None if blocks && !shape.envelope => {
            return Err(Fault::in_field(ErrorClass::MissingField, "block_hashes", cursor.pos()));
        }
        _ => List::empty(),
    };
    let medium = match medium_at {
        Some(at) if blocks || shape.envelope => {
            field("medium", at, |at| at.optional(Cursor::text))?.map(MediumName::new)
        }
        Some(mut at) if shape.kind == EventKind::Cleared => at.text().ok().map(MediumName::new),
        _ => None,
    };
    let event_id = match id_at {
        Some(at) if shape.envelope => field("event_id", at, |at| at.optional(Cursor::uint))?,
        _ => None,
    };
    Ok(Outline { kind: shape.kind, block_hashes, medium, event_id })
}

fn field<'a, T>(
    name: &'static str,
    mut at: Cursor<'a>,
    read: impl FnOnce(&mut Cursor<'a>) -> super::cursor::Read<T>,
) -> Result<T, Fault> {
    let start = at.pos();
    read(&mut at).map_err(|class| Fault::in_field(class, name, start))
}

fn read_positional_cleared<'a>(
    cursor: &mut Cursor<'a>,
    len: u32,
    mut outline: Outline<'a>,
) -> Result<Outline<'a>, Fault> {
    for place in 1..len {
        if place < CLEARED_PLACES {
            if let Some(ClearedPlace::Medium(medium)) = field("medium", *cursor, cleared_place)? {
                outline.medium.get_or_insert(medium);
            }
        }
        skip(cursor)?;
    }
    Ok(outline)
}

fn read_positional<'a>(cursor: &mut Cursor<'a>, len: u32) -> Result<Outline<'a>, Fault> {
    if len == 0 {
        return Err(Fault::at(ErrorClass::MissingTag, cursor.pos()));
    }
    let kind = map::tag(cursor, "type", EventKind::from_tag)?;
    let mut outline = Outline { kind, block_hashes: List::empty(), medium: None, event_id: None };
    let medium_place = match kind {
        EventKind::Stored => 6,
        EventKind::Removed => 2,
        EventKind::Cleared | EventKind::Ignored => 0,
    };
    if kind == EventKind::Cleared {
        return read_positional_cleared(cursor, len, outline);
    }
    if medium_place > 0 && len < 2 {
        return Err(Fault::in_field(ErrorClass::MissingField, "block_hashes", cursor.pos()));
    }
    for place in 1..len {
        if place == 1 && medium_place > 0 {
            outline.block_hashes = field("block_hashes", *cursor, List::read)?;
        } else if place == medium_place {
            outline.medium = field("medium", *cursor, |at| at.optional(Cursor::text))?.map(MediumName::new);
        }
        skip(cursor)?;
    }
    Ok(outline)
}
