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

/// Integers decoded in one go: about as many as a block holds.
pub(super) const AHEAD: usize = 32;

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
    // Blocks follow one another regardless of where integers begin, and the sizes of a block are worked out before the one
    // in front of it is hopped through: a byte that was only just stored as a part of something wider is slow to load.
    let block = |base: usize| data.get(base..).and_then(|rest| rest.first_chunk());
    let (mut first, mut second) = (Sizes::new(), Sizes::new());
    let (mut sizes, mut ahead) = (&mut first, &mut second);
    let mut base = pos;
    let mut is_filled = block(base).map(|block| sizes.fill(block)).is_some();
    'blocks: while is_filled {
        is_filled = block(base + BLOCK).map(|block| ahead.fill(block)).is_some();
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
        std::mem::swap(&mut sizes, &mut ahead);
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

/// An integer's value is in the last four bytes of its encoding, so a window begins in front of its block.
const WINDOW: usize = 4 + BLOCK + BEHIND;

/// The window of the block at `pos`, padded with what is no integer; `None` in the first four bytes of `data`.
#[inline(always)]
fn window<'a>(data: &'a [u8], pos: usize, padded: &'a mut [u8; WINDOW]) -> Option<&'a [u8; WINDOW]> {
    let rest = pos.checked_sub(4).and_then(|start| data.get(start..))?;
    if rest.len() < WINDOW {
        *padded = [rmp::Marker::Reserved.to_u8(); WINDOW];
        padded[..rest.len()].copy_from_slice(rest);
        return Some(padded);
    }
    rest.first_chunk()
}

/// The value of the integer of `size` bytes that ends at `end`, counted from the block's beginning.
#[inline(always)]
fn value(window: &[u8; WINDOW], end: usize, size: usize) -> u32 {
    let last = window.get(end..).and_then(|rest| rest.first_chunk()).map_or(0, |last| u32::from_be_bytes(*last));
    last & MASKS[size % MASKS.len()]
}

/// Folds the integers that begin in the window's block by pairs, at most `most` pairs: what came of it, how many pairs, and
/// how many bytes they took.
#[inline(always)]
fn fold_pairs<B>(
    window: &[u8; WINDOW],
    sizes: &mut Sizes,
    most: usize,
    init: B,
    mut f: impl FnMut(B, u32, u32) -> B,
) -> (B, usize, usize) {
    let Some(block) = window.last_chunk() else { return (init, 0, 0) };
    sizes.fill(block);
    let (mut folded, mut count, mut at) = (init, 0, 0);
    while let (Some(&both), true) = (sizes.two.get(at), count < most) {
        if both == 0 {
            break;
        }
        let first = usize::from(sizes.one[at]);
        let both = usize::from(both);
        folded = f(folded, value(window, at + first, first), value(window, at + both, both - first));
        at += both;
        count += 1;
    }
    (folded, count, at)
}

/// Decodes integers of a run that begins at `pos` into `values`: how many, and how many bytes they took. It stops short at
/// anything that is no such integer, at the last one of an odd number, and of those in the first four bytes of `data`.
pub(super) fn decode_run(data: &[u8], pos: usize, values: &mut [u32; AHEAD]) -> (usize, usize) {
    let mut padded = [0; WINDOW];
    let Some(window) = window(data, pos, &mut padded) else { return (0, 0) };
    let places = values.chunks_exact_mut(2);
    let (_, pairs, bytes) = fold_pairs(window, &mut Sizes::new(), AHEAD / 2, places, |mut places, first, second| {
        if let Some(pair) = places.next() {
            pair.copy_from_slice(&[first, second]);
        }
        places
    });
    (2 * pairs, bytes)
}

/// Folds integers of a run that begins at `pos`, at most `left`; stops short where [`decode_run`] does. A token goes to `f`
/// as it is decoded: what `f` does and the hopping wait for nothing of each other, so a processor does them side by side.
#[inline(always)]
pub(super) fn fold_run<B>(data: &[u8], pos: &mut usize, left: &mut u32, init: B, f: &mut impl FnMut(B, u32) -> B) -> B {
    let mut folded = init;
    let mut padded = [0; WINDOW];
    let mut sizes = Sizes::new();
    while let Some(window) = window(data, *pos, &mut padded) {
        let most = (*left / 2) as usize;
        let (next, pairs, bytes) = fold_pairs(window, &mut sizes, most, folded, |folded, first, second| {
            let folded = f(folded, first);
            f(folded, second)
        });
        folded = next;
        if pairs == 0 {
            break;
        }
        *pos += bytes;
        *left -= 2 * pairs as u32;
    }
    folded
}
