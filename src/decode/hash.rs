//! Block hashes as producers really send them: integers of any width and sign, or bytes.

use std::fmt;

use super::cursor::{Cursor, Head, Read};
use super::error::ErrorClass;
use super::list::{Element, sealed};

/// A hash as it came: 64 bits, or bytes of any length but zero.
///
/// Two hashes are equal if they came in the same form with the same value: an integer never equals bytes, even where
/// [`low64`](BlockHash::low64) of both is the same number, since truncated hashes and whole ones come from different
/// producers' settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockHash<'a> {
    /// An integer. A negative one is the same 64 bits read as unsigned (`-1` is [`u64::MAX`]).
    Int(u64),
    /// The full value of a byte hash; never empty when decoded.
    Bytes(&'a [u8]),
}

impl<'a> BlockHash<'a> {
    /// The 64-bit view that indexers share: the integer itself, or the last 8 bytes read big-endian; `None` for a byte
    /// hash shorter than that.
    #[must_use]
    pub fn low64(&self) -> Option<u64> {
        match self {
            BlockHash::Int(value) => Some(*value),
            BlockHash::Bytes(bytes) => bytes.last_chunk().map(|tail| u64::from_be_bytes(*tail)),
        }
    }

    #[inline]
    pub(super) fn parse(cursor: &mut Cursor<'a>) -> Read<Self> {
        match cursor.head()? {
            Head::Uint(value) => Ok(BlockHash::Int(value)),
            Head::Negative(value) => Ok(BlockHash::Int(value as u64)),
            Head::Bin([]) => Err(ErrorClass::BadHash),
            Head::Bin(bytes) => Ok(BlockHash::Bytes(bytes)),
            _ => Err(ErrorClass::WrongType),
        }
    }
}

/// Decimal, or `0x` and the bytes in hex.
impl fmt::Display for BlockHash<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockHash::Int(value) => value.fmt(f),
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
