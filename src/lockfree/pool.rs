//! The free list of buffers: calls take one, whoever is done with it gives it back.

use super::Call;
use super::queue::CHUNK;
use crate::sync::{ArrayQueue, Counter, lane};

/// Lists of buffers that stay near the thread that evicted them; threads share one if there are more of them.
const LANES: usize = 8;
/// Buffers in one of them: what a thread evicts at a time, twice.
const LANE: usize = 2 * CHUNK;
/// Buffers that are used again first: few enough that they stay in the caches.
const HOT: usize = 256;

/// A bounded, lock-free list of idle buffers, in three parts.
///
/// What a caller evicted goes to a lane of its own, from which it takes its next buffers: under overload, when calls need
/// nothing but what they evict, no two processors touch the same list, and a buffer is used again where it was last seen.
/// What the sender gives back goes to a small hot part, and to the large cold one only if that is full; so once an overload
/// has passed, during which every buffer was needed, calls soon use the same few again instead of going round all of them.
/// All are first-in-first-out, which keeps buffers that were allocated together together; the caches notice that, too.
///
/// It starts empty and grows on demand: a caller that finds nothing makes a buffer, and it comes back here later. At most
/// `bound` are kept besides those in the lanes, and none that holds more than `retain` bytes, so one huge key leaves
/// no huge buffer behind.
#[derive(Debug)]
pub struct Pool<T> {
    lanes: [ArrayQueue<T>; LANES],
    hot: ArrayQueue<T>,
    /// Not there if the bound is no more than the hot part.
    cold: Option<ArrayQueue<T>>,
    retain: usize,
    misses: Counter,
    freed: Counter,
}

impl<T: Call> Pool<T> {
    /// A pool that keeps at most `bound` buffers of at most `retain` bytes each.
    pub fn new(bound: usize, retain: usize) -> Self {
        let hot = bound.min(HOT);
        Pool {
            lanes: std::array::from_fn(|_| ArrayQueue::new(LANE)),
            hot: ArrayQueue::new(hot),
            cold: (bound > hot).then(|| ArrayQueue::new(bound - hot)),
            retain,
            misses: Counter::new(),
            freed: Counter::new(),
        }
    }

    /// An idle buffer; `None` (counted as a miss) if there is none and the caller has to make one.
    #[inline]
    pub fn take(&self) -> Option<T> {
        let lane = self.lane();
        // Looked at first, which is cheaper than to find nothing.
        if !lane.is_empty() {
            let buffer = lane.pop();
            if buffer.is_some() {
                return buffer;
            }
        }
        let buffer = self.hot.pop();
        if buffer.is_none() { self.take_cold() } else { buffer }
    }

    fn take_cold(&self) -> Option<T> {
        let buffer = self.cold.as_ref().and_then(ArrayQueue::pop);
        // What lies near others is better than a new one.
        let buffer = buffer.or_else(|| self.lanes.iter().find_map(ArrayQueue::pop));
        if buffer.is_none() {
            self.misses.add(1);
        }
        buffer
    }

    /// Gives a buffer back. One over the limits is freed and counted.
    pub fn give(&self, buffer: T) {
        if buffer.footprint() > self.retain {
            return self.free(buffer);
        }
        if let Err(buffer) = self.hot.push(buffer) {
            self.give_cold(buffer);
        }
    }

    /// Gives back the buffer of an evicted call, for the calling thread to use next.
    pub fn give_near(&self, buffer: T) {
        if buffer.footprint() > self.retain {
            return self.free(buffer);
        }
        if let Err(buffer) = self.lane().push(buffer) {
            self.give(buffer);
        }
    }

    #[inline]
    fn lane(&self) -> &ArrayQueue<T> {
        &self.lanes[lane() % LANES]
    }

    fn give_cold(&self, buffer: T) {
        match &self.cold {
            Some(cold) => {
                if let Err(surplus) = cold.push(buffer) {
                    self.free(surplus);
                }
            }
            None => self.free(buffer),
        }
    }

    #[cold]
    fn free(&self, buffer: T) {
        self.freed.add(1);
        drop(buffer);
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
        let near: usize = self.lanes.iter().map(ArrayQueue::len).sum();
        near + self.hot.len() + self.cold.as_ref().map_or(0, ArrayQueue::len)
    }
}
