//! All fields that any event can have, as they are found, and the event they make.

use super::cursor::{Cursor, Read};
use super::error::{ErrorClass, Fault};
use super::event::{Additions, ByPlace, Cleared, Envelope, Event, EventKind, Removed, Stored};
use super::hash::BlockHash;
use super::list::List;
use super::mm::BlockMmInfos;
use super::names::Field;
use super::other::OtherFields;
use super::scalar::{CacheKind, MediumName, Timestamp};
use super::tokens::{MixedTokenIds, TokenIds};
use super::value::ExtraKeys;

/// What an event's tag makes of it: its kind, and whether it carries the envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) kind: EventKind,
    pub(super) envelope: bool,
}

/// Which shapes a field belongs to; for all others it is an unknown key.
#[derive(Clone, Copy)]
pub(super) struct Applies(u8);

impl Applies {
    const STORED: u8 = 1;
    const STORED_ENVELOPE: u8 = 2;
    const REMOVED: u8 = 4;
    const REMOVED_ENVELOPE: u8 = 8;
    const CLEARED: u8 = 16;
    const CLEARED_ENVELOPE: u8 = 32;

    const TO_STORED: Applies = Applies(Self::STORED | Self::STORED_ENVELOPE);
    const TO_BLOCKS: Applies = Applies(Self::TO_STORED.0 | Self::REMOVED | Self::REMOVED_ENVELOPE);
    const TO_ENVELOPE: Applies = Applies(Self::STORED_ENVELOPE | Self::REMOVED_ENVELOPE | Self::CLEARED_ENVELOPE);
    const TO_STORED_OR_ENVELOPE: Applies = Applies(Self::STORED | Self::TO_ENVELOPE.0);
    const TO_BLOCKS_OR_ENVELOPE: Applies = Applies(Self::TO_BLOCKS.0 | Self::TO_ENVELOPE.0);
    const TO_ALL: Applies = Applies(Self::TO_BLOCKS_OR_ENVELOPE.0 | Self::CLEARED);

    pub(super) const fn to(self, shape: Shape) -> bool {
        let bit = match (shape.kind, shape.envelope) {
            (EventKind::Stored, false) => Self::STORED,
            (EventKind::Stored, true) => Self::STORED_ENVELOPE,
            (EventKind::Removed, false) => Self::REMOVED,
            (EventKind::Removed, true) => Self::REMOVED_ENVELOPE,
            (EventKind::Cleared, false) => Self::CLEARED,
            (EventKind::Cleared, true) => Self::CLEARED_ENVELOPE,
            (EventKind::Ignored, _) => 0,
        };
        self.0 & bit != 0
    }
}

/// Everything found so far; the last value of a key counts.
#[derive(Default)]
pub(super) struct Fields<'a> {
    /// `None` if absent, `Some(None)` if nil (which only an event with an envelope may say).
    pub(super) block_hashes: Option<Option<List<'a, BlockHash<'a>>>>,
    pub(super) parent_block_hash: Option<BlockHash<'a>>,
    pub(super) token_ids: Option<Option<TokenIds<'a>>>,
    pub(super) mixed_token_ids: Option<MixedTokenIds<'a>>,
    pub(super) block_size: Option<Option<u32>>,
    pub(super) lora_id: Option<u64>,
    pub(super) lora_name: Option<&'a str>,
    pub(super) medium: Option<MediumName<'a>>,
    pub(super) extra_keys: Option<ExtraKeys<'a>>,
    pub(super) block_mm_infos: Option<BlockMmInfos<'a>>,
    pub(super) group_idx: Option<u32>,
    pub(super) kind: Option<CacheKind<'a>>,
    pub(super) window: Option<u32>,
    pub(super) additions: Additions<'a>,
    pub(super) envelope: Envelope<'a>,
    pub(super) other: OtherFields<'a>,
    pub(super) by_place: bool,
}

/// What came of offering a value to [`Fields::read`].
pub(super) enum Offer {
    /// The value went into its field, or is at fault.
    Value(Applies, Read<()>),
    /// The key is a tag's. The value is untouched.
    Tag,
}

impl<'a> Fields<'a> {
    /// Reads the value at `cursor` into the field called `name`. The fields are read whatever the tag will turn out to
    /// be, so that one walk is enough for keys in any order.
    #[inline(always)]
    pub(super) fn read(&mut self, name: Field, cursor: &mut Cursor<'a>) -> Offer {
        let envelope = &mut self.envelope;
        let additions = &mut self.additions;
        macro_rules! field {
            ($applies:ident, $slot:expr, $read:expr) => {
                Offer::Value(Applies::$applies, cursor.optional($read).map(|value| $slot = value))
            };
        }
        match name {
            Field::EventId => field!(TO_ENVELOPE, envelope.event_id, Cursor::uint),
            Field::Timestamp => field!(TO_ENVELOPE, envelope.timestamp, Timestamp::parse),
            Field::ModelName => field!(TO_ENVELOPE, envelope.model_name, Cursor::text),
            Field::AdditionalSalt => field!(TO_ENVELOPE, envelope.additional_salt, Cursor::text),
            Field::TenantId => field!(TO_ENVELOPE, envelope.tenant_id, Cursor::text),
            Field::BackendId => field!(TO_ENVELOPE, envelope.backend_id, Cursor::text),
            Field::DpRank => field!(TO_ENVELOPE, envelope.dp_rank, Cursor::integer),
            Field::GroupId => field!(TO_ENVELOPE, envelope.group_id, Cursor::text),
            Field::ObjectKey => field!(TO_ENVELOPE, envelope.object_key, Cursor::text),
            Field::SeqHashes => Offer::Value(
                Applies::TO_ENVELOPE,
                cursor.optional(List::read).map(|value| envelope.seq_hashes = value.unwrap_or_default()),
            ),
            Field::BaseBlockIdx => field!(TO_ENVELOPE, envelope.base_block_idx, Cursor::uint),
            Field::ParentHash => field!(TO_ENVELOPE, envelope.parent_hash, BlockHash::parse),
            Field::BlockHashes => Offer::Value(
                Applies::TO_BLOCKS,
                cursor.optional(List::read).map(|value| self.block_hashes = Some(value)),
            ),
            Field::ParentBlockHash => field!(TO_STORED, self.parent_block_hash, BlockHash::parse),
            Field::TokenIds => Offer::Value(Applies::TO_STORED, self.read_tokens(cursor)),
            Field::BlockSize => Offer::Value(
                Applies::TO_STORED_OR_ENVELOPE,
                cursor.optional(Cursor::uint32).map(|value| self.block_size = Some(value)),
            ),
            Field::LoraId => field!(TO_STORED, self.lora_id, Cursor::uint),
            Field::LoraName => field!(TO_STORED_OR_ENVELOPE, self.lora_name, Cursor::text),
            Field::Medium => field!(TO_BLOCKS_OR_ENVELOPE, self.medium, medium),
            Field::ExtraKeys => field!(TO_STORED, self.extra_keys, List::read),
            Field::BlockMmInfos => field!(TO_STORED, self.block_mm_infos, List::read),
            Field::GroupIdx => field!(TO_BLOCKS, self.group_idx, Cursor::uint32),
            Field::CacheKind => field!(TO_BLOCKS, self.kind, kind),
            Field::SlidingWindow => field!(TO_BLOCKS, self.window, Cursor::uint32),
            Field::CacheSalt => field!(TO_ALL, additions.cache_salt, Cursor::text),
            Field::SessionId => field!(TO_ALL, additions.session_id, Cursor::text),
            Field::Locality => field!(TO_ALL, additions.locality, Cursor::text),
            Field::Ownership => field!(TO_ALL, additions.ownership, Cursor::text),
            Field::SourceKind => field!(TO_ALL, additions.source_kind, Cursor::text),
            Field::Type | Field::EventType => Offer::Tag,
        }
    }

    /// Reads `token_ids`.
    #[inline(always)]
    pub(super) fn read_tokens(&mut self, cursor: &mut Cursor<'a>) -> Read<()> {
        let start = cursor.pos();
        match cursor.optional(TokenIds::read) {
            Ok(tokens) => {
                (self.token_ids, self.mixed_token_ids) = (Some(tokens), None);
                Ok(())
            }
            Err(class) => {
                cursor.seek(start);
                self.read_mixed_tokens(cursor, class)
            }
        }
    }

    /// Reads `token_ids` that are not all integers, if it is text that they hold; otherwise `class` is what is wrong.
    #[cold]
    fn read_mixed_tokens(&mut self, cursor: &mut Cursor<'a>, class: ErrorClass) -> Read<()> {
        if class != ErrorClass::WrongType {
            return Err(class);
        }
        self.mixed_token_ids = Some(List::read(cursor)?);
        self.token_ids = Some(None);
        Ok(())
    }

    /// The first required field that is missing.
    pub(super) fn missing(&self, shape: Shape, end: usize) -> Option<Fault> {
        if shape.envelope {
            return None;
        }
        let missing = match shape.kind {
            EventKind::Stored | EventKind::Removed if self.block_hashes.is_none() => "block_hashes",
            EventKind::Stored if self.token_ids.is_none() => "token_ids",
            EventKind::Stored if self.block_size.is_none() => "block_size",
            _ => return None,
        };
        Some(Fault::in_field(ErrorClass::MissingField, missing, end))
    }

    /// The event that these fields make; those that do not belong to `shape` are dropped.
    #[inline]
    pub(super) fn into_event(self, shape: Shape) -> Event<'a> {
        let envelope = shape.envelope.then_some(self.envelope);
        let block_hashes = self.block_hashes.flatten().unwrap_or_default();
        match shape.kind {
            EventKind::Stored => Event::Stored(Stored {
                block_hashes,
                parent_block_hash: self.parent_block_hash,
                token_ids: self.token_ids.flatten(),
                mixed_token_ids: self.mixed_token_ids,
                block_size: self.block_size.flatten(),
                lora_id: self.lora_id,
                lora_name: self.lora_name,
                medium: self.medium,
                extra_keys: self.extra_keys,
                block_mm_infos: self.block_mm_infos,
                group_idx: self.group_idx,
                kv_cache_spec_kind: self.kind,
                kv_cache_spec_sliding_window: self.window,
                additions: self.additions,
                envelope,
                other: self.other,
            }),
            EventKind::Removed => Event::Removed(Removed {
                block_hashes,
                medium: self.medium,
                group_idx: self.group_idx,
                kv_cache_spec_kind: self.kind,
                kv_cache_spec_sliding_window: self.window,
                block_size: if shape.envelope { self.block_size.flatten() } else { None },
                lora_name: if shape.envelope { self.lora_name } else { None },
                additions: self.additions,
                envelope,
                other: self.other,
            }),
            EventKind::Cleared => Event::Cleared(Cleared {
                // An engine's clear stands whatever is in its `medium`: one that is no text is none.
                medium: self.medium,
                block_size: if shape.envelope { self.block_size.flatten() } else { None },
                lora_name: if shape.envelope { self.lora_name } else { None },
                additions: self.additions,
                envelope,
                other: self.other,
                by_place: ByPlace(self.by_place),
            }),
            EventKind::Ignored => Event::Ignored,
        }
    }
}

pub(super) fn medium<'a>(cursor: &mut Cursor<'a>) -> Read<MediumName<'a>> {
    cursor.text().map(MediumName::new)
}

pub(super) fn kind<'a>(cursor: &mut Cursor<'a>) -> Read<CacheKind<'a>> {
    cursor.text().map(CacheKind::from_wire)
}
