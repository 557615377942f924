//! The pass over a whole payload before anything in it is believed.

use super::cursor::{Cursor, FIXED_SIZE};
use super::error::{ErrorClass, Fault};

/// How many containers may stand inside one another, the outermost counting as 1.
pub const MAX_DEPTH: usize = 32;

/// Checks that `data` from `start` to its end is exactly one well-formed msgpack value.
///
/// Loops instead of recursing, remembers at most [`MAX_DEPTH`] counters, and does work in proportion to the bytes.
pub(super) fn check(data: &[u8], start: usize) -> Result<(), Fault> {
    if start >= data.len() {
        return Err(Fault::at(ErrorClass::Empty, start));
    }
    let end = check_value(data, start)?;
    if end < data.len() { Err(Fault::at(ErrorClass::TrailingBytes, end)) } else { Ok(()) }
}

fn check_value(data: &[u8], start: usize) -> Result<usize, Fault> {
    let mut outer = [0_u64; MAX_DEPTH];
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
            let mut cursor = Cursor::new(data, pos);
            match cursor.enter() {
                Ok(None) => pos = cursor.pos(),
                Ok(Some(children)) => {
                    if depth == MAX_DEPTH {
                        return Err(Fault::at(ErrorClass::DepthLimit, pos));
                    }
                    pos = cursor.pos();
                    if children > (data.len() - pos) as u64 {
                        return Err(Fault::at(ErrorClass::Truncated, data.len()));
                    }
                    if children > 0 {
                        outer[depth] = left;
                        depth += 1;
                        left = children;
                    }
                }
                Err(class) => {
                    return Err(Fault::at(class, if class == ErrorClass::Truncated { data.len() } else { pos }));
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
