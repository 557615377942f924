//! Lists that stay in the payload until somebody iterates over them.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::cursor::{Cursor, Read};

pub(super) mod sealed {
    use super::{Cursor, Read};

    pub trait Element<'a>: Copy {
        #[doc(hidden)]
        fn read(cursor: &mut Cursor<'a>) -> Read<Self>;
    }
}

/// What a [`List`] can hold. Sealed: the wire decides.
pub trait Element<'a>: sealed::Element<'a> {}

/// A list of a decoded event: checked when the event was read, read again when it is iterated over, never copied.
///
/// To encode an event of your own, make one from a slice: `List::from(&hashes[..])`.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Repr<'a, T>);

#[derive(Clone, Copy)]
pub(crate) enum Repr<'a, T> {
    /// `len` encoded values, one behind the other, every one of them read once already.
    Wire {
        len: u32,
        bytes: &'a [u8],
    },
    Slice(&'a [T]),
}

impl<'a, T: Element<'a>> List<'a, T> {
    /// A list of nothing.
    #[must_use]
    pub const fn empty() -> Self {
        List(Repr::Slice(&[]))
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Repr::Wire { len, .. } => len as usize,
            Repr::Slice(slice) => slice.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, in wire order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter(match self.0 {
            Repr::Wire { len, bytes } => IterRepr::Wire { left: len, cursor: Cursor::new(bytes, 0) },
            Repr::Slice(slice) => IterRepr::Slice(slice.iter()),
        })
    }

    pub(crate) const fn repr(&self) -> Repr<'a, T> {
        self.0
    }

    /// Reads an array and every element of it.
    #[inline]
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        let len = cursor.array()?;
        let start = cursor.pos();
        for _ in 0..len {
            T::read(cursor)?;
        }
        Ok(List(Repr::Wire { len, bytes: cursor.since(start) }))
    }

    /// Moves past `values` values of any type, which make `len` elements of a list that takes any value.
    pub(super) fn of_any(cursor: &mut Cursor<'a>, values: u64, len: u32) -> Read<Self> {
        let start = cursor.pos();
        cursor.skip_many(values)?;
        Ok(List(Repr::Wire { len, bytes: cursor.since(start) }))
    }
}

impl<'a, T: Element<'a>> Default for List<'a, T> {
    fn default() -> Self {
        List::empty()
    }
}

impl<'a, T> From<&'a [T]> for List<'a, T> {
    fn from(slice: &'a [T]) -> Self {
        List(Repr::Slice(slice))
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(slice: &'a [T; N]) -> Self {
        List(Repr::Slice(slice))
    }
}

impl<'a, T> From<&'a Vec<T>> for List<'a, T> {
    fn from(vec: &'a Vec<T>) -> Self {
        List(Repr::Slice(vec))
    }
}

impl<'a, T: Element<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Element<'a>> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// Lists are equal if their elements are, however these are kept or encoded.
impl<'a, 'b, T: Element<'a> + PartialEq<U>, U: Element<'b>> PartialEq<List<'b, U>> for List<'a, T> {
    fn eq(&self, other: &List<'b, U>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a, T: Element<'a> + Eq> Eq for List<'a, T> {}

impl<'a, T: Element<'a> + Hash> Hash for List<'a, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|element| element.hash(state));
    }
}

impl<'a, T: Element<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over a [`List`].
#[derive(Clone)]
pub struct ListIter<'a, T>(IterRepr<'a, T>);

#[derive(Clone)]
enum IterRepr<'a, T> {
    Wire { left: u32, cursor: Cursor<'a> },
    Slice(std::slice::Iter<'a, T>),
}

impl<'a, T: Element<'a>> Iterator for ListIter<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            IterRepr::Wire { left, cursor } => {
                *left = left.checked_sub(1)?;
                T::read(cursor).ok()
            }
            IterRepr::Slice(slice) => slice.next().copied(),
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, mut f: F) -> B {
        match self.0 {
            IterRepr::Wire { left, mut cursor } => {
                let mut folded = init;
                for _ in 0..left {
                    let Ok(element) = T::read(&mut cursor) else { break };
                    folded = f(folded, element);
                }
                folded
            }
            IterRepr::Slice(slice) => slice.copied().fold(init, f),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            IterRepr::Wire { left, .. } => *left as usize,
            IterRepr::Slice(slice) => slice.len(),
        };
        (left, Some(left))
    }
}

impl<'a, T: Element<'a>> ExactSizeIterator for ListIter<'a, T> {}

impl<'a, T: Element<'a>> std::iter::FusedIterator for ListIter<'a, T> {}

impl<'a, T: Element<'a> + fmt::Debug> fmt::Debug for ListIter<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, T: Element<'a>> Element<'a> for Option<T> {}

impl<'a, T: Element<'a>> sealed::Element<'a> for Option<T> {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        cursor.optional(T::read)
    }
}

impl<'a, T: Element<'a>> Element<'a> for List<'a, T> {}

impl<'a, T: Element<'a>> sealed::Element<'a> for List<'a, T> {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        List::read(cursor)
    }
}
