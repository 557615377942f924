//! The pass over a whole payload before anything in it is believed.

use super::cursor::{Cursor, Entered, FIXED_SIZE};
use super::error::{ErrorClass, Fault};
use super::ints::skip_run;

/// How many containers may stand inside one another, the outermost counting as 1.
pub const MAX_DEPTH: usize = 32;

/// Where the first children of the outermost container end.
pub(super) type Ends = [usize; 8];

/// Checks that `data` from `start` to its end is exactly one well-formed msgpack value.
///
/// Loops instead of recursing, remembers at most [`MAX_DEPTH`] counters, and does work in proportion to the bytes.
pub(super) fn check(data: &[u8], start: usize) -> Result<Ends, Fault> {
    let mut ends = [0; 8];
    if start >= data.len() {
        return Err(Fault::at(ErrorClass::Empty, start));
    }
    let (mut pos, root) = enter(data, start)?;
    for child in 0..root.children {
        pos = check_child(data, pos)?;
        if let Some(end) = ends.get_mut(child as usize) {
            *end = pos;
        }
    }
    if pos < data.len() { Err(Fault::at(ErrorClass::TrailingBytes, pos)) } else { Ok(ends) }
}

/// Checks the value at `start`, which stands in one container already; where it ends.
fn check_child(data: &[u8], start: usize) -> Result<usize, Fault> {
    const LEVELS: usize = MAX_DEPTH - 1;
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
            if entered.may_run {
                (pos, left) = skip_run(data, pos, left);
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
