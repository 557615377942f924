//! Long runs of small unsigned integers: token ids, which are most of the bytes that engines send.
//!
//! Reading them one by one is slow for a reason: where the next one begins is known only once the one before it has been
//! looked at, and sizes are too irregular to guess. So the sizes are worked out for every byte of a block first, in loops
//! without dependencies that compilers turn into vector code: of the integer that would begin at the byte, and of that and
//! the next one together. What is left to do in sequence is hopping from pair to pair.

/// Bytes looked at in one go.
const BLOCK: usize = 128;

/// Bytes that have to be there behind a block, for the integers that begin in it.
const BEHIND: usize = 16;

/// How many values a container must have for it to be worth while to look for a run.
pub(super) const RUN: u32 = 16;

/// Integers decoded in one go.
pub(super) const AHEAD: usize = BLOCK;

/// Of an encoded integer of each size, the bits of its last four bytes that are its value.
const MASKS: [u32; 8] = [0, 0x7f, 0xff, 0xffff, 0, 0xffff_ffff, 0, 0];

/// Sizes for every byte of a block.
struct Sizes {
    /// Of the unsigned integer of at most 32 bits that begins at the byte; 0 if none does.
    one: [u8; BLOCK + BEHIND],
    /// Of that one and the next; 0 if either is none.
    two: [u8; BLOCK],
}

impl Sizes {
    const fn new() -> Sizes {
        Sizes { one: [0; BLOCK + BEHIND], two: [0; BLOCK] }
    }

    #[inline(always)]
    fn fill(&mut self, bytes: &[u8; BLOCK + BEHIND]) {
        const U8: u8 = rmp::Marker::U8.to_u8();
        const U16: u8 = rmp::Marker::U16.to_u8();
        const U32: u8 = rmp::Marker::U32.to_u8();
        let Sizes { one, two } = self;
        for (size, byte) in one.iter_mut().zip(bytes) {
            let fix = u8::from(*byte < 0x80);
            let u8 = u8::from(*byte == U8) * 2;
            let u16 = u8::from(*byte == U16) * 3;
            let u32 = u8::from(*byte == U32) * 5;
            *size = fix | u8 | u16 | u32;
        }
        for (at, size) in two.iter_mut().enumerate() {
            let first = one[at];
            let pick = |size: u8, next: u8| if first == size { next } else { 0 };
            let next = pick(1, one[at + 1]) | pick(2, one[at + 2]) | pick(3, one[at + 3]) | pick(5, one[at + 5]);
            *size = if next == 0 { 0 } else { first + next };
        }
    }
}

/// Steps over at most `left` integers of a run at `pos`: where it stopped, and how many are still to do. It stops short
/// at anything that is no such integer.
pub(super) fn skip_run(data: &[u8], mut pos: usize, mut left: u64) -> (usize, u64) {
    // Blocks follow one another regardless of where integers begin, so that sizes of the next one can be worked out
    // while this one is still being hopped through.
    let mut base = pos;
    let mut sizes = Sizes::new();
    'blocks: while let Some(block) = data.get(base..).and_then(|rest| rest.first_chunk()) {
        sizes.fill(block);
        let mut at = pos - base;
        while at < BLOCK {
            let size = usize::from(sizes.two[at]);
            if left < 2 || size == 0 {
                pos = base + at;
                break 'blocks;
            }
            at += size;
            left -= 2;
        }
        pos = base + at;
        base += BLOCK;
    }
    // What is left near the end of the data, one by one.
    while let (Some(&marker), true) = (data.get(pos), left > 0) {
        let size = size_of(marker);
        if size == 0 || pos + size > data.len() {
            break;
        }
        pos += size;
        left -= 1;
    }
    (pos, left)
}

/// The size of the unsigned integer of at most 32 bits that begins so; 0 if none does.
fn size_of(marker: u8) -> usize {
    match rmp::Marker::from_u8(marker) {
        rmp::Marker::FixPos(_) => 1,
        rmp::Marker::U8 => 2,
        rmp::Marker::U16 => 3,
        rmp::Marker::U32 => 5,
        _ => 0,
    }
}

/// Decodes integers of a run that begins at `pos` into `values`: how many, and how many bytes they took. It stops short at
/// anything that is no such integer, at the last one of an odd number, and of those in the first four bytes of `data`.
pub(super) fn decode_run(data: &[u8], pos: usize, values: &mut [u32; AHEAD]) -> (usize, usize) {
    // An integer's value is in the last four bytes of its encoding, so a window begins in front of its block.
    const WINDOW: usize = 4 + BLOCK + BEHIND;
    let Some(rest) = pos.checked_sub(4).and_then(|start| data.get(start..)) else { return (0, 0) };
    match rest.first_chunk::<WINDOW>() {
        Some(window) => decode_window(window, values),
        None => {
            let mut window = [rmp::Marker::Reserved.to_u8(); WINDOW];
            window[..rest.len()].copy_from_slice(rest);
            decode_window(&window, values)
        }
    }
}

#[inline(always)]
fn decode_window(window: &[u8; 4 + BLOCK + BEHIND], values: &mut [u32; AHEAD]) -> (usize, usize) {
    let Some(block) = window.last_chunk() else { return (0, 0) };
    let mut sizes = Sizes::new();
    sizes.fill(block);
    let value = |end: usize, size: usize| {
        let last = window.get(end..).and_then(|rest| rest.first_chunk()).map_or(0, |last| u32::from_be_bytes(*last));
        last & MASKS[size % MASKS.len()]
    };
    let mut at = 0;
    let mut count = 0;
    for pair in values.chunks_exact_mut(2) {
        let Some(&both) = sizes.two.get(at) else { break };
        if both == 0 {
            break;
        }
        let first = usize::from(sizes.one[at]);
        let both = usize::from(both);
        pair[0] = value(at + first, first);
        pair[1] = value(at + both, both - first);
        at += both;
        count += 2;
    }
    (count, at)
}
