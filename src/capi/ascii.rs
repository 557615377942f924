//! Names from C on their way into a frame: whether they are text is seen while they are copied.

use crate::names::{CopyNames, Names};

/// Copies names and sees whether all of it is ASCII, as names are as a rule: with the bytes in hand that is one instruction
/// for 16 of them. Only if it is not are the names looked at again.
#[derive(Debug)]
pub(super) struct Ascii {
    seen: Lanes,
}

impl Ascii {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Ascii { seen: Lanes::of(0) }
    }

    /// Copies the first `N` bytes, a multiple of 16.
    #[inline(always)]
    fn first<const N: usize>(&mut self, to: &mut [u8], name: &[u8]) {
        let (Some(to), Some(name)) = (to.first_chunk_mut::<N>(), name.first_chunk::<N>()) else { return };
        for at in (0..N).step_by(16) {
            if let (Some(to), Some(name)) = (to[at..].first_chunk_mut(), name[at..].first_chunk()) {
                let lanes = Lanes::load(name);
                lanes.store(to);
                self.seen = self.seen.or(lanes);
            }
        }
    }

    /// Copies the last `N` bytes, a multiple of 16.
    #[inline(always)]
    fn last<const N: usize>(&mut self, to: &mut [u8], name: &[u8]) {
        if let (Some(to), Some(name)) = (to.last_chunk_mut::<N>(), name.last_chunk::<N>()) {
            self.first::<N>(to, name);
        }
    }

    /// Copies a name of less than 16 bytes.
    #[inline(always)]
    fn short(&mut self, to: &mut [u8], name: &[u8]) {
        let seen = if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            let (first, last) = (u64::from_ne_bytes(*first), u64::from_ne_bytes(*last));
            to[..8].copy_from_slice(&first.to_ne_bytes());
            to[name.len() - 8..].copy_from_slice(&last.to_ne_bytes());
            first | last
        } else if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            let (first, last) = (u32::from_ne_bytes(*first), u32::from_ne_bytes(*last));
            to[..4].copy_from_slice(&first.to_ne_bytes());
            to[name.len() - 4..].copy_from_slice(&last.to_ne_bytes());
            u64::from(first | last)
        } else {
            let mut seen = 0;
            for at in 0..3 {
                if let (Some(to), Some(byte)) = (to.get_mut(at), name.get(at)) {
                    *to = *byte;
                    seen |= u64::from(*byte);
                }
            }
            seen
        };
        self.seen = self.seen.or(Lanes::of(seen));
    }
}

impl CopyNames for Ascii {
    /// In chunks of a fixed size, the last of which overlaps the one before it, so that no length leaves a rest to be dealt
    /// with byte by byte.
    #[inline(always)]
    fn copy(&mut self, to: &mut [u8], name: &[u8]) {
        let len = name.len();
        if len < 16 {
            self.short(to, name);
        } else if len >= 64 {
            self.first::<64>(to, name);
            let mut at = 64;
            while len - at > 64 {
                self.first::<64>(&mut to[at..], &name[at..]);
                at += 64;
            }
            if len - at > 32 {
                self.last::<64>(to, name);
            } else {
                self.last::<32>(to, name);
            }
        } else if len >= 32 {
            self.first::<32>(to, name);
            self.last::<32>(to, name);
        } else {
            self.first::<16>(to, name);
            self.last::<16>(to, name);
        }
    }

    #[inline(always)]
    fn are_text(&self, names: &Names<'_>) -> bool {
        self.seen.are_ascii() || are_utf8(names.tenant, names.key, names.group, names.session)
    }
}

/// 16 bytes in a register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
struct Lanes(std::arch::x86_64::__m128i);

// In newer compilers some of these are safe.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)]
impl Lanes {
    #[inline(always)]
    fn of(word: u64) -> Self {
        // SAFETY: every x86-64 has SSE2.
        Lanes(unsafe { std::arch::x86_64::_mm_cvtsi64_si128(word as i64) })
    }

    #[inline(always)]
    fn load(from: &[u8; 16]) -> Self {
        // SAFETY: 16 live bytes, which need no alignment.
        Lanes(unsafe { std::arch::x86_64::_mm_loadu_si128(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, to: &mut [u8; 16]) {
        // SAFETY: 16 live bytes, which need no alignment.
        unsafe { std::arch::x86_64::_mm_storeu_si128(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: every x86-64 has SSE2.
        Lanes(unsafe { std::arch::x86_64::_mm_or_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn are_ascii(self) -> bool {
        // SAFETY: every x86-64 has SSE2.
        unsafe { std::arch::x86_64::_mm_movemask_epi8(self.0) == 0 }
    }
}

/// 16 bytes in two registers.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
struct Lanes(u128);

#[cfg(not(target_arch = "x86_64"))]
impl Lanes {
    #[inline(always)]
    fn of(word: u64) -> Self {
        Lanes(word.into())
    }

    #[inline(always)]
    fn load(from: &[u8; 16]) -> Self {
        Lanes(u128::from_ne_bytes(*from))
    }

    #[inline(always)]
    fn store(self, to: &mut [u8; 16]) {
        *to = self.0.to_ne_bytes();
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Lanes(self.0 | other.0)
    }

    #[inline(always)]
    fn are_ascii(self) -> bool {
        // No ASCII byte has its high bit.
        self.0 & (u128::MAX / 255 * 128) == 0
    }
}

#[cold]
#[inline(never)]
fn are_utf8(tenant: &[u8], key: &[u8], group: &[u8], session: &[u8]) -> bool {
    [tenant, key, group, session].into_iter().all(|name| simdutf8::basic::from_utf8(name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the names are text, copied as such.
    fn are_text(names: [&[u8]; 4]) -> bool {
        let mut copy = Ascii::new();
        for name in names {
            let mut room = vec![b'x'; name.len()];
            copy.copy(&mut room, name);
            assert_eq!(room, name);
        }
        let [tenant, key, group, session] = names;
        copy.are_text(&Names { tenant, key, group, session })
    }

    #[test]
    fn what_is_no_text_is_seen_at_every_length_and_place() {
        for len in 0..300 {
            let mut bytes: Vec<u8> = (0..len).map(|at| (at % 128) as u8).collect();
            assert!(are_text([&bytes; 4]), "{len}");
            for at in 0..len {
                let byte = std::mem::replace(&mut bytes[at], 0x80);
                assert!(!are_text([b"", &bytes, b"", b""]), "{at} of {len}");
                bytes[at] = byte;
            }
        }
    }

    #[test]
    fn it_is_seen_in_every_name_and_what_is_utf_8_is_text() {
        for text in ["é", "schlüssel/0123456789/0123456789/0123456789", "\0", "鍵", "👋 and more, more than sixteen"]
        {
            let text = text.as_bytes();
            assert!(are_text([text, b"key", text, b""]) && are_text([b"t", text, b"", text]));
            let bad = &[text, b"\xff"].concat()[..];
            for at in 0..4 {
                let mut names = [text; 4];
                names[at] = bad;
                assert!(!are_text(names), "{at}");
            }
        }
    }
}
