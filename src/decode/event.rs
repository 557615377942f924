//! What an event says, whichever producer and shape it came from.

use super::hash::BlockHash;
use super::list::List;
use super::mm::BlockMmInfos;
use super::other::OtherFields;
use super::scalar::{CacheKind, MediumName, Timestamp};
use super::tokens::{MixedTokenIds, TokenIds};
use super::value::ExtraKeys;

/// What happened, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EventKind {
    /// Blocks or an object became readable (`BlockStored`, `stored`).
    Stored,
    /// They are no longer readable there (`BlockRemoved`, `removed`).
    Removed,
    /// Nothing of this publisher, tenant or cache is readable any more (`AllBlocksCleared`, `cleared`).
    Cleared,
    /// Something that its producer sends to be passed over (`Ignored`).
    Ignored,
}

impl EventKind {
    /// `stored`, `removed`, `cleared`, `ignored`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventKind::Stored => "stored",
            EventKind::Removed => "removed",
            EventKind::Cleared => "cleared",
            EventKind::Ignored => "ignored",
        }
    }

    /// The name in `type` and in a positional event's first place.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            EventKind::Stored => "BlockStored",
            EventKind::Removed => "BlockRemoved",
            EventKind::Cleared => "AllBlocksCleared",
            EventKind::Ignored => "Ignored",
        }
    }

    pub(super) const fn from_tag(tag: &[u8]) -> Option<EventKind> {
        match tag {
            b"BlockStored" => Some(EventKind::Stored),
            b"BlockRemoved" => Some(EventKind::Removed),
            b"AllBlocksCleared" => Some(EventKind::Cleared),
            b"Ignored" => Some(EventKind::Ignored),
            _ => None,
        }
    }

    pub(super) const fn from_event_type(event_type: &[u8]) -> Option<EventKind> {
        match event_type {
            b"stored" => Some(EventKind::Stored),
            b"removed" => Some(EventKind::Removed),
            b"cleared" => Some(EventKind::Cleared),
            _ => None,
        }
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One event. Everything in it borrows from the payload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Blocks or an object became readable.
    Stored(Stored<'a>),
    /// They are no longer readable there.
    Removed(Removed<'a>),
    /// Everything is gone.
    Cleared(Cleared<'a>),
    /// To be passed over.
    Ignored,
}

impl<'a> Event<'a> {
    /// What happened, in a word.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Event::Stored(_) => EventKind::Stored,
            Event::Removed(_) => EventKind::Removed,
            Event::Cleared(_) => EventKind::Cleared,
            Event::Ignored => EventKind::Ignored,
        }
    }

    /// The store's envelope; `None` for an engine's event.
    #[must_use]
    pub const fn envelope(&self) -> Option<&Envelope<'a>> {
        match self {
            Event::Stored(stored) => stored.envelope.as_ref(),
            Event::Removed(removed) => removed.envelope.as_ref(),
            Event::Cleared(cleared) => cleared.envelope.as_ref(),
            Event::Ignored => None,
        }
    }

    /// Fields that this decoder does not know, raw.
    #[must_use]
    pub fn other(&self) -> OtherFields<'a> {
        match self {
            Event::Stored(stored) => stored.other,
            Event::Removed(removed) => removed.other,
            Event::Cleared(cleared) => cleared.other,
            Event::Ignored => OtherFields::default(),
        }
    }

    /// The event's number in its publisher's life, where events are numbered (`event_id`).
    #[must_use]
    pub fn event_id(&self) -> Option<u64> {
        self.envelope().and_then(|envelope| envelope.event_id)
    }
}

/// `BlockStored` or `stored`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stored<'a> {
    /// `block_hashes`. Empty on a store's events, which name their object in the envelope.
    pub block_hashes: List<'a, BlockHash<'a>>,
    /// `parent_block_hash`: the block in front of the first one.
    pub parent_block_hash: Option<BlockHash<'a>>,
    /// `token_ids` of all the blocks, one behind the other; `None` also if they are not all integers.
    pub token_ids: Option<TokenIds<'a>>,
    /// `token_ids` with text among the integers, which hardly any producer sends. If this is set, `token_ids` is not.
    pub mixed_token_ids: Option<MixedTokenIds<'a>>,
    /// `block_size`, tokens.
    pub block_size: Option<u32>,
    /// `lora_id`.
    pub lora_id: Option<u64>,
    /// `lora_name`.
    pub lora_name: Option<&'a str>,
    /// `medium`.
    pub medium: Option<MediumName<'a>>,
    /// `extra_keys`.
    pub extra_keys: Option<ExtraKeys<'a>>,
    /// `block_mm_infos`.
    pub block_mm_infos: Option<BlockMmInfos<'a>>,
    /// `group_idx`: which of the engine's cache groups.
    pub group_idx: Option<u32>,
    /// `kv_cache_spec_kind`.
    pub kv_cache_spec_kind: Option<CacheKind<'a>>,
    /// `kv_cache_spec_sliding_window`, tokens.
    pub kv_cache_spec_sliding_window: Option<u32>,
    /// What newer producers add.
    pub additions: Additions<'a>,
    /// What events with `event_type` carry beyond this.
    pub envelope: Option<Envelope<'a>>,
    /// Fields that this decoder does not know.
    pub other: OtherFields<'a>,
}

impl<'a> Stored<'a> {
    /// An event with these hashes and nothing else.
    pub fn new(block_hashes: impl Into<List<'a, BlockHash<'a>>>) -> Self {
        Stored { block_hashes: block_hashes.into(), ..Stored::default() }
    }
}

/// `BlockRemoved` or `removed`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Removed<'a> {
    /// `block_hashes`. Empty on a store's events, which name their object in the envelope.
    pub block_hashes: List<'a, BlockHash<'a>>,
    /// `medium`.
    pub medium: Option<MediumName<'a>>,
    /// `group_idx`: which of the engine's cache groups.
    pub group_idx: Option<u32>,
    /// `kv_cache_spec_kind`.
    pub kv_cache_spec_kind: Option<CacheKind<'a>>,
    /// `kv_cache_spec_sliding_window`, tokens.
    pub kv_cache_spec_sliding_window: Option<u32>,
    /// `block_size`, tokens; read only beside an envelope.
    pub block_size: Option<u32>,
    /// `lora_name`; read only beside an envelope.
    pub lora_name: Option<&'a str>,
    /// What newer producers add.
    pub additions: Additions<'a>,
    /// What events with `event_type` carry beyond this.
    pub envelope: Option<Envelope<'a>>,
    /// Fields that this decoder does not know.
    pub other: OtherFields<'a>,
}

impl<'a> Removed<'a> {
    /// An event with these hashes and nothing else.
    pub fn new(block_hashes: impl Into<List<'a, BlockHash<'a>>>) -> Self {
        Removed { block_hashes: block_hashes.into(), ..Removed::default() }
    }
}

/// `AllBlocksCleared` or `cleared`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cleared<'a> {
    /// `medium`: the one that was cleared, where a producer clears one alone; `None` for all. In a positional event it is
    /// in the place behind the tag, which another producer uses for `source_kind`: what names a medium there is one.
    /// (A store's `cleared` is about all media, whatever stands here.)
    pub medium: Option<MediumName<'a>>,
    /// `block_size`, tokens; read only beside an envelope.
    pub block_size: Option<u32>,
    /// `lora_name`; read only beside an envelope.
    pub lora_name: Option<&'a str>,
    /// What newer producers add.
    pub additions: Additions<'a>,
    /// What events with `event_type` carry beyond this.
    pub envelope: Option<Envelope<'a>>,
    /// Fields that this decoder does not know.
    pub other: OtherFields<'a>,
    /// Whether it came in positional form.
    pub(crate) by_place: ByPlace,
}

/// How an event came; makes no difference to what it says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByPlace(#[cfg_attr(not(feature = "serde"), allow(dead_code))] pub(super) bool);

impl PartialEq for ByPlace {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Fields that newer producers add to any event in map form (and `cache_salt` and `session_id` in the map at position 7
/// of a positional one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Additions<'a> {
    /// `cache_salt`: keeps equal prompts of different salts apart.
    pub cache_salt: Option<&'a str>,
    /// `session_id`.
    pub session_id: Option<&'a str>,
    /// `locality`: `LOCAL` or `REMOTE`, as seen from the publisher.
    pub locality: Option<&'a str>,
    /// `ownership`: which secondary tier owns the blocks.
    pub ownership: Option<&'a str>,
    /// `source_kind`.
    pub source_kind: Option<&'a str>,
}

/// What an event with `event_type` carries: the store's own fields. Each may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// `event_id`: dense per publisher, from 1.
    pub event_id: Option<u64>,
    /// `timestamp`.
    pub timestamp: Option<Timestamp>,
    /// `tenant_id`.
    pub tenant_id: Option<&'a str>,
    /// `backend_id`.
    pub backend_id: Option<&'a str>,
    /// `object_key`, verbatim.
    pub object_key: Option<&'a str>,
    /// `group_id`.
    pub group_id: Option<&'a str>,
    /// `seq_hashes`.
    pub seq_hashes: List<'a, BlockHash<'a>>,
    /// `base_block_idx`.
    pub base_block_idx: Option<u64>,
    /// `parent_hash`.
    pub parent_hash: Option<BlockHash<'a>>,
    /// `model_name`.
    pub model_name: Option<&'a str>,
    /// `additional_salt`.
    pub additional_salt: Option<&'a str>,
    /// `dp_rank`. Where it differs from the batch's, it is the one that counts
    /// (see [`Batch::rank_of`](super::Batch::rank_of)).
    pub dp_rank: Option<i128>,
}
