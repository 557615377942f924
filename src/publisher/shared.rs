//! What callers and the sender's thread share, and how the end of that thread is waited for.

use crate::lockfree::Pipe;
use crate::sender::Tally;
use crate::wire::frame::Frame;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What callers and the sender's thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pipe: Pipe<Frame>,
    pub(super) tally: Tally,
    closed: Mutex<bool>,
    closed_changed: Condvar,
}

impl Shared {
    pub(super) fn new(pipe: Pipe<Frame>) -> Self {
        Shared { pipe, tally: Tally::new(), closed: Mutex::new(false), closed_changed: Condvar::new() }
    }

    fn closed(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until socket and context are gone, no longer than `until`; says whether they are.
    pub(super) fn wait_closed(&self, until: Option<Instant>) -> bool {
        let mut closed = self.closed();
        while !*closed {
            closed = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.closed_changed.wait(closed).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return false,
                Some(left) => self.closed_changed.wait_timeout(closed, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        true
    }
}

/// Says that the thread has let go of everything, however it ends.
pub(super) struct ClosedOnDrop<'a>(pub(super) &'a Shared);

impl Drop for ClosedOnDrop<'_> {
    fn drop(&mut self) {
        *self.0.closed() = true;
        self.0.closed_changed.notify_all();
    }
}
