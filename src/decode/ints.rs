//! Long runs of small unsigned integers: token ids, which are most of the bytes that engines send.
//!
//! Reading them one by one is slow for a reason: where the next one begins is known only once the one before it has been
//! looked at, and sizes are too irregular to guess. So the sizes are worked out for every byte of a block first, in loops
//! without dependencies that compilers turn into vector code: of the integer that would begin at the byte, and of that and
//! the next one together. What is left to do in sequence is hopping from pair to pair.

/// Bytes looked at in one go.
const BLOCK: usize = 256;

/// How many values a container must have for it to be worth while to look for a run.
pub(super) const RUN: u32 = 16;

/// Largest encoded integer of a run.
const MAX_SIZE: usize = 5;

/// Of an encoded integer of each size, the bits that are its value.
const MASKS: [u32; 8] = [0, 0x7f, 0xff, 0xffff, 0, 0xffff_ffff, 0, 0];

/// Sizes for `N` bytes, and `MAX_SIZE` more that a pair may reach into.
struct Sizes {
    /// Of the unsigned integer of at most 32 bits that begins at the byte; 0 if none does.
    one: [u8; BLOCK + 8],
    /// Of that one and the next; 0 if either is none.
    two: [u8; BLOCK],
}

impl Sizes {
    #[inline(always)]
    fn of(bytes: &[u8; BLOCK + 8]) -> Sizes {
        const U8: u8 = rmp::Marker::U8.to_u8();
        const U16: u8 = rmp::Marker::U16.to_u8();
        const U32: u8 = rmp::Marker::U32.to_u8();
        let mut one = [0; BLOCK + 8];
        for (size, byte) in one.iter_mut().zip(bytes) {
            let fix = u8::from(*byte < 0x80);
            let u8 = u8::from(*byte == U8) * 2;
            let u16 = u8::from(*byte == U16) * 3;
            let u32 = u8::from(*byte == U32) * 5;
            *size = fix | u8 | u16 | u32;
        }
        let mut two = [0; BLOCK];
        for (at, size) in two.iter_mut().enumerate() {
            let first = one[at];
            let pick = |size: u8, next: u8| if first == size { next } else { 0 };
            let next = pick(1, one[at + 1]) | pick(2, one[at + 2]) | pick(3, one[at + 3]) | pick(5, one[at + 5]);
            *size = if next == 0 { 0 } else { first + next };
        }
        Sizes { one, two }
    }
}

/// Steps over at most `left` integers of a run at `pos`: where it stopped, and how many are still to do. It stops short
/// at anything that is no such integer.
pub(super) fn skip_run(data: &[u8], mut pos: usize, mut left: u64) -> (usize, u64) {
    // Blocks follow one another regardless of where integers begin, so that sizes of the next one can be worked out
    // while this one is still being hopped through.
    let mut base = pos;
    'blocks: while let Some(block) = data.get(base..).and_then(|rest| rest.first_chunk::<{ BLOCK + 8 }>()) {
        let sizes = Sizes::of(block);
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

/// Decodes integers of a run at the beginning of `bytes` into `values`, at most as many as fit: how many, and how many
/// bytes they took. It stops short at anything that is no such integer.
#[inline(always)]
pub(super) fn decode_run(bytes: &[u8], values: &mut [u32; AHEAD], wanted: usize) -> (usize, usize) {
    let mut padded = [0xc1; BLOCK + 8];
    let block = match bytes.first_chunk::<{ BLOCK + 8 }>() {
        Some(block) => block,
        None => {
            padded[..bytes.len()].copy_from_slice(bytes);
            &padded
        }
    };
    let sizes = Sizes::of(block);
    let value = |at: usize, size: usize| {
        let eight = block.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |eight| u64::from_be_bytes(*eight));
        (eight >> (64 - 8 * size)) as u32 & MASKS[size % MASKS.len()]
    };
    let mut at = 0;
    let mut count = 0;
    while count + 2 <= wanted.min(AHEAD) && at < BLOCK - MAX_SIZE {
        let first = usize::from(sizes.one[at]);
        let both = usize::from(sizes.two[at]);
        if both == 0 {
            break;
        }
        values[count] = value(at, first);
        values[count + 1] = value(at + first, both - first);
        at += both;
        count += 2;
    }
    (count, at)
}

/// Integers decoded in one go.
pub(super) const AHEAD: usize = 64;
