//! In models a thread has a lane if it says so.

use std::cell::Cell;

pub(crate) const LANES: usize = 2;

/// The calling thread's number.
#[derive(Clone, Copy)]
pub(crate) struct Lane(usize);

impl Lane {
    pub(crate) fn get(self) -> usize {
        self.0
    }
}

loom::thread_local! {
    static NUMBER: Cell<Option<usize>> = Cell::new(None);
}

/// Gives the calling thread a lane, which no other may have.
pub fn set_lane(number: usize) {
    assert!(number < LANES);
    NUMBER.with(|own| own.set(Some(number)));
}

pub(crate) fn lane() -> Option<Lane> {
    NUMBER.with(Cell::get).map(Lane)
}
