//! The names that fields have in map form, and a quick way from a key to its field.

macro_rules! names {
    ($($name:ident = $text:literal,)*) => {
        /// A key that means something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Field {
            $($name,)*
        }

        const NAMES: &[(Field, &str)] = &[$((Field::$name, $text),)*];

        /// The names as keys on the wire: msgpack text of up to 31 bytes.
        #[allow(non_upper_case_globals, dead_code, reason = "called like the fields; not all are expected anywhere")]
        pub(super) mod keys {
            use super::encoded;

            $(pub(in super::super) const $name: [u8; 1 + $text.len()] = encoded($text);)*
        }
    };
}

const fn encoded<const N: usize>(name: &str) -> [u8; N] {
    let name = name.as_bytes();
    assert!(N == name.len() + 1 && N <= 32);
    let mut key = [rmp::Marker::FixStr(name.len() as u8).to_u8(); N];
    let mut at = 0;
    while at < name.len() {
        key[at + 1] = name[at];
        at += 1;
    }
    key
}

names! {
    EventId = "event_id",
    Timestamp = "timestamp",
    EventType = "event_type",
    Type = "type",
    ModelName = "model_name",
    BlockSize = "block_size",
    AdditionalSalt = "additional_salt",
    LoraName = "lora_name",
    TenantId = "tenant_id",
    BackendId = "backend_id",
    Medium = "medium",
    DpRank = "dp_rank",
    GroupId = "group_id",
    ObjectKey = "object_key",
    SeqHashes = "seq_hashes",
    BlockHashes = "block_hashes",
    BaseBlockIdx = "base_block_idx",
    ParentHash = "parent_hash",
    TokenIds = "token_ids",
    ParentBlockHash = "parent_block_hash",
    LoraId = "lora_id",
    ExtraKeys = "extra_keys",
    BlockMmInfos = "block_mm_infos",
    GroupIdx = "group_idx",
    CacheKind = "kv_cache_spec_kind",
    SlidingWindow = "kv_cache_spec_sliding_window",
    CacheSalt = "cache_salt",
    SessionId = "session_id",
    Locality = "locality",
    Ownership = "ownership",
    SourceKind = "source_kind",
}

const SLOTS: usize = 64;

/// A slot for every name, no two the same: the multipliers were found by trying, and building the table checks them.
#[inline(always)]
const fn slot(key: &[u8]) -> usize {
    let [first, .., last] = key else { return 0 };
    let middle = key[key.len() / 2];
    (*first as usize * 159 + middle as usize * 19 + *last as usize * 121 + key.len()) % SLOTS
}

const TABLE: [u8; SLOTS] = {
    let mut table = [u8::MAX; SLOTS];
    let mut n = 0;
    while n < NAMES.len() {
        let slot = slot(NAMES[n].1.as_bytes());
        assert!(table[slot] == u8::MAX, "two names share a slot: find other multipliers");
        table[slot] = n as u8;
        n += 1;
    }
    table
};

impl Field {
    /// The name that this key is, if it is one.
    #[inline(always)]
    pub(super) fn of(key: &[u8]) -> Option<Field> {
        let (name, text) = NAMES.get(usize::from(TABLE[slot(key)]))?;
        same(text.as_bytes(), key).then_some(*name)
    }

    /// As on the wire.
    pub(super) fn as_str(self) -> &'static str {
        NAMES.get(self as usize).map_or("", |(_, text)| text)
    }
}

/// Whether two keys are equal; most are of 8 to 16 bytes, which two words cover.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    let words = |key: &[u8]| -> Option<[u64; 2]> {
        let (first, last) = (key.first_chunk()?, key.last_chunk()?);
        Some([u64::from_ne_bytes(*first), u64::from_ne_bytes(*last)])
    };
    if a.len() != b.len() {
        return false;
    }
    match (words(a), words(b)) {
        (Some(x), Some(y)) if a.len() <= 16 => x == y,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_nothing_else() {
        for (name, text) in NAMES {
            assert_eq!(Field::of(text.as_bytes()), Some(*name));
            assert_eq!(name.as_str(), *text);
            let mut other = text.as_bytes().to_vec();
            other[1] ^= 1;
            assert_eq!(Field::of(&other), None);
            assert_eq!(Field::of(&text.as_bytes()[1..]), None);
        }
        for key in [&b""[..], b"t", b"ty", b"types", b"\xff\xff"] {
            assert_eq!(Field::of(key), None);
        }
    }
}
