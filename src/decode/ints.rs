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
    if left >= LONG {
        (pos, left) = skip_from_many_places(data, pos, left);
    }
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

/// How many values a run must have to be stepped over from many places at once.
const LONG: u64 = 128;

/// The places.
const PLACES: usize = 8;

/// A marker that begins no integer.
const NONE: u8 = rmp::Marker::Null.to_u8();

/// Bytes of the longest integer.
const LONGEST: usize = 5;

/// Sizes of unsigned integers of at most 32 bits, by their markers; 0 for all else.
const SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut marker = 0;
    while marker < 256 {
        sizes[marker] = size_of(marker as u8) as u8;
        marker += 1;
    }
    sizes
};

/// As [`skip_run`], but it stops short wherever it likes.
///
/// Each hop waits for the one before it, for longer than it takes. So it is done from several places at once, which look as
/// if an integer began there. Where a walk comes to the very place where the next one began, both are one; where it does not,
/// what is behind was for nothing.
fn skip_from_many_places(data: &[u8], start: usize, left: u64) -> (usize, u64) {
    let size_at = |at: usize| usize::from(SIZES[usize::from(data.get(at).copied().unwrap_or(NONE))]);
    if size_at(start) == 0 {
        return (start, left);
    }
    let Some(places) = likely_boundaries(data, start, left) else { return (start, left) };
    let mut at: [usize; PLACES] = std::array::from_fn(|walk| places[walk]);
    let (mut hops, mut most) = (0, 8);
    loop {
        // As many as none of them comes past the next one's beginning with.
        let room = at.iter().zip(&places[1..]).map(|(at, end)| end.saturating_sub(*at)).min().unwrap_or(0);
        let steps = (room / LONGEST).min(most);
        if steps < 4 {
            break;
        }
        // Not many in vain, where it is no run.
        most = (2 * most).min(64);
        for _ in 0..steps {
            for at in &mut at {
                *at += size_at(*at);
            }
        }
        hops += steps as u64;
        // One that stands comes no nearer to the next, so there would be no end.
        if at.iter().any(|at| size_at(*at) == 0) {
            break;
        }
    }
    let (mut pos, mut behind) = (start, left);
    for (walk, mut at) in at.into_iter().enumerate() {
        let mut hops = hops;
        loop {
            let size = size_at(at);
            if size == 0 || hops > behind {
                // It may have stood here for long.
                return (pos, behind);
            }
            if at >= places[walk + 1] {
                break;
            }
            (at, hops) = (at + size, hops + 1);
        }
        (pos, behind) = (at, behind - hops);
        if at != places[walk + 1] {
            break;
        }
    }
    (pos, behind)
}

/// Places where integers are likely to begin, with about as many between each and the next, the last one for an end; the
/// first is `start`.
fn likely_boundaries(data: &[u8], start: usize, left: u64) -> Option<[usize; PLACES + 1]> {
    const U8: u8 = rmp::Marker::U8.to_u8();
    const U16: u8 = rmp::Marker::U16.to_u8();
    const U32: u8 = rmp::Marker::U32.to_u8();
    const FEW: usize = 384;
    // What the first few bytes hold, if whatever looks like a marker is one, tells how long all are.
    let few = data.get(start..)?.first_chunk::<FEW>()?;
    let count = |marker: u8| {
        let counts = few.chunks_exact(128).map(|few| few.iter().map(|byte| u8::from(*byte == marker)).sum::<u8>());
        counts.map(usize::from).sum::<usize>()
    };
    let inside = count(U8) + 2 * count(U16) + 4 * count(U32);
    let all = usize::try_from(left).ok()?.checked_mul(FEW)? / FEW.saturating_sub(inside).max(FEW / LONGEST);
    let mut places = [start; PLACES + 1];
    for (place, guess) in places.iter_mut().zip(0..).skip(1) {
        // Not all of it: a walk over the end is lost.
        let guess = start + (all / (PLACES * 16) * 15).checked_mul(guess)?;
        let near = data.get(guess..)?.first_chunk::<16>()?;
        *place = guess + near.iter().position(|byte| matches!(*byte, U16 | U32))?;
    }
    Some(places)
}

/// The size of the unsigned integer of at most 32 bits that begins so; 0 if none does.
const fn size_of(marker: u8) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps over integers one by one, for the twin to agree with.
    fn one_by_one(data: &[u8], mut pos: usize, mut left: u64) -> (usize, u64) {
        while left > 0 {
            let size = data.get(pos).map_or(0, |marker| size_of(*marker));
            if size == 0 || pos + size > data.len() {
                break;
            }
            (pos, left) = (pos + size, left - 1);
        }
        (pos, left)
    }

    fn encoded(values: &[u32]) -> Vec<u8> {
        let mut out = rmp::encode::ByteBuf::new();
        for value in values {
            let Ok(_) = rmp::encode::write_uint(&mut out, u64::from(*value));
        }
        out.into_vec()
    }

    /// Values of all sizes, and such whose bytes look like markers.
    fn token() -> impl Strategy<Value = u32> {
        prop_oneof![0..128_u32, 128..256_u32, 0..128_000_u32, any::<u32>(), Just(0xcecd), Just(0xcdce_cdcc)]
    }

    proptest! {
        #[test]
        fn whatever_looks_like_integers_is_stepped_over_as_far_as_it_goes(
            data in prop::collection::vec(prop::sample::select(&b"\xcd\xce\xcc\x00\x7f\xc0"[..]), 300..2_000),
            tail in prop::collection::vec(prop::sample::select(&b"\xcd\x00\x00\xc0"[..]), 0..20),
            left in 1..2_000_u64,
        ) {
            let data = [data, tail.repeat(60)].concat();
            prop_assert_eq!(skip_run(&data, 0, left), one_by_one(&data, 0, left));
            let regular = b"\xcd\x00\x00\xc0\xc0\xc0\xcd\x00\x00\xcd\x00\x00".repeat(1 + data.len() / 12);
            prop_assert_eq!(skip_run(&regular, 0, left), one_by_one(&regular, 0, left));
        }

        #[test]
        fn stepping_over_a_run_comes_where_stepping_one_by_one_does(
            front in prop::collection::vec(any::<u8>(), 0..8),
            values in prop_oneof![
                prop::collection::vec(token(), 0..2_000),
                prop::collection::vec(0..60_000_u32, 500..3_000),
                prop::collection::vec(70_000..128_000_u32, 500..3_000),
            ],
            behind in prop::collection::vec(any::<u8>(), 0..400),
            more in 0..200_u64,
            odd in any::<prop::sample::Index>(),
            spoil in prop::option::weighted(0.3, any::<u8>()),
        ) {
            let mut data = [front.clone(), encoded(&values), behind].concat();
            if let (Some(byte), false) = (spoil, data.is_empty()) {
                let at = odd.index(data.len());
                data[at] = byte;
            }
            for left in [values.len() as u64, values.len() as u64 + more, (values.len() as u64).saturating_sub(more)] {
                let (pos, still) = skip_run(&data, front.len(), left);
                prop_assert!(still <= left);
                // It may stop short, at a place that stepping one by one comes to as well; it may not stop for nothing.
                prop_assert_eq!(one_by_one(&data, front.len(), left - still), (pos, 0));
                prop_assert_eq!((pos, still), one_by_one(&data, front.len(), left));
            }
        }
    }
}
