//! A position in msgpack bytes, and the few readings everything else is made of.

use rmp::Marker;

use super::error::ErrorClass;
use super::ints::{AHEAD, RUN, decode_run, fold_run, skip_run};
use super::text;

/// Size in bytes, marker included, of every value whose marker alone tells it; 0 for the rest.
pub(super) const FIXED_SIZE: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        sizes[byte] = match Marker::from_u8(byte as u8) {
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => 1,
            Marker::FixStr(len) => 1 + len,
            Marker::U8 | Marker::I8 => 2,
            Marker::U16 | Marker::I16 => 3,
            Marker::U32 | Marker::I32 | Marker::F32 => 5,
            Marker::U64 | Marker::I64 | Marker::F64 => 9,
            Marker::FixExt1 => 3,
            Marker::FixExt2 => 4,
            Marker::FixExt4 => 6,
            Marker::FixExt8 => 10,
            Marker::FixExt16 => 18,
            _ => 0,
        };
        byte += 1;
    }
    sizes
};

/// One value, or the header of a container whose children follow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head<'a> {
    Nil,
    Bool(bool),
    /// Any integer that is not negative, whatever its marker.
    Uint(u64),
    /// A negative integer.
    Negative(i64),
    Float(f64),
    Str(&'a [u8]),
    Bin(&'a [u8]),
    Ext(i8, &'a [u8]),
    Array(u32),
    Map(u32),
}

/// What a cursor has just moved past.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    /// Whether it was a container's header and not a leaf.
    pub(super) container: bool,
    /// How many values are next because of it.
    pub(super) children: u64,
    /// Whether these may well be a run of integers.
    pub(super) may_run: bool,
    /// Whether they may well be the pairs of a store's event.
    pub(super) may_be_known: bool,
}

/// Reads forward through `data`. Every reading either moves past one value or leaves the position undefined and
/// says why; nothing is taken on the word of a length.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    pos: usize,
    /// A stretch further on that the structural pass saw to be a whole array's elements, all of them integers of 32 bits
    /// at most; none if its beginning is 0.
    run: (usize, usize),
}

pub type Read<T> = Result<T, ErrorClass>;

impl<'a> Cursor<'a> {
    pub(super) const fn new(data: &'a [u8], pos: usize) -> Self {
        Cursor { data, pos, run: (0, 0) }
    }

    pub(super) const fn pos(&self) -> usize {
        self.pos
    }

    pub(super) const fn seek(&mut self, pos: usize) {
        self.pos = pos;
    }

    /// Tells of a run further on.
    pub(super) const fn expect_run(&mut self, run: (usize, usize)) {
        self.run = run;
    }

    pub(super) const fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The bytes from here on.
    #[inline(always)]
    pub(super) fn rest(&self) -> Option<&'a [u8]> {
        self.data.get(self.pos..)
    }

    /// The bytes from `start` to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.data.get(start..self.pos).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn peek(&self) -> Read<u8> {
        self.data.get(self.pos).copied().ok_or(ErrorClass::Truncated)
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        match self.data.get(self.pos..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(bytes) => {
                self.pos += N;
                Ok(*bytes)
            }
            None => Err(ErrorClass::Truncated),
        }
    }

    #[inline(always)]
    pub(super) fn bytes(&mut self, len: usize) -> Read<&'a [u8]> {
        match self.data.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(bytes) => {
                self.pos += len;
                Ok(bytes)
            }
            None => Err(ErrorClass::Truncated),
        }
    }

    #[inline(always)]
    fn len8(&mut self) -> Read<usize> {
        self.take::<1>().map(|[len]| usize::from(len))
    }

    #[inline(always)]
    fn len16(&mut self) -> Read<usize> {
        self.take().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    #[inline(always)]
    fn len32(&mut self) -> Read<usize> {
        self.take().map(|bytes| u32::from_be_bytes(bytes) as usize)
    }

    /// Reads a value; of a container only the header, the children being next.
    #[inline(always)]
    pub(super) fn head(&mut self) -> Read<Head<'a>> {
        let byte = self.peek()?;
        self.pos += 1;
        Ok(match Marker::from_u8(byte) {
            Marker::FixPos(n) => Head::Uint(u64::from(n)),
            Marker::FixNeg(n) => Head::Negative(i64::from(n)),
            Marker::Null => Head::Nil,
            Marker::True => Head::Bool(true),
            Marker::False => Head::Bool(false),
            Marker::U8 => Head::Uint(u64::from(u8::from_be_bytes(self.take()?))),
            Marker::U16 => Head::Uint(u64::from(u16::from_be_bytes(self.take()?))),
            Marker::U32 => Head::Uint(u64::from(u32::from_be_bytes(self.take()?))),
            Marker::U64 => Head::Uint(u64::from_be_bytes(self.take()?)),
            Marker::I8 => signed(i64::from(i8::from_be_bytes(self.take()?))),
            Marker::I16 => signed(i64::from(i16::from_be_bytes(self.take()?))),
            Marker::I32 => signed(i64::from(i32::from_be_bytes(self.take()?))),
            Marker::I64 => signed(i64::from_be_bytes(self.take()?)),
            Marker::F32 => Head::Float(f64::from(f32::from_be_bytes(self.take()?))),
            Marker::F64 => Head::Float(f64::from_be_bytes(self.take()?)),
            Marker::FixStr(len) => Head::Str(self.bytes(usize::from(len))?),
            Marker::Str8 => Head::Str(self.len8().and_then(|len| self.bytes(len))?),
            Marker::Str16 => Head::Str(self.len16().and_then(|len| self.bytes(len))?),
            Marker::Str32 => Head::Str(self.len32().and_then(|len| self.bytes(len))?),
            Marker::Bin8 => Head::Bin(self.len8().and_then(|len| self.bytes(len))?),
            Marker::Bin16 => Head::Bin(self.len16().and_then(|len| self.bytes(len))?),
            Marker::Bin32 => Head::Bin(self.len32().and_then(|len| self.bytes(len))?),
            Marker::FixArray(len) => Head::Array(u32::from(len)),
            Marker::Array16 => Head::Array(self.len16()? as u32),
            Marker::Array32 => Head::Array(self.len32()? as u32),
            Marker::FixMap(len) => Head::Map(u32::from(len)),
            Marker::Map16 => Head::Map(self.len16()? as u32),
            Marker::Map32 => Head::Map(self.len32()? as u32),
            Marker::FixExt1 => self.ext(1)?,
            Marker::FixExt2 => self.ext(2)?,
            Marker::FixExt4 => self.ext(4)?,
            Marker::FixExt8 => self.ext(8)?,
            Marker::FixExt16 => self.ext(16)?,
            Marker::Ext8 => self.len8().and_then(|len| self.ext(len))?,
            Marker::Ext16 => self.len16().and_then(|len| self.ext(len))?,
            Marker::Ext32 => self.len32().and_then(|len| self.ext(len))?,
            Marker::Reserved => return Err(ErrorClass::InvalidMsgpack),
        })
    }

    fn ext(&mut self, len: usize) -> Read<Head<'a>> {
        let [kind] = self.take::<1>()?;
        Ok(Head::Ext(kind as i8, self.bytes(len)?))
    }

    /// Moves past one value with all that is in it.
    #[inline]
    pub(super) fn skip(&mut self) -> Read<()> {
        self.skip_many(1)
    }

    /// Moves past `left` values.
    pub(super) fn skip_many(&mut self, mut left: u64) -> Read<()> {
        while left > 0 {
            left -= 1;
            let size = FIXED_SIZE[usize::from(self.peek()?)];
            if size > 0 {
                self.pos += usize::from(size);
                if self.pos > self.data.len() {
                    return Err(ErrorClass::Truncated);
                }
            } else {
                let Entered { mut children, may_run, .. } = self.enter()?;
                if may_run {
                    // Of these alone: what is looked at ahead has to be in proportion to them.
                    (self.pos, children) = skip_run(self.data, self.pos, children);
                }
                left += children;
            }
        }
        Ok(())
    }

    /// Moves past the integers of 32 bits at most that a run begins with; how many of `len` are left.
    pub(super) fn skip_uints32(&mut self, len: u32) -> u32 {
        if len < RUN {
            return len;
        }
        if self.run.0 == self.pos {
            self.pos = self.run.1;
            return 0;
        }
        let (pos, left) = skip_run(self.data, self.pos, u64::from(len));
        self.pos = pos;
        left as u32
    }

    /// Moves past a leaf, or past the header of a container.
    #[inline]
    pub(super) fn enter(&mut self) -> Read<Entered> {
        let none = Entered { container: true, children: 0, may_run: false, may_be_known: false };
        Ok(match self.head()? {
            Head::Array(len) => Entered { children: u64::from(len), may_run: len >= RUN, ..none },
            Head::Map(len) => Entered { children: 2 * u64::from(len), may_be_known: len > 8, ..none },
            _ => Entered { container: false, ..none },
        })
    }

    /// Reads integers of 32 bits at most into `values`, as long as nothing else comes; how many.
    #[inline(always)]
    pub(super) fn uints32(&mut self, values: &mut [u32; AHEAD]) -> usize {
        let (count, bytes) = decode_run(self.data, self.pos, values);
        self.pos += bytes;
        count
    }

    /// The integer that is next, if it is one of 64 bits without a sign, whatever its value; past it.
    #[inline(always)]
    pub(super) fn eat_uint64(&mut self) -> Option<u64> {
        const U64: u8 = Marker::U64.to_u8();
        let [U64, value @ ..] = *self.data.get(self.pos..)?.first_chunk::<9>()? else { return None };
        self.pos += 9;
        Some(u64::from_be_bytes(value))
    }

    /// Folds integers of 32 bits at most, as long as nothing else comes and `left` are left.
    #[inline(always)]
    pub(super) fn fold_uints32<B>(&mut self, left: &mut u32, init: B, f: &mut impl FnMut(B, u32) -> B) -> B {
        fold_run(self.data, &mut self.pos, left, init, f)
    }

    /// Length of the array that must be next.
    #[inline]
    pub(super) fn array(&mut self) -> Read<u32> {
        match self.head()? {
            Head::Array(len) => Ok(len),
            _ => Err(ErrorClass::WrongType),
        }
    }

    /// Moves past `bytes` if they are next; whether they were.
    #[inline(always)]
    pub(super) fn eat<const N: usize>(&mut self, bytes: &[u8; N]) -> bool {
        let next = self.data.get(self.pos..).and_then(|rest| rest.first_chunk());
        let eaten = next == Some(bytes);
        self.pos += if eaten { N } else { 0 };
        eaten
    }

    /// The next value's bytes if it is text; `None`, and past it, if it is anything else.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Read<Option<&'a [u8]>> {
        if let Marker::FixStr(len) = Marker::from_u8(self.peek()?) {
            self.pos += 1;
            return self.bytes(usize::from(len)).map(Some);
        }
        let start = self.pos;
        match self.head()? {
            Head::Str(bytes) => Ok(Some(bytes)),
            Head::Array(_) | Head::Map(_) => {
                self.pos = start;
                self.skip().map(|()| None)
            }
            _ => Ok(None),
        }
    }

    /// Text.
    #[inline]
    pub(super) fn text(&mut self) -> Read<&'a str> {
        let bytes = match Marker::from_u8(self.peek()?) {
            Marker::FixStr(len) => {
                self.pos += 1;
                self.bytes(usize::from(len))?
            }
            Marker::Str8 => {
                self.pos += 1;
                let len = self.len8()?;
                self.bytes(len)?
            }
            _ => match self.head()? {
                Head::Str(bytes) => bytes,
                _ => return Err(ErrorClass::WrongType),
            },
        };
        text::from_bytes(bytes)
    }

    /// An unsigned integer of 64 bits.
    #[inline]
    pub(super) fn uint(&mut self) -> Read<u64> {
        match self.head()? {
            Head::Uint(n) => Ok(n),
            _ => Err(ErrorClass::WrongType),
        }
    }

    /// An unsigned integer of 32 bits.
    #[inline]
    pub(super) fn uint32(&mut self) -> Read<u32> {
        self.uint().and_then(|n| u32::try_from(n).map_err(|_| ErrorClass::WrongType))
    }

    /// Any integer.
    #[inline]
    pub(super) fn integer(&mut self) -> Read<i128> {
        match self.head()? {
            Head::Uint(n) => Ok(i128::from(n)),
            Head::Negative(n) => Ok(i128::from(n)),
            _ => Err(ErrorClass::WrongType),
        }
    }

    /// `None` and past it if nil is next, else what `read` says.
    #[inline(always)]
    pub(super) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if matches!(Marker::from_u8(self.peek()?), Marker::Null) {
            self.pos += 1;
            return Ok(None);
        }
        read(self).map(Some)
    }
}

fn signed<'a>(n: i64) -> Head<'a> {
    u64::try_from(n).map_or(Head::Negative(n), Head::Uint)
}
