//! The pass over a whole payload before anything in it is believed.

use super::cursor::{Cursor, Entered, FIXED_SIZE};
use super::error::{ErrorClass, Fault};
use super::ints::skip_run;
use super::skim::skip_known;

/// How many containers may stand inside one another, the outermost counting as 1.
pub const MAX_DEPTH: usize = 32;

/// What the pass has seen that spares later readings a pass of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Where the first children of the outermost container end; 0 if that is not known, or too far away.
    ends: [u32; 8],
    /// Of the first long arrays of nothing but integers of 32 bits at most: the elements' beginning and end.
    runs: [(u32, u32); 8],
    noted: u32,
}

impl Seen {
    /// Length in bytes from which a run is worth a note.
    const NOTE: usize = 128;

    fn note(&mut self, start: usize, end: usize) {
        let (Ok(from), Ok(to)) = (u32::try_from(start), u32::try_from(end)) else { return };
        if let Some(run) = self.runs.get_mut(self.noted as usize).filter(|_| end - start >= Self::NOTE) {
            *run = (from, to);
            self.noted += 1;
        }
    }

    /// Where this child of the outermost container ends, if that was noted.
    pub(super) fn end_of(&self, child: usize) -> Option<usize> {
        self.ends.get(child).filter(|end| **end > 0).map(|end| *end as usize)
    }

    /// The first run that was noted at or behind `pos`; `next` is where to look for it.
    #[inline]
    pub(super) fn run_from(&self, pos: usize, next: &mut usize) -> (usize, usize) {
        while let Some(&(start, end)) = self.runs[..self.noted as usize].get(*next) {
            if start as usize >= pos {
                return (start as usize, end as usize);
            }
            *next += 1;
        }
        (0, 0)
    }
}

/// Checks that `data` from `start` to its end is exactly one well-formed msgpack value.
///
/// Loops instead of recursing, remembers at most [`MAX_DEPTH`] counters, and does work in proportion to the bytes.
pub(super) fn check(data: &[u8], start: usize) -> Result<Seen, Fault> {
    let mut seen = Seen::default();
    if start >= data.len() {
        return Err(Fault::at(ErrorClass::Empty, start));
    }
    let (mut pos, root) = enter(data, start)?;
    for child in 0..root.children {
        pos = check_child(data, pos, &mut seen)?;
        if let Some(end) = seen.ends.get_mut(child as usize) {
            *end = u32::try_from(pos).unwrap_or(0);
        }
    }
    if pos < data.len() { Err(Fault::at(ErrorClass::TrailingBytes, pos)) } else { Ok(seen) }
}

/// Checks the value at `start`, which stands in one container already; where it ends.
fn check_child(data: &[u8], start: usize, seen: &mut Seen) -> Result<usize, Fault> {
    const LEVELS: usize = MAX_DEPTH - 1;
    const STR8: u8 = rmp::Marker::Str8.to_u8();
    let mut outer = [0_u64; LEVELS];
    let mut depth = 0;
    let mut left = 1_u64;
    let mut pos = start;
    loop {
        let Some(&marker) = data.get(pos) else {
            return Err(Fault::at(ErrorClass::Truncated, data.len()));
        };
        let size = usize::from(FIXED_SIZE[usize::from(marker)]);
        left -= 1;
        if size > 0 {
            pos += size;
            if pos > data.len() {
                return Err(Fault::at(ErrorClass::Truncated, data.len()));
            }
        } else if let (STR8, Some(&len)) = (marker, data.get(pos + 1)) {
            pos += 2 + usize::from(len);
            if pos > data.len() {
                return Err(Fault::at(ErrorClass::Truncated, data.len()));
            }
        } else {
            let (behind, entered) = enter(data, pos)?;
            if entered.container && depth == LEVELS {
                return Err(Fault::at(ErrorClass::DepthLimit, pos));
            }
            if entered.children > 0 {
                outer[depth] = left;
                depth += 1;
                left = entered.children;
            }
            pos = behind;
            if entered.may_be_known && depth < LEVELS {
                (pos, left) = skip_known(data, behind, left);
            }
            (pos, left) = skip_hashes(data, pos, left);
            if entered.may_run {
                let start = pos;
                (pos, left) = skip_run(data, pos, left);
                if left == 0 && start == behind {
                    seen.note(behind, pos);
                }
            }
        }
        while left == 0 {
            if depth == 0 {
                return Ok(pos);
            }
            depth -= 1;
            left = outer[depth];
        }
    }
}

/// Steps over integers of 64 bits, which nearly all hashes are, as long as nothing else comes: one size for all, so no byte has
/// to be waited for to know where the next one begins.
#[inline(always)]
fn skip_hashes(data: &[u8], mut pos: usize, mut left: u64) -> (usize, u64) {
    const U64: u8 = rmp::Marker::U64.to_u8();
    while let (Some([U64, ..]), true) = (data.get(pos..).and_then(|rest| rest.first_chunk::<9>()), left > 0) {
        (pos, left) = (pos + 9, left - 1);
    }
    (pos, left)
}

/// Steps past a leaf or the header of a container; that the children cannot all be there is noticed at once.
#[inline]
fn enter(data: &[u8], pos: usize) -> Result<(usize, Entered), Fault> {
    let mut cursor = Cursor::new(data, pos);
    let truncated = Fault::at(ErrorClass::Truncated, data.len());
    match cursor.enter() {
        Ok(entered) if entered.children > (data.len() - cursor.pos()) as u64 => Err(truncated),
        Ok(entered) => Ok((cursor.pos(), entered)),
        Err(ErrorClass::Truncated) => Err(truncated),
        Err(class) => Err(Fault::at(class, pos)),
    }
}
