//! Where frames live: a table that only grows, in runs, and never moves what it holds.
//!
//! A frame is named by a number, its index. Whoever holds the index as a [`Held`] owns the frame: there is one `Held` for
//! each frame, it is moved from the pool to a caller, by way of a word of the ring to the sender or to whoever evicts it,
//! and back. Every one of those hand-overs is a `Release` and an `Acquire`.

use super::prefetch;
use crate::sync::{AtomicU32, UnsafeCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicU32 as Count, Ordering};

/// Frames that are made, handed out and given back together. Small in models, so that they meet the ends of runs.
#[cfg(not(kv_events_loom))]
pub const RUN: usize = 15;
/// Frames that are made, handed out and given back together.
#[cfg(kv_events_loom)]
pub const RUN: usize = 3;

/// The low bits of an index: the place in the run, from 1. Place 0 is no frame's, so an index of 0 is none.
pub(super) const PLACE_BITS: u32 = (RUN + 1).trailing_zeros();
const PLACE: u32 = (1 << PLACE_BITS) - 1;

/// What lives in a frame: one call of a producer, 1 or 2 events.
pub trait Call: Sized {
    /// A run of frames, each good for a call that asks for `room`; `None` if there is no memory for it.
    fn run(room: usize) -> Option<[Self; RUN]>;

    /// Events in the call.
    fn events(&self) -> u64;

    /// Bytes the call puts into a message.
    fn bytes(&self) -> usize;

    /// Bytes of memory that the frame holds on to.
    fn footprint(&self) -> usize;

    /// Lets go of that memory.
    fn trim(&mut self);

    /// Tells the processor that the frame's bytes are about to be read.
    fn prefetch(&self) {}

    /// Tells the processor that the frame's bytes are about to be written.
    fn prefetch_for_writing(&self) {}

    /// Tells it that it has the positions from `at` on: for models, which judge by the order of positions.
    #[cfg(kv_events_loom)]
    fn placed(&self, _at: u64) {}
}

/// The right to a frame: to read and write it, and to pass it on.
///
/// It is not `Clone`, and only this folder makes one, of an index that was handed over. One that is dropped loses its frame
/// until the table goes.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame that is not given back is lost"]
pub struct Held(u32);

impl Held {
    /// To be called by whoever an index was handed over to, once.
    pub(super) fn of(index: u32) -> Self {
        debug_assert!(index != 0);
        Held(index)
    }

    /// One that stands for a frame of a model's own.
    #[cfg(kv_events_loom)]
    pub fn for_model(index: u32) -> Self {
        Held(index)
    }

    /// The index, for models and tests.
    pub fn number(&self) -> u32 {
        self.0
    }

    /// Hands the frame over, as a number.
    pub(super) fn into_index(self) -> u32 {
        self.0
    }

    /// The number, which stays this one's.
    pub(super) fn index(&self) -> u32 {
        self.0
    }
}

/// One frame, with the link that [`Stack`](super::stack::Stack)s of single frames use: one cache line in what ships.
#[repr(align(64))]
struct Slot<T> {
    link: AtomicU32,
    frame: UnsafeCell<T>,
}

/// The indices of a full run of idle frames, with the link that stacks of runs use: one cache line. There is one for each
/// run that was made, so there is always one for [`RUN`] idle frames.
#[repr(align(64))]
pub(super) struct Node {
    pub(super) link: AtomicU32,
    pub(super) indices: UnsafeCell<[u32; RUN]>,
}

struct Chunk<T> {
    node: Node,
    slots: [Slot<T>; RUN],
}

/// The table.
#[derive(Debug)]
pub struct Frames<T> {
    /// The chunk of each number, from 1 on; null until it is made. The standard library's atomics, not modelled: whoever has
    /// an index has it by a hand-over that the frames' cells check, and the pointer was written before the first of them.
    chunks: Box<[AtomicPtr<Chunk<T>>]>,
    made: Count,
    owned: PhantomData<Box<Chunk<T>>>,
}

// SAFETY: a frame is reached through its `Held` alone, which is one; a node through the stack it was popped from, by one
// thread. Links are atomics.
unsafe impl<T: Send> Sync for Frames<T> {}
// SAFETY: the chunks are the table's own.
unsafe impl<T: Send> Send for Frames<T> {}

impl<T: Call> Frames<T> {
    /// A table for at least `most` frames, with none made yet; `None` if there is no memory for it.
    pub(super) fn new(most: usize) -> Option<Self> {
        let chunks = most.div_ceil(RUN) + 1;
        debug_assert!(chunks << PLACE_BITS <= super::stack::Stack::LIMIT as usize);
        Some(Frames { chunks: crate::sync::zeroed(chunks)?, made: Count::new(0), owned: PhantomData })
    }

    /// Makes a run; returns its number. `None` if the table is full or there is no memory.
    #[cold]
    pub(super) fn grow(&self, room: usize) -> Option<u32> {
        // Looked at first, so that asking again and again does not count beyond the end.
        if self.made() + 1 >= self.chunks.len() {
            return None;
        }
        let mut place = Vec::new();
        place.try_reserve_exact(1).ok()?;
        let frames = T::run(room)?;
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let chunk = self.chunks.get(number as usize)?;
        place.push(Chunk {
            node: Node { link: AtomicU32::new(0), indices: UnsafeCell::new([0; RUN]) },
            slots: frames.map(|frame| Slot { link: AtomicU32::new(0), frame: UnsafeCell::new(frame) }),
        });
        let made = Box::into_raw(place.into_boxed_slice());
        // Relaxed: see `chunks`.
        chunk.store(made.cast(), Ordering::Relaxed);
        Some(number)
    }

    /// Runs that were made.
    pub(super) fn made(&self) -> usize {
        (self.made.load(Ordering::Relaxed) as usize).min(self.chunks.len() - 1)
    }

    /// The indices of a run that [`grow`](Self::grow) has just made.
    pub(super) fn indices(number: u32) -> impl Iterator<Item = u32> {
        (1..=RUN as u32).map(move |place| number << PLACE_BITS | place)
    }

    #[inline(always)]
    fn chunk(&self, number: u32) -> &Chunk<T> {
        let chunk = self.chunks[number as usize].load(Ordering::Relaxed);
        debug_assert!(!chunk.is_null());
        // SAFETY: a number is known only to those to whom it was handed over, after the chunk was made; it is freed with the
        // table. See `chunks` for the ordering.
        unsafe { &*chunk }
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> &Slot<T> {
        &self.chunk(index >> PLACE_BITS).slots[(index & PLACE) as usize - 1]
    }

    /// The frame, to be read.
    #[inline(always)]
    pub fn get(&self, held: &Held) -> &T {
        // SAFETY: there is one `Held` for each frame, so nobody writes it while this one is borrowed.
        self.slot(held.0).frame.with(|frame| unsafe { &*frame })
    }

    /// The frame, to be written.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the `Held` is what is borrowed mutably")]
    pub fn get_mut<'a>(&'a self, held: &'a mut Held) -> &'a mut T {
        // SAFETY: as above; and this one is borrowed mutably.
        self.slot(held.0).frame.with_mut(|frame| unsafe { &mut *frame })
    }

    /// The link of a frame, for stacks of frames.
    pub(super) fn link(&self, index: u32) -> &AtomicU32 {
        &self.slot(index).link
    }

    /// The node of a run, for stacks of runs.
    pub(super) fn node(&self, number: u32) -> &Node {
        &self.chunk(number).node
    }

    /// Tells the processor that the frame's line is about to be read.
    #[inline(always)]
    pub(super) fn prefetch(&self, held: &Held) {
        prefetch::read(self.slot(held.0));
    }

    /// The same for the node of run `number`, which may be anybody's, or none.
    #[cfg(not(kv_events_loom))]
    pub(super) fn prefetch_node(&self, number: u32) {
        // Not followed, so it may be null.
        prefetch::write(self.chunks[number as usize].load(Ordering::Relaxed));
    }

    /// The same for frame `index`, which the caller owns, to be written.
    #[inline(always)]
    pub(super) fn prefetch_for_writing(&self, index: u32) {
        prefetch::write(self.slot(index));
    }
}

impl<T> Drop for Frames<T> {
    fn drop(&mut self) {
        for chunk in &mut self.chunks {
            let chunk = *chunk.get_mut();
            if !chunk.is_null() {
                // SAFETY: it is what `grow` made of a boxed slice of one.
                drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(chunk, 1)) });
            }
        }
    }
}
