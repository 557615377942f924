//! The free list of buffers: calls take one, whoever is done with it gives it back.

use super::Call;
use crate::sync::{ArrayQueue, Counter};

/// A bounded, lock-free, first-in-first-out list of idle buffers.
///
/// It starts empty and grows on demand: a caller that finds nothing makes a buffer, and it comes back here later. At most
/// `bound` are kept, and none that holds more than `retain` bytes, so one huge key leaves no huge buffer behind.
/// First-in-first-out keeps buffers that were allocated together together, which the caches notice.
#[derive(Debug)]
pub struct Pool<T> {
    free: ArrayQueue<T>,
    retain: usize,
    misses: Counter,
    freed: Counter,
}

impl<T: Call> Pool<T> {
    /// A pool that keeps at most `bound` buffers of at most `retain` bytes each.
    pub fn new(bound: usize, retain: usize) -> Self {
        Pool { free: ArrayQueue::new(bound), retain, misses: Counter::new(), freed: Counter::new() }
    }

    /// An idle buffer; `None` (counted as a miss) if there is none and the caller has to make one.
    pub fn take(&self) -> Option<T> {
        let buffer = self.free.pop();
        if buffer.is_none() {
            self.misses.add(1);
        }
        buffer
    }

    /// Gives a buffer back. One over the limits is freed and counted.
    pub fn give(&self, buffer: T) {
        if buffer.footprint() > self.retain {
            self.freed.add(1);
        } else if let Err(surplus) = self.free.push(buffer) {
            self.freed.add(1);
            drop(surplus);
        }
    }

    /// Buffers that callers had to make.
    pub fn misses(&self) -> u64 {
        self.misses.get()
    }

    /// Buffers that were freed rather than kept.
    pub fn freed(&self) -> u64 {
        self.freed.get()
    }

    /// Buffers idle now; stale as soon as it is read.
    pub fn idle(&self) -> usize {
        self.free.len()
    }
}
