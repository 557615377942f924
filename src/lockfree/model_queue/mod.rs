//! Stand-ins for crossbeam's `ArrayQueue`, which loom cannot see into.
//!
//! Two, because no one of them would do. [`Spec`](Algorithm::Spec) does each operation in one step and hands nothing over
//! from one thread to another but the item itself, so what holds on it holds by the protocol alone and not by the grace
//! of a queue's orderings. [`Ring`](Algorithm::Ring) is the bounded ring with stamped slots that crossbeam's queue is,
//! step by step, so what holds on it is that an item's contents arrive with it, and that nothing depends on operations
//! being one step.

mod ring;
mod spec;

use super::Call;
use ring::Ring;
use spec::Spec;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a stand-in does what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Every operation is one step.
    Spec,
    /// Stamped slots; the positions begin at `start`, whose index within its lap must be below the capacity.
    Ring {
        /// The first position.
        start: u64,
    },
}

/// Which stand-in a queue is.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    algorithm: Algorithm,
    tells: bool,
}

impl StandIn {
    /// A stand-in of this kind.
    pub const fn new(algorithm: Algorithm) -> Self {
        StandIn { algorithm, tells: false }
    }

    /// The same, and it tells every call when it has its place; see [`Call::placed`].
    pub const fn telling(self) -> Self {
        StandIn { tells: true, ..self }
    }

    /// Runs `make`; the queues made in it are of this kind.
    pub fn make<R>(self, make: impl FnOnce() -> R) -> R {
        let before = CHOSEN.replace(self);
        let made = make();
        CHOSEN.set(before);
        made
    }
}

thread_local! {
    static CHOSEN: Cell<StandIn> = const { Cell::new(StandIn::new(Algorithm::Spec)) };
}

/// What `sync` gives out as the queue.
#[derive(Debug)]
pub struct ArrayQueue<T> {
    inner: Inner<T>,
    /// For statistics alone, so it is no step of the model.
    len: AtomicUsize,
}

#[derive(Debug)]
enum Inner<T> {
    Spec(Spec<T>),
    Ring(Ring<T>),
}

impl<T: Call> ArrayQueue<T> {
    /// An empty queue of the kind that [`StandIn::make`] chose, [`Algorithm::Spec`] if it was not asked.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0);
        let StandIn { algorithm, tells } = CHOSEN.get();
        let inner = match algorithm {
            Algorithm::Spec => Inner::Spec(Spec::new(capacity, tells)),
            Algorithm::Ring { start } => Inner::Ring(Ring::new(capacity, start, tells)),
        };
        ArrayQueue { inner, len: AtomicUsize::new(0) }
    }

    /// Puts `item` in if there is room.
    pub fn push(&self, item: T) -> Result<(), T> {
        match &self.inner {
            Inner::Spec(spec) => spec.push(item)?,
            Inner::Ring(ring) => ring.push(item)?,
        }
        self.len.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Puts `item` in; the oldest goes out if there is no room.
    pub fn force_push(&self, item: T) -> Option<T> {
        let victim = match &self.inner {
            Inner::Spec(spec) => spec.force_push(item),
            Inner::Ring(ring) => ring.force_push(item),
        };
        if victim.is_none() {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
        victim
    }

    /// Takes the oldest out.
    pub fn pop(&self) -> Option<T> {
        let item = match &self.inner {
            Inner::Spec(spec) => spec.pop(),
            Inner::Ring(ring) => ring.pop(),
        };
        if item.is_some() {
            self.len.fetch_sub(1, Ordering::Relaxed);
        }
        item
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        match &self.inner {
            Inner::Spec(spec) => spec.is_empty(),
            Inner::Ring(ring) => ring.is_empty(),
        }
    }

    /// How many are there.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}
