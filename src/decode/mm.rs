//! `block_mm_infos`: which multimodal objects a block holds, and where.

use super::cursor::{Cursor, Head, Read};
use super::error::ErrorClass;
use super::hash::BlockHash;
use super::list::{Element, List, sealed};

/// `block_mm_infos` of a stored event: for every block nil, or its objects.
pub type BlockMmInfos<'a> = List<'a, Option<MmInfo<'a>>>;

/// The multimodal objects of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MmInfo<'a> {
    /// `mm_objects`.
    pub objects: List<'a, MmObject<'a>>,
}

/// One multimodal object in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MmObject<'a> {
    /// `mm_hash`: what the object is.
    pub hash: BlockHash<'a>,
    /// `offsets`: the ranges of positions it takes, as the producer gave them.
    pub offsets: List<'a, (u64, u64)>,
}

/// Reads a struct of `N` fields that came as a map or positionally. `fields` reads field number `n`.
fn fields<'a, const N: usize>(
    cursor: &mut Cursor<'a>,
    names: [&[u8]; N],
    mut field: impl FnMut(usize, &mut Cursor<'a>) -> Read<()>,
) -> Read<()> {
    let mut seen = [false; N];
    match cursor.head()? {
        Head::Map(len) => {
            for _ in 0..len {
                let key = cursor.key()?;
                match names.iter().position(|name| key == Some(*name)) {
                    Some(n) => {
                        field(n, cursor)?;
                        seen[n] = true;
                    }
                    None => cursor.skip()?,
                }
            }
        }
        Head::Array(len) => {
            for n in 0..len as usize {
                match seen.get_mut(n) {
                    Some(seen) => {
                        field(n, cursor)?;
                        *seen = true;
                    }
                    None => cursor.skip()?,
                }
            }
        }
        _ => return Err(ErrorClass::WrongType),
    }
    if seen.contains(&false) { Err(ErrorClass::MissingField) } else { Ok(()) }
}

impl<'a> Element<'a> for MmInfo<'a> {}

impl<'a> sealed::Element<'a> for MmInfo<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        let mut info = MmInfo { objects: List::empty() };
        fields(cursor, [b"mm_objects"], |_, cursor| {
            info.objects = List::read(cursor)?;
            Ok(())
        })?;
        Ok(info)
    }
}

impl<'a> Element<'a> for MmObject<'a> {}

impl<'a> sealed::Element<'a> for MmObject<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        let mut object = MmObject { hash: BlockHash::Int(0), offsets: List::empty() };
        fields(cursor, [b"mm_hash", b"offsets"], |n, cursor| {
            match n {
                0 => object.hash = BlockHash::parse(cursor)?,
                _ => object.offsets = List::read(cursor)?,
            }
            Ok(())
        })?;
        Ok(object)
    }
}

impl<'a> Element<'a> for (u64, u64) {}

impl<'a> sealed::Element<'a> for (u64, u64) {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        match cursor.array()? {
            2 => Ok((cursor.uint()?, cursor.uint()?)),
            _ => Err(ErrorClass::WrongType),
        }
    }
}
