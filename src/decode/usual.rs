//! Values in the form that they nearly always have, read without a detour over all that they could be. `None`, and the
//! position as it was, for any other form: that is for [`Cursor`]'s own readings.

use super::cursor::Cursor;
use super::text;

impl<'a> Cursor<'a> {
    /// Text or nil, past it, in its usual form: short, and ASCII.
    #[inline(always)]
    pub(super) fn usual_text(&mut self) -> Option<Option<&'a str>> {
        let rest = self.rest()?;
        let (start, len) = match *rest {
            [0xc0, ..] => {
                self.seek(self.pos() + 1);
                return Some(None);
            }
            [marker @ 0xa0..=0xbf, ..] => (1, usize::from(marker & 0x1f)),
            [0xd9, len, ..] => (2, usize::from(len)),
            _ => return None,
        };
        let text = text::from_ascii(rest.get(start..start + len)?)?;
        self.seek(self.pos() + start + len);
        Some(Some(text))
    }

    /// An unsigned integer or nil, past it, in a usual form: of 64 bits, or below 128.
    #[inline(always)]
    pub(super) fn usual_uint(&mut self) -> Option<Option<u64>> {
        match self.eat_uint64() {
            Some(value) => Some(Some(value)),
            None => self.usual_small().map(|value| value.map(u64::from)),
        }
    }

    /// An integer below 128 or nil, past it.
    #[inline(always)]
    pub(super) fn usual_small(&mut self) -> Option<Option<u8>> {
        let value = match *self.rest()?.first()? {
            0xc0 => None,
            value @ 0..=0x7f => Some(value),
            _ => return None,
        };
        self.seek(self.pos() + 1);
        Some(value)
    }
}
