//! The events of a batch as items: stepping over one, and opening one in a bin.

use super::cursor::Cursor;
use super::error::Fault;
use super::structure;

/// Puts `cursor` behind the bad event that began at `start`.
#[cold]
pub(super) fn pass_over(cursor: &mut Cursor<'_>, start: usize) {
    cursor.seek(start);
    // The structural pass has seen the whole payload, so there is a value to step over.
    if cursor.skip().is_err() {
        cursor.seek(cursor.data().len());
    }
}

/// A cursor at the value inside the bin that `cursor` has just passed, once that value has been checked as a payload is.
pub(super) fn unwrap_bin<'a>(cursor: &Cursor<'a>, bytes: &'a [u8]) -> Result<Cursor<'a>, Fault> {
    let end = cursor.pos();
    let inside = &cursor.data()[..end];
    let start = end - bytes.len();
    structure::check(inside, start)?;
    Ok(Cursor::new(inside, start))
}
