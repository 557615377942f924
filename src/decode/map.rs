//! Events in map form: keys in any order, the tag where it likes.

use super::cursor::Cursor;
use super::error::{ErrorClass, Fault, ForeignKind};
use super::event::{Event, EventKind};
use super::fields::{Fields, Offer, Shape};
use super::hash::BlockHash;
use super::list::List;
use super::names::{Field, keys};
use super::other::OtherFields;
use super::scalar::{MediumName, Timestamp};

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

    /// The value at `cursor` as `event_type`, past it, if it is one of the usual.
    #[inline(always)]
    fn usual_event_type(cursor: &mut Cursor<'_>) -> Option<Option<EventKind>> {
        let kind = if cursor.eat(b"\xa6stored") {
            EventKind::Stored
        } else if cursor.eat(b"\xa7removed") {
            EventKind::Removed
        } else {
            return None;
        };
        Some(Some(kind))
    }

    /// The value at `cursor` as `type`, past it, if it is one of the usual.
    #[inline(always)]
    fn usual_type(cursor: &mut Cursor<'_>) -> Option<Option<EventKind>> {
        let kind = if cursor.eat(b"\xabBlockStored") {
            EventKind::Stored
        } else if cursor.eat(b"\xacBlockRemoved") {
            EventKind::Removed
        } else {
            return None;
        };
        Some(Some(kind))
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
/// An event that begins with another key is none of these. Knowing which key to expect saves finding out which one it is,
/// and the usual values of it are read here; [`Fields::read`] reads all.
#[inline(always)]
fn read_in_order<'a>(found: &mut Found<'a>, cursor: &mut Cursor<'a>, len: u32) -> Result<u32, Fault> {
    let mut left = len;
    let unusual = &mut *cursor;
    // A copy that nobody else ever has a pointer to, so that a processor's registers hold it.
    let mut at = *unusual;
    macro_rules! expect {
        ($name:ident, $usual:expr, $($place:tt)+) => {
            if left > 0 && at.eat(&keys::$name) {
                match $usual {
                    Some(value) => found.$($place)+ = value,
                    None => {
                        unusual.seek(at.pos());
                        found.read(Field::$name, unusual)?;
                        at.seek(unusual.pos());
                    }
                }
                left -= 1;
            }
        };
    }
    expect!(EventId, at.usual_uint(), fields.envelope.event_id);
    if left == len {
        return Ok(left);
    }
    let int = |value| Timestamp::Int(i128::from(value));
    expect!(Timestamp, at.usual_uint().map(|value| value.map(int)), fields.envelope.timestamp);
    expect!(EventType, Tags::usual_event_type(&mut at), tags.by_event_type);
    expect!(Type, Tags::usual_type(&mut at), tags.by_type);
    expect!(ModelName, at.usual_text(), fields.envelope.model_name);
    expect!(BlockSize, at.usual_small().map(|value| Some(value.map(u32::from))), fields.block_size);
    expect!(AdditionalSalt, at.usual_text(), fields.envelope.additional_salt);
    expect!(LoraName, at.usual_text(), fields.lora_name);
    expect!(TenantId, at.usual_text(), fields.envelope.tenant_id);
    expect!(BackendId, at.usual_text(), fields.envelope.backend_id);
    expect!(Medium, at.usual_text().map(|text| text.map(MediumName::new)), fields.medium);
    expect!(DpRank, at.usual_small().map(|value| value.map(i128::from)), fields.envelope.dp_rank);
    expect!(GroupId, at.usual_text(), fields.envelope.group_id);
    expect!(ObjectKey, at.usual_text(), fields.envelope.object_key);
    expect!(SeqHashes, at.eat(&EMPTY).then(List::empty), fields.envelope.seq_hashes);
    expect!(BlockHashes, at.eat(&EMPTY).then(|| Some(Some(List::empty()))), fields.block_hashes);
    expect!(SessionId, at.usual_text(), fields.additions.session_id);
    expect!(BaseBlockIdx, at.usual_uint(), fields.envelope.base_block_idx);
    expect!(ParentHash, at.usual_uint().map(|value| value.map(BlockHash::Int)), fields.envelope.parent_hash);
    expect!(TokenIds, at.eat(&NIL).then_some(Some(None)), fields.token_ids);
    expect!(ParentBlockHash, at.usual_uint().map(|value| value.map(BlockHash::Int)), fields.parent_block_hash);
    unusual.seek(at.pos());
    Ok(left)
}

const NIL: [u8; 1] = [0xc0];
const EMPTY: [u8; 1] = [0x90];

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
