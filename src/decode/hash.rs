//! Block hashes as producers really send them: integers of any width and sign, or bytes.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::cursor::{Cursor, Head, Read};
use super::error::ErrorClass;
use super::list::{Element, sealed};

/// A hash as it came: 64 bits, or bytes of any length but zero.
///
/// Two hashes are equal if they came in the same form with the same value: an integer never equals bytes, even where
/// [`low64`](BlockHash::low64) of both is the same number, since truncated hashes and whole ones come from different
/// producers' settings. The sign of an integer is kept, so that it can be sent on as it came, but makes no difference: it
/// is its 64 bits that are compared, hashed and displayed (`-1` equals [`u64::MAX`]).
#[derive(Clone, Copy)]
pub enum BlockHash<'a> {
    /// An integer that is not negative.
    Int(u64),
    /// An integer below zero, as producers that count hashes as signed send them.
    Negative(i64),
    /// The full value of a byte hash; never empty when decoded.
    Bytes(&'a [u8]),
}

impl<'a> BlockHash<'a> {
    /// The hash of a producer that counts hashes as signed.
    #[must_use]
    pub const fn signed(value: i64) -> Self {
        if value < 0 { BlockHash::Negative(value) } else { BlockHash::Int(value as u64) }
    }

    /// The 64-bit view that indexers share: the integer itself, or the last 8 bytes read big-endian; `None` for a byte
    /// hash shorter than that.
    #[must_use]
    pub fn low64(&self) -> Option<u64> {
        match self {
            BlockHash::Int(value) => Some(*value),
            BlockHash::Negative(value) => Some(*value as u64),
            BlockHash::Bytes(bytes) => bytes.last_chunk().map(|tail| u64::from_be_bytes(*tail)),
        }
    }

    #[inline(always)]
    pub(super) fn parse(cursor: &mut Cursor<'a>) -> Read<Self> {
        // What nearly all hashes are.
        if let Some(value) = cursor.eat_uint64() {
            return Ok(BlockHash::Int(value));
        }
        BlockHash::parse_any(cursor)
    }

    fn parse_any(cursor: &mut Cursor<'a>) -> Read<Self> {
        match cursor.head()? {
            Head::Uint(value) => Ok(BlockHash::Int(value)),
            Head::Negative(value) => Ok(BlockHash::Negative(value)),
            Head::Bin([]) => Err(ErrorClass::BadHash),
            Head::Bin(bytes) => Ok(BlockHash::Bytes(bytes)),
            _ => Err(ErrorClass::WrongType),
        }
    }
}

/// What counts in comparisons.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Compared<'a> {
    Bits(u64),
    Bytes(&'a [u8]),
}

impl<'a> BlockHash<'a> {
    #[inline]
    fn compared(&self) -> Compared<'a> {
        match self {
            BlockHash::Int(value) => Compared::Bits(*value),
            BlockHash::Negative(value) => Compared::Bits(*value as u64),
            BlockHash::Bytes(bytes) => Compared::Bytes(bytes),
        }
    }
}

impl PartialEq for BlockHash<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.compared() == other.compared()
    }
}

impl Eq for BlockHash<'_> {}

/// Integers by their 64 bits, then bytes.
impl PartialOrd for BlockHash<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BlockHash<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compared().cmp(&other.compared())
    }
}

impl Hash for BlockHash<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.compared().hash(state);
    }
}

/// Decimal (the 64 bits, unsigned), or `0x` and the bytes in hex.
impl fmt::Display for BlockHash<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockHash::Int(value) => value.fmt(f),
            BlockHash::Negative(value) => (*value as u64).fmt(f),
            BlockHash::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl fmt::Debug for BlockHash<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<u64> for BlockHash<'_> {
    fn from(value: u64) -> Self {
        BlockHash::Int(value)
    }
}

impl<'a> Element<'a> for BlockHash<'a> {}

impl<'a> sealed::Element<'a> for BlockHash<'a> {
    #[inline]
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        BlockHash::parse(cursor)
    }
}
