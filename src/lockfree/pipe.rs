//! Ring, pool and wake put together: what a call goes through, from its frame to the sender's hand.

use super::frames::{Call, Held};
use super::pool::{Pool, Returns};
use super::ring::{Limits, Ring, Taker};
use super::wake::{Closed, Wake, Waker};
use crate::faults::fault;
use std::time::{Duration, Instant};

/// The way from the producers to the sender.
#[derive(Debug)]
pub struct Pipe<T> {
    wake: Wake,
    ring: Ring,
    pool: Pool<T>,
    limits: Limits,
    light: usize,
}

/// What belongs to the sender alone: where it is, and what it is about to give back.
#[derive(Debug)]
pub struct Consumer {
    taker: Taker,
    returns: Returns,
    #[cfg(kv_events_faults)]
    carried: Option<Held>,
}

/// A batch in the sender's hand.
#[derive(Debug)]
pub struct Batch<'a, T> {
    pool: &'a Pool<T>,
    held: &'a [Held],
}

impl<T> Clone for Batch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Batch<'_, T> {}

impl<'a, T: Call> Batch<'a, T> {
    /// Its calls, oldest first.
    pub fn calls(self) -> impl Iterator<Item = &'a T> {
        self.held.iter().map(move |held| self.pool.frames().get(held))
    }
}

impl<T: Call> Pipe<T> {
    /// A pipe for `capacity` events of which `burst` calls are evicted at once, whose batches keep to `limits`, with frames
    /// for `callers` at once that may keep `retain` bytes each. `None` if there is no memory for it.
    pub fn new(capacity: usize, burst: usize, limits: Limits, callers: usize, retain: usize) -> Option<Self> {
        let most = capacity.checked_add(limits.events as usize)?.checked_add(callers)?;
        let ring = Ring::new(capacity, burst, Pool::<T>::index_bits(most))?;
        Some(Pipe { wake: Wake::new(), ring, pool: Pool::new(most, retain)?, limits, light: limits.light() })
    }

    /// The sender's part, to be made once.
    pub fn consumer(&self) -> Consumer {
        Consumer {
            taker: self.ring.taker(self.limits),
            returns: Returns::default(),
            #[cfg(kv_events_faults)]
            carried: None,
        }
    }

    /// Whether calls are taken.
    #[inline]
    pub fn check_open(&self) -> Result<(), Closed> {
        self.wake.check_open()
    }

    /// An idle frame, or a new one with `room` for the call at hand; `None` if there is no memory.
    #[inline]
    pub fn take_frame(&self, room: usize) -> Option<Held> {
        self.pool.take(room)
    }

    /// The frame, to be written.
    #[inline(always)]
    pub fn frame<'a>(&'a self, held: &'a mut Held) -> &'a mut T {
        self.pool.frames().get_mut(held)
    }

    /// Gives back a frame that was taken and not queued.
    pub fn give_back(&self, held: Held) {
        let heavy = self.pool.is_heavy(self.pool.frames().get(&held).footprint());
        self.pool.give(held, heavy);
    }

    /// Queues a call, evicting the oldest if there is no room, and wakes the sender if it sleeps.
    ///
    /// # Errors
    ///
    /// Says why the queue is closed. The frame has been given back.
    #[inline(always)]
    pub fn push(&self, held: Held) -> Result<(), Closed> {
        let call = self.pool.frames().get(&held);
        let heavy = call.bytes() > self.light || self.pool.is_heavy(call.footprint());
        let events = call.events();
        let recycle = |victim, heavy| {
            if fault!(FrameReturnedTwice) {
                self.pool.give_twice(&victim);
            }
            if !fault!(VictimNotReturned) {
                self.pool.give(victim, heavy);
            }
        };
        let placed = |_held: &Held, _at| {
            #[cfg(kv_events_loom)]
            self.pool.frames().get(_held).placed(_at);
        };
        match self.ring.push(held, events, heavy, recycle, placed) {
            Ok(()) => {
                self.wake.notify();
                Ok(())
            }
            Err(held) => Err(self.refused(held)),
        }
    }

    #[cold]
    fn refused(&self, held: Held) -> Closed {
        self.give_back(held);
        self.wake.why()
    }

    /// Sender: moves the oldest calls into `batch`, which is empty, and returns the number of events lost between the batch
    /// before and this one. An empty batch has no gap: what was lost stays to be told.
    ///
    /// Whatever is moved belongs to this batch; nothing may be kept for the next.
    pub fn take(&self, consumer: &mut Consumer, batch: &mut Vec<Held>) -> u64 {
        debug_assert!(batch.is_empty());
        let (mut events, mut bytes, mut heavies, mut gap) = (0, 0, false, 0);
        #[cfg(kv_events_faults)]
        batch.extend(consumer.carried.take());
        while events + 2 <= self.limits.events && bytes < self.limits.bytes {
            // Light calls cannot exceed the limit by themselves; beside heavy ones they are counted.
            let calls = if heavies { (self.limits.bytes - bytes) / self.light.max(1) } else { usize::MAX };
            let joined = !batch.is_empty() && !fault!(CarryOver);
            let take = |held: Held, heavy| {
                self.pool.frames().prefetch(&held);
                heavies |= heavy;
                batch.push(held);
            };
            let left = self.limits.events - events;
            let taken = self.ring.take(&mut consumer.taker, left, calls.max(1), joined, take);
            let Some(taken) = taken else { break };
            gap += taken.gap;
            events += taken.events;
            if heavies {
                bytes = self.batch(batch).calls().map(Call::bytes).sum();
            }
        }
        #[cfg(kv_events_faults)]
        if fault!(CarryOver) && batch.len() > 1 && !self.ring.is_empty() {
            consumer.carried = batch.pop();
        }
        gap
    }

    /// Sender: the batch, to be read.
    pub fn batch<'a>(&'a self, held: &'a [Held]) -> Batch<'a, T> {
        Batch { pool: &self.pool, held }
    }

    /// Sender: gives back what it has dealt with.
    pub fn recycle(&self, consumer: &mut Consumer, batch: &mut Vec<Held>) {
        batch.drain(..).for_each(|held| self.pool.give_far(held, &mut consumer.returns));
    }

    /// Sender: see [`Wake::register`].
    pub fn register_sender(&self, waker: Option<Waker>) {
        self.wake.register(waker);
    }

    /// Sender: sleeps until there is something to do; see [`Wake::park`].
    pub fn park(&self, timeout: Option<Duration>) {
        self.wake.park(timeout, || self.ring.is_empty());
    }

    /// Sender: see [`Wake::park_elsewhere`].
    pub fn park_elsewhere(&self, wait: impl FnOnce()) {
        self.wake.park_elsewhere(|| self.ring.is_empty(), wait);
    }

    /// Begins to stop: calls are refused from now on, also if another stop began before; `false` then. See [`Wake::close`].
    pub fn close(&self, deadline: Option<Instant>) -> bool {
        self.ring.close();
        self.wake.close(deadline)
    }

    /// Whether stop has begun.
    pub fn is_closing(&self) -> bool {
        self.wake.is_closing()
    }

    /// When stop wants to be done.
    pub fn deadline(&self) -> Option<Instant> {
        self.wake.deadline()
    }

    /// Sender, after stop has begun: whether everything that was accepted has gone.
    pub fn is_drained(&self) -> bool {
        self.ring.is_drained()
    }

    /// After stop has begun: nothing is taken any more; what is left is abandoned. Whoever is first does it.
    pub fn abandon(&self) {
        self.ring.end(|held, heavy| self.pool.give(held, heavy));
    }

    /// Sender, at its end: takes nothing any more, gives back what it has, and returns the events lost since its last batch.
    pub fn end(&self, consumer: &mut Consumer) -> u64 {
        self.abandon();
        self.pool.give_rest(&mut consumer.returns);
        self.ring.rest(&mut consumer.taker)
    }

    /// Sender: the same for one that failed.
    pub fn fail(&self, consumer: &mut Consumer) -> u64 {
        self.wake.fail();
        self.ring.close();
        self.end(consumer)
    }

    /// In a forked child: see [`Wake::disown`].
    #[cfg_attr(not(unix), allow(dead_code))]
    pub fn disown(&self) {
        self.wake.disown();
    }

    /// Whether this is a forked child's copy.
    pub fn is_disowned(&self) -> bool {
        self.wake.is_disowned()
    }

    /// How much a batch may carry.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The ring, for its figures.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The pool, at rest.
    pub fn pool_mut(&mut self) -> &mut Pool<T> {
        &mut self.pool
    }

    /// The pool, for its figures.
    pub fn pool(&self) -> &Pool<T> {
        &self.pool
    }
}
