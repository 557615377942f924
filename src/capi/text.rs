//! Texts from C and to C.

use super::Code;
use std::ffi::c_char;

/// No event can be that long (`kv_events_max_event_bytes` goes up to it), so no text that long is looked at.
pub(super) const TOO_LONG: usize = 64 << 20;

/// A text: `len` bytes of UTF-8 at `data`. It needs no NUL at its end and may contain some. `data` may be NULL if `len`
/// is 0.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Text {
    /// The first byte.
    pub data: *const c_char,
    /// Number of bytes.
    pub len: usize,
}

impl Text {
    /// No text.
    pub const EMPTY: Text = Text { data: std::ptr::null(), len: 0 };

    /// # Safety
    ///
    /// `data` is null or points to `len` bytes that stay as they are for `'a`, if `len` is less than [`TOO_LONG`].
    pub(super) unsafe fn read<'a>(self) -> Result<&'a str, Code> {
        // SAFETY: the caller's promise.
        let [bytes] = unsafe { Text::bytes([self]) }.ok_or_else(|| Text::fault([self]))?;
        if bytes.len() >= TOO_LONG {
            return Err(Code::TooLarge);
        }
        simdutf8::basic::from_utf8(bytes).map_err(|_| Code::NotUtf8)
    }

    /// Why there are no [`bytes`](Self::bytes).
    #[cold]
    pub(super) fn fault<const N: usize>(texts: [Text; N]) -> Code {
        if texts.iter().any(|text| text.len > isize::MAX as usize) {
            Code::InvalidLength
        } else {
            Code::InvalidArgument
        }
    }

    /// The bytes of some texts, whatever they are; `None` if there cannot be any.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn bytes<'a, const N: usize>(texts: [Text; N]) -> Option<[&'a [u8]; N]> {
        let mut all: [&[u8]; N] = [&[]; N];
        // As large as the largest, or larger, but above `isize::MAX` only if one of them is.
        if texts.iter().fold(0, |lens, text| lens | text.len) > isize::MAX as usize {
            return None;
        }
        for (bytes, Text { data, len }) in all.iter_mut().zip(texts) {
            if !data.is_null() {
                // SAFETY: not null and not longer than an object can be; the rest is the caller's promise.
                *bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
            } else if len != 0 {
                return None;
            }
        }
        Some(all)
    }
}

/// The caller's room for a text: `capacity` bytes at `data`. The call sets `length` to the length of the whole text,
/// without the NUL, and copies what fits, always with a NUL at its end (unless `capacity` is 0). So the text was cut if
/// `length >= capacity`. `data` may be NULL if `capacity` is 0, to ask for the length.
#[derive(Debug)]
#[repr(C)]
pub struct Buffer {
    /// Where the text goes.
    pub data: *mut c_char,
    /// How many bytes there are, with the NUL.
    pub capacity: usize,
    /// Set by the call: how long the whole text is, without the NUL.
    pub length: usize,
}

impl Buffer {
    /// Copies what fits of `text`, to a whole character.
    ///
    /// # Safety
    ///
    /// `buffer` is null or points to a buffer whose `data` is null or points to `capacity` bytes.
    pub(super) unsafe fn put(buffer: *mut Buffer, text: &str) {
        // SAFETY: the caller's promise.
        let Some(buffer) = (unsafe { buffer.as_mut() }) else { return };
        buffer.length = text.len();
        if buffer.data.is_null() || buffer.capacity == 0 {
            return;
        }
        let mut fits = text.len().min(buffer.capacity - 1);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        // SAFETY: `fits` bytes and the NUL are within the `capacity` bytes that the caller promises; its buffer and a
        // text of this library do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer.data, fits);
            *buffer.data.add(fits) = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_and_its_length_told() {
        for (capacity, expected) in [(1, "\0"), (2, "a\0"), (3, "a\0"), (4, "aé\0"), (9, "aéb\0")] {
            let mut room = [b'x'; 9];
            let mut buffer = Buffer { data: room.as_mut_ptr().cast(), capacity, length: 0 };
            // SAFETY: the buffer describes `room`.
            unsafe { Buffer::put(&mut buffer, "aéb") };
            assert_eq!((buffer.length, room.starts_with(expected.as_bytes())), (4, true), "{capacity}");
            assert!(room[capacity..].iter().all(|byte| *byte == b'x'));
        }
    }
}
