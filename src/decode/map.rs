//! Events in map form: keys in any order, the tag where it likes.

use super::cursor::Cursor;
use super::error::{ErrorClass, Fault, ForeignKind};
use super::event::{Event, EventKind};
use super::fields::{Fields, Offer, Shape};
use super::names::{Field, keys};
use super::other::OtherFields;

/// What `type` and `event_type` have said so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Tags {
    by_type: Option<EventKind>,
    by_event_type: Option<EventKind>,
}

impl Tags {
    /// Reads the value at `cursor` as the tag called `name`.
    #[inline(always)]
    pub(super) fn read(&mut self, name: Field, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        match name {
            Field::Type => self.by_type = Some(tag(cursor, "type", EventKind::from_tag)?),
            _ => self.by_event_type = Some(tag(cursor, "event_type", EventKind::from_event_type)?),
        }
        Ok(())
    }

    /// What the event is, now that all of it was seen.
    pub(super) fn shape(self, end: usize) -> Result<Shape, Fault> {
        match (self.by_type, self.by_event_type) {
            (Some(a), Some(b)) if a != b => Err(Fault::in_field(ErrorClass::Conflict, "type", end)),
            (_, Some(kind)) => Ok(Shape { kind, envelope: true }),
            (Some(kind), None) => Ok(Shape { kind, envelope: false }),
            (None, None) => Err(Fault::at(ErrorClass::MissingTag, end)),
        }
    }
}

/// Reads the text of a tag.
pub(super) fn tag(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    kind: impl FnOnce(&[u8]) -> Option<EventKind>,
) -> Result<EventKind, Fault> {
    let start = cursor.pos();
    let fault = |class| Fault::in_field(class, field, start);
    let text = cursor.text().map_err(fault)?;
    kind(text.as_bytes()).ok_or_else(|| Fault { foreign: ForeignKind::from_tag(text), ..fault(ErrorClass::UnknownTag) })
}

/// What a walk over a map has found so far.
#[derive(Default)]
struct Found<'a> {
    fields: Fields<'a>,
    tags: Tags,
    /// Whether some field was at fault, or is in some shapes.
    doubtful: bool,
}

impl<'a> Found<'a> {
    /// Reads the value at `cursor`, whose key was `name`.
    #[inline(always)]
    fn read(&mut self, name: Field, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        let value = cursor.pos();
        match self.fields.read(name, cursor) {
            Offer::Value(_, Ok(())) => {
                // Nil is no fault of this field in every shape, so it has to be looked at again.
                self.doubtful |= name == Field::BlockHashes && matches!(self.fields.block_hashes, Some(None));
                Ok(())
            }
            Offer::Value(_, Err(_)) => {
                self.doubtful = true;
                cursor.seek(value);
                skip(cursor)
            }
            Offer::Tag => self.tags.read(name, cursor),
        }
    }
}

/// Reads an event of `len` pairs at `cursor`.
///
/// One walk reads all fields that any event can have, because the tag that says which of them count may come last. Only
/// if one of them was at fault, a second walk looks for the first fault in a field that does count.
pub(super) fn read<'a>(cursor: &mut Cursor<'a>, len: u32) -> Result<Event<'a>, Fault> {
    let start = *cursor;
    let mut found = Found::default();
    let left = read_in_order(&mut found, cursor, len)?;
    let mut unknown = false;
    for _ in 0..left {
        let Some(key) = key(cursor)? else { continue };
        match Field::of(key) {
            Some(name) => found.read(name, cursor)?,
            None => {
                unknown = true;
                skip(cursor)?;
            }
        }
    }
    if unknown {
        found.fields.other = OtherFields::of_map(cursor.since(start.pos()), len);
    }
    let shape = found.tags.shape(cursor.pos())?;
    let fields = found.fields;
    if found.doubtful {
        first_fault(start, len, shape)?;
    }
    match fields.missing(shape, cursor.pos()) {
        Some(fault) => Err(fault),
        None => Ok(fields.into_event(shape)),
    }
}

/// Reads the keys of a store's event as long as they come in the order in which stores write them; how many are left.
///
/// An event that begins with another key is none of these. Knowing which key to expect saves finding out which one it is.
#[inline(always)]
fn read_in_order<'a>(found: &mut Found<'a>, cursor: &mut Cursor<'a>, len: u32) -> Result<u32, Fault> {
    let mut left = len;
    macro_rules! expect {
        ($($name:ident)*) => {$(
            if left > 0 && cursor.eat(&keys::$name) {
                found.read(Field::$name, cursor)?;
                left -= 1;
            }
        )*};
    }
    expect!(EventId);
    if left < len {
        expect! {
            Timestamp EventType Type ModelName BlockSize AdditionalSalt LoraName TenantId BackendId Medium DpRank GroupId
            ObjectKey SeqHashes BlockHashes SessionId BaseBlockIdx ParentHash TokenIds ParentBlockHash
        }
    }
    Ok(left)
}

/// The first fault in a field that belongs to `shape`, if there is one.
#[cold]
fn first_fault(mut cursor: Cursor<'_>, len: u32, shape: Shape) -> Result<(), Fault> {
    let mut fields = Fields::default();
    for _ in 0..len {
        let Some(key) = key(&mut cursor)? else { continue };
        let value = cursor.pos();
        let Some(name) = Field::of(key) else {
            skip(&mut cursor)?;
            continue;
        };
        match fields.read(name, &mut cursor) {
            Offer::Value(applies, outcome) if applies.to(shape) => {
                let is_nil_hashes = name == Field::BlockHashes && matches!(fields.block_hashes, Some(None));
                let outcome = if is_nil_hashes && !shape.envelope { Err(ErrorClass::WrongType) } else { outcome };
                outcome.map_err(|class| Fault::in_field(class, name.as_str(), value))?;
            }
            _ => {
                cursor.seek(value);
                skip(&mut cursor)?;
            }
        }
    }
    Ok(())
}

/// The next key; `None`, and past its value, if it is not text and so nobody's.
#[inline(always)]
pub(super) fn key<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Fault> {
    match cursor.key() {
        Ok(Some(key)) => Ok(Some(key)),
        Ok(None) => skip(cursor).map(|()| None),
        Err(class) => Err(Fault::at(class, cursor.pos())),
    }
}

#[inline(always)]
pub(super) fn skip(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    cursor.skip().map_err(|class| Fault::at(class, cursor.pos()))
}
