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
        match self.0 {
            Repr::Wire { len, bytes } => TokenIter(IterRepr::Wire(Ahead::new(bytes, len))),
            Repr::WirePairs { len, bytes } => {
                TokenIter(IterRepr::WirePairs { left: len, last: None, cursor: Cursor::new(bytes, 0) })
            }
            Repr::Slice(slice) => TokenIter(IterRepr::Slice(slice.iter())),
            Repr::Pairs(pairs) => TokenIter(IterRepr::Pairs { pairs: pairs.iter(), last: None }),
        }
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
#[derive(Clone)]
pub struct TokenIter<'a>(IterRepr<'a>);

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "boxing what is read ahead would allocate")]
enum IterRepr<'a> {
    Wire(Ahead<'a>),
    WirePairs { left: u32, last: Option<u32>, cursor: Cursor<'a> },
    Slice(std::slice::Iter<'a, u32>),
    Pairs { pairs: std::slice::Iter<'a, (u32, u32)>, last: Option<u32> },
}

/// Reads plain tokens some at a time.
#[derive(Clone)]
struct Ahead<'a> {
    cursor: Cursor<'a>,
    /// Tokens still to be read from `cursor`.
    left: u32,
    next: u8,
    end: u8,
    tokens: [u32; AHEAD],
}

impl<'a> Ahead<'a> {
    const fn new(bytes: &'a [u8], left: u32) -> Self {
        Ahead { cursor: Cursor::new(bytes, 0), left, next: 0, end: 0, tokens: [0; AHEAD] }
    }

    const fn len(&self) -> usize {
        self.left as usize + (self.end - self.next) as usize
    }

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.next == self.end {
            self.read_ahead()?;
        }
        let token = self.tokens[usize::from(self.next) % AHEAD];
        self.next += 1;
        Some(token)
    }

    #[inline(never)]
    fn read_ahead(&mut self) -> Option<()> {
        let mut count = self.cursor.uints32(&mut self.tokens);
        if count == 0 {
            self.left.checked_sub(1)?;
            self.tokens[0] = self.cursor.uint32().ok()?;
            count = 1;
        }
        self.left -= count as u32;
        (self.next, self.end) = (0, count as u8);
        Some(())
    }
}

impl Iterator for TokenIter<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match &mut self.0 {
            IterRepr::Wire(ahead) => ahead.next(),
            IterRepr::WirePairs { left, last, cursor } => {
                let Some(rest) = left.checked_sub(1) else { return last.take() };
                *left = rest;
                let (first, second) = pair(cursor).ok()?;
                *last = Some(second);
                Some(first)
            }
            IterRepr::Slice(slice) => slice.next().copied(),
            IterRepr::Pairs { pairs, last } => match pairs.next() {
                Some((first, second)) => {
                    *last = Some(*second);
                    Some(*first)
                }
                None => last.take(),
            },
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, u32) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        if let IterRepr::Wire(ahead) = &mut self.0 {
            loop {
                let tokens = &ahead.tokens[usize::from(ahead.next)..usize::from(ahead.end)];
                folded = tokens.iter().copied().fold(folded, &mut f);
                if ahead.read_ahead().is_none() {
                    return folded;
                }
            }
        }
        for token in self {
            folded = f(folded, token);
        }
        folded
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            IterRepr::Wire(ahead) => ahead.len(),
            IterRepr::WirePairs { left, last, .. } => *left as usize + usize::from(*left > 0 || last.is_some()),
            IterRepr::Slice(slice) => slice.len(),
            IterRepr::Pairs { pairs, last } => pairs.len() + usize::from(pairs.len() > 0 || last.is_some()),
        };
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
