//! Token ids: plain, as the overlapping pairs of EAGLE pages, or with text among them.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::cursor::{Cursor, Head, Read};
use super::error::ErrorClass;
use super::ints::AHEAD;
use super::list::{Element, List, sealed};

/// The token ids of a stored block, still in the payload.
///
/// Pairs `[[a, b], [b, c]]` read as the tokens they overlap to, `a, b, c`: the first of every pair and the second of the
/// last, whether or not they chain. [`is_eagle`](TokenIds::is_eagle) tells them apart.
#[derive(Clone, Copy)]
pub struct TokenIds<'a>(Repr<'a>);

#[derive(Clone, Copy)]
pub(crate) enum Repr<'a> {
    /// `len` encoded integers, every one of them checked.
    Wire {
        len: u32,
        bytes: &'a [u8],
    },
    /// `len` encoded pairs (at least 1), every one of them checked.
    WirePairs {
        len: u32,
        bytes: &'a [u8],
    },
    Slice(&'a [u32]),
    Pairs(&'a [(u32, u32)]),
}

impl<'a> TokenIds<'a> {
    /// Number of tokens.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Repr::Wire { len, .. } => len as usize,
            Repr::WirePairs { len, .. } => len as usize + 1,
            Repr::Slice(slice) => slice.len(),
            Repr::Pairs([]) => 0,
            Repr::Pairs(pairs) => pairs.len() + 1,
        }
    }

    /// Whether there are no tokens.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they came as pairs (`is_eagle` in the JSON form).
    #[must_use]
    pub const fn is_eagle(&self) -> bool {
        match self.0 {
            Repr::WirePairs { .. } => true,
            Repr::Pairs(pairs) => !pairs.is_empty(),
            Repr::Wire { .. } | Repr::Slice(_) => false,
        }
    }

    /// The tokens, in order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> TokenIter<'a> {
        TokenIter::new(match self.0 {
            Repr::Wire { len, bytes } => Source::Wire { left: len, cursor: Cursor::new(bytes, 0) },
            Repr::WirePairs { len, bytes } => {
                Source::WirePairs { left: len, last: None, cursor: Cursor::new(bytes, 0) }
            }
            Repr::Slice(slice) => Source::Slice(slice),
            Repr::Pairs(pairs) => Source::Pairs { pairs, last: None },
        })
    }

    pub(crate) const fn repr(&self) -> Repr<'a> {
        self.0
    }

    #[inline]
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        let len = cursor.array()?;
        let start = cursor.pos();
        if len == 0 {
            return Ok(TokenIds(Repr::Slice(&[])));
        }
        let mut probe = *cursor;
        if matches!(probe.head()?, Head::Array(_)) {
            for _ in 0..len {
                pair(cursor)?;
            }
            return Ok(TokenIds(Repr::WirePairs { len, bytes: cursor.since(start) }));
        }
        let mut left = cursor.skip_uints32(len);
        while left > 0 {
            cursor.uint32()?;
            left -= 1;
        }
        Ok(TokenIds(Repr::Wire { len, bytes: cursor.since(start) }))
    }
}

fn pair(cursor: &mut Cursor<'_>) -> Read<(u32, u32)> {
    match cursor.array()? {
        2 => Ok((cursor.uint32()?, cursor.uint32()?)),
        _ => Err(ErrorClass::WrongType),
    }
}

impl<'a> From<&'a [u32]> for TokenIds<'a> {
    fn from(tokens: &'a [u32]) -> Self {
        TokenIds(Repr::Slice(tokens))
    }
}

impl<'a, const N: usize> From<&'a [u32; N]> for TokenIds<'a> {
    fn from(tokens: &'a [u32; N]) -> Self {
        TokenIds(Repr::Slice(tokens))
    }
}

impl<'a> From<&'a Vec<u32>> for TokenIds<'a> {
    fn from(tokens: &'a Vec<u32>) -> Self {
        TokenIds(Repr::Slice(tokens))
    }
}

/// The pairs of EAGLE pages.
impl<'a> From<&'a [(u32, u32)]> for TokenIds<'a> {
    fn from(pairs: &'a [(u32, u32)]) -> Self {
        TokenIds(Repr::Pairs(pairs))
    }
}

impl<'a> IntoIterator for TokenIds<'a> {
    type Item = u32;
    type IntoIter = TokenIter<'a>;

    fn into_iter(self) -> TokenIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &TokenIds<'a> {
    type Item = u32;
    type IntoIter = TokenIter<'a>;

    fn into_iter(self) -> TokenIter<'a> {
        self.iter()
    }
}

/// Equal if they are the same tokens and came in the same form, plain or pairs.
impl<'b> PartialEq<TokenIds<'b>> for TokenIds<'_> {
    fn eq(&self, other: &TokenIds<'b>) -> bool {
        self.is_eagle() == other.is_eagle() && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for TokenIds<'_> {}

impl Hash for TokenIds<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|token| state.write_u32(token));
    }
}

impl fmt::Debug for TokenIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What stands among `token_ids` that are not all integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token<'a> {
    /// A token's number.
    Id(u32),
    /// Text; one engine sends a digest in the place of tokens that come from an image.
    Text(&'a str),
}

/// Token ids with text among them, one behind the other.
pub type MixedTokenIds<'a> = List<'a, Token<'a>>;

impl<'a> Element<'a> for Token<'a> {}

impl<'a> sealed::Element<'a> for Token<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        let start = cursor.pos();
        match cursor.head()? {
            Head::Str(_) => {
                cursor.seek(start);
                cursor.text().map(Token::Text)
            }
            Head::Uint(value) => u32::try_from(value).map(Token::Id).map_err(|_| ErrorClass::WrongType),
            _ => Err(ErrorClass::WrongType),
        }
    }
}

/// Iterator over [`TokenIds`].
///
/// It reads some tokens at a time into a buffer of its own. What fills the buffer takes the source by value and gives both
/// back, instead of borrowing the iterator: a compiler keeps the place in the buffer in a register only if nobody else has
/// ever had a pointer to it.
#[derive(Clone)]
pub struct TokenIter<'a> {
    next: usize,
    end: usize,
    buffer: [u32; AHEAD],
    source: Source<'a>,
}

/// Where tokens come from.
#[derive(Clone)]
enum Source<'a> {
    Wire { left: u32, cursor: Cursor<'a> },
    WirePairs { left: u32, last: Option<u32>, cursor: Cursor<'a> },
    Slice(&'a [u32]),
    Pairs { pairs: &'a [(u32, u32)], last: Option<u32> },
}

/// What a buffer is filled with.
struct Filled<'a> {
    count: usize,
    buffer: [u32; AHEAD],
    source: Source<'a>,
}

impl<'a> Source<'a> {
    /// Tokens still to come from here.
    fn len(&self) -> usize {
        match self {
            Source::Wire { left, .. } => *left as usize,
            Source::WirePairs { left, last, .. } => *left as usize + usize::from(*left > 0 || last.is_some()),
            Source::Slice(slice) => slice.len(),
            Source::Pairs { pairs, last } => pairs.len() + usize::from(!pairs.is_empty() || last.is_some()),
        }
    }

    /// The next tokens; none if there are no more.
    #[inline(never)]
    fn fill(mut self) -> Filled<'a> {
        let mut buffer = [0; AHEAD];
        let count = match &mut self {
            Source::Wire { left, cursor } => {
                let mut count = if *left > 0 { cursor.uints32(&mut buffer) } else { 0 };
                if count == 0 && *left > 0 {
                    if let Ok(token) = cursor.uint32() {
                        buffer[0] = token;
                        count = 1;
                    }
                }
                *left -= count as u32;
                count
            }
            Source::Slice(slice) => {
                let (now, later) = slice.split_at(slice.len().min(AHEAD));
                buffer[..now.len()].copy_from_slice(now);
                *slice = later;
                now.len()
            }
            Source::WirePairs { left, last, cursor } => {
                let mut count = 0;
                while let (true, Some(place)) = (*left > 0, buffer.get_mut(count)) {
                    let Ok((first, second)) = pair(cursor) else { break };
                    *left -= 1;
                    *last = Some(second);
                    *place = first;
                    count += 1;
                }
                count + put_last(*left == 0, last, buffer.get_mut(count))
            }
            Source::Pairs { pairs, last } => {
                let mut count = 0;
                while let ([(first, second), rest @ ..], Some(place)) = (*pairs, buffer.get_mut(count)) {
                    *pairs = rest;
                    *last = Some(*second);
                    *place = *first;
                    count += 1;
                }
                count + put_last(pairs.is_empty(), last, buffer.get_mut(count))
            }
        };
        Filled { count, buffer, source: self }
    }
}

/// Puts the second token of the last pair behind the firsts, once there are no more and there is room; how many that is.
fn put_last(no_more: bool, last: &mut Option<u32>, place: Option<&mut u32>) -> usize {
    match (no_more, place) {
        (true, Some(place)) => last.take().map_or(0, |token| {
            *place = token;
            1
        }),
        _ => 0,
    }
}

impl<'a> TokenIter<'a> {
    const fn new(source: Source<'a>) -> Self {
        TokenIter { next: 0, end: 0, buffer: [0; AHEAD], source }
    }

    /// Fills the empty buffer; whether there is anything in it now.
    #[inline(always)]
    fn fill(&mut self) -> bool {
        let Filled { count, buffer, source } = self.source.clone().fill();
        (self.next, self.end, self.buffer, self.source) = (0, count, buffer, source);
        count > 0
    }
}

impl Iterator for TokenIter<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.next == self.end && !self.fill() {
            return None;
        }
        let token = self.buffer[self.next % AHEAD];
        self.next += 1;
        Some(token)
    }

    #[inline]
    fn fold<B, F: FnMut(B, u32) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        loop {
            folded = self.buffer[self.next..self.end].iter().copied().fold(folded, &mut f);
            if let Source::Wire { left, cursor } = &mut self.source {
                folded = cursor.fold_uints32(left, folded, &mut f);
            }
            if !self.fill() {
                return folded;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next + self.source.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for TokenIter<'_> {}

impl std::iter::FusedIterator for TokenIter<'_> {}

impl fmt::Debug for TokenIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
