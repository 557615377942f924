//! The evicting queue and the account of what was evicted.
//!
//! Insertions are lock-free; removals, by the sender and by whoever evicts, happen in turn under one mutex *together with
//! their bookkeeping*. So the gap that the sender takes with a batch is exact: everything it counts is older than the
//! batch and younger than the batch before (I2), nothing is counted that was not lost (I3), and since an evictor always
//! leaves its own call behind its victims, a later batch will tell of them (I4). This asks of the ring only that it is
//! linearizable.
//!
//! Nothing slow happens under the mutex: at most [`CHUNK`] removals and an insertion, no encoding, no I/O, no logging, no
//! allocation, no freeing, and nothing that can panic. What can hold it up is the scheduler: a thread descheduled while it
//! holds the mutex, or one descheduled inside the ring's `push` between claiming its slot and filling it, for which `pop`
//! spins.

#[cfg(feature = "__faults")]
mod faulty;

use super::Call;
use crate::sync::{ArrayQueue, Gauge, Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

/// Removals made under one hold of the mutex.
pub const CHUNK: usize = 16;

/// How much one batch may carry.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events, at least 2.
    pub events: u64,
    /// Bytes, looked at after each removal, so exceeded by one call at most.
    pub bytes: usize,
}

/// A bounded queue of calls that evicts its oldest when full and knows, to the event, how many were lost where.
#[derive(Debug)]
pub struct EvictingQueue<T> {
    ring: ArrayQueue<T>,
    burst: usize,
    /// The sender takes it for every batch: kept off the cache lines that producers read.
    removals: CachePadded<Mutex<Removals>>,
    evicted: Gauge,
    abandoned: Gauge,
    #[cfg(feature = "__faults")]
    carried: std::sync::Mutex<Option<T>>,
}

/// Guarded by the mutex under which everything is removed.
#[derive(Debug, Default)]
struct Removals {
    /// Events evicted since the last batch was taken.
    gap: u64,
    /// Events evicted ever.
    evicted: u64,
    /// Events that went when no batch was to be taken any more.
    abandoned: u64,
    /// No batch will be taken any more.
    sealed: bool,
}

impl Removals {
    /// Counts what was lost: for the next batch to tell of, if there will be one.
    fn count(&mut self, events: u64) {
        if self.sealed {
            self.abandoned += events;
        } else {
            self.gap += events;
            self.evicted += events;
        }
    }
}

impl<T: Call> EvictingQueue<T> {
    /// A queue of exactly `capacity` calls that, when full, evicts `burst` calls at once.
    pub fn new(capacity: usize, burst: usize) -> Self {
        EvictingQueue {
            ring: ArrayQueue::new(capacity),
            burst,
            removals: CachePadded::new(Mutex::new(Removals::default())),
            evicted: Gauge::new(),
            abandoned: Gauge::new(),
            #[cfg(feature = "__faults")]
            carried: std::sync::Mutex::new(None),
        }
    }

    /// Puts `call` in, evicting the oldest calls if there is no room; victims go to `recycle`.
    #[inline(always)]
    pub fn push(&self, call: T, recycle: impl FnMut(T)) {
        if let Err(call) = self.ring.push(call) {
            self.push_evicting(call, recycle);
        }
    }

    #[cold]
    fn push_evicting(&self, call: T, recycle: impl FnMut(T)) {
        #[cfg(feature = "__faults")]
        if faulty::accounts_outside() {
            return self.push_accounting_outside(call, recycle);
        }
        let Some((removals, call)) = self.enter_or_push(call) else { return };
        if self.burst > 1 {
            self.push_making_room(removals, call, recycle);
        } else {
            let victim = self.force_in(removals, call);
            victim.into_iter().for_each(recycle);
        }
    }

    /// Puts `call` in; leaves the mutex and returns the victim, if there had to be one.
    fn force_in(&self, mut removals: MutexGuard<'_, Removals>, call: T) -> Option<T> {
        let victim = self.ring.force_push(call);
        if let Some(victim) = &victim {
            removals.count(victim.events());
            self.publish_counts(&removals);
        }
        victim
    }

    /// Evicts `burst` calls, some at a time, before it puts `call` in.
    fn push_making_room<'a>(&'a self, mut removals: MutexGuard<'a, Removals>, call: T, mut recycle: impl FnMut(T)) {
        let mut left = self.burst;
        loop {
            let mut victims = Chunk::new();
            let mut events = 0;
            while left > 0 && victims.len < CHUNK {
                left -= 1;
                let Some(victim) = self.ring.pop() else {
                    left = 0;
                    break;
                };
                victim.prefetch();
                events += victim.events();
                victims.push(victim);
            }
            removals.count(events);
            self.publish_counts(&removals);
            if left == 0 {
                let victim = self.force_in(removals, call);
                victims.recycle(&mut recycle);
                return victim.into_iter().for_each(recycle);
            }
            drop(removals);
            victims.recycle(&mut recycle);
            removals = self.removals.lock();
        }
    }

    /// Enters the mutex, unless room comes first and `call` goes in after all.
    fn enter_or_push(&self, mut call: T) -> Option<(MutexGuard<'_, Removals>, T)> {
        let mut entered = self.removals.try_lock();
        if entered.is_none() {
            call = self.ring.push(call).err()?;
            entered = Some(self.removals.lock());
        }
        let call = self.ring.push(call).err()?;
        entered.map(|removals| (removals, call))
    }

    /// Moves the oldest calls into `batch`, which must be empty with room for `limits.events`, and returns the number of
    /// events lost between the batch before and this one. An empty batch has no gap: what was lost stays to be told.
    ///
    /// Whatever is moved belongs to this batch; nothing may be kept for the next.
    pub fn take(&self, limits: Limits, batch: &mut Vec<T>) -> u64 {
        debug_assert!(batch.is_empty() && batch.capacity() as u64 >= limits.events);
        #[cfg(feature = "__faults")]
        if faulty::takes_wrongly() {
            return self.take_wrongly(limits, batch);
        }
        let (mut events, mut bytes, mut gap) = (0, 0, 0);
        loop {
            let mut removals = self.removals.lock();
            if removals.gap > 0 && !batch.is_empty() {
                // Evicted since our last chunk, so younger than that and older than what is queued: the batch ends here.
                return gap;
            }
            let before = batch.len();
            while batch.len() - before < CHUNK && events + 2 <= limits.events && bytes < limits.bytes {
                let Some(call) = self.ring.pop() else { break };
                events += call.events();
                bytes += call.bytes();
                call.prefetch();
                batch.push(call);
            }
            if !batch.is_empty() {
                gap += std::mem::take(&mut removals.gap);
            }
            drop(removals);
            // Not before the mutex is free again: a processor takes only so many prefetches before it waits for them.
            batch[before..].iter().for_each(Call::prefetch_bytes);
            if batch.len() - before < CHUNK {
                return gap;
            }
        }
    }

    /// No batch will be taken any more: returns the events that were lost since the last one, and from now on whatever
    /// goes is abandoned, what is there to begin with.
    ///
    /// So the events counted as evicted are those that the sequence tells of, to the last.
    pub fn seal(&self, recycle: impl FnMut(T)) -> u64 {
        let mut removals = self.removals.lock();
        removals.sealed = true;
        let gap = std::mem::take(&mut removals.gap);
        drop(removals);
        self.abandon(recycle);
        gap
    }

    /// Removes everything that is there if the queue is sealed; the calls go to `recycle`. If it is not, whoever seals it
    /// will.
    pub fn abandon(&self, mut recycle: impl FnMut(T)) {
        loop {
            let mut chunk = Chunk::new();
            let mut removals = self.removals.lock();
            if !removals.sealed {
                return;
            }
            while chunk.len < CHUNK {
                let Some(call) = self.ring.pop() else { break };
                removals.count(call.events());
                chunk.push(call);
            }
            self.publish_counts(&removals);
            drop(removals);
            let more = chunk.len == CHUNK;
            chunk.recycle(&mut recycle);
            if !more {
                return;
            }
        }
    }

    fn publish_counts(&self, removals: &Removals) {
        self.evicted.set(removals.evicted);
        self.abandoned.set(removals.abandoned);
    }

    /// Whether nothing is queued. Exact only if no producer is inside a push.
    pub fn is_empty(&self) -> bool {
        #[cfg(feature = "__faults")]
        if self.carries() {
            return false;
        }
        self.ring.is_empty()
    }

    /// Calls queued now; stale as soon as it is read.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Events evicted so far.
    pub fn evicted(&self) -> u64 {
        self.evicted.get()
    }

    /// Events abandoned so far.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.get()
    }
}

/// What was removed under one hold of the mutex, so that it can be recycled after it.
struct Chunk<T> {
    calls: [Option<T>; CHUNK],
    len: usize,
}

impl<T: Call> Chunk<T> {
    fn new() -> Self {
        Chunk { calls: [const { None }; CHUNK], len: 0 }
    }

    fn push(&mut self, call: T) {
        self.calls[self.len] = Some(call);
        self.len += 1;
    }

    /// The buffers are fetched all at once: the calls that write into them next would wait for them one by one, each at its
    /// first locked instruction.
    fn recycle(mut self, recycle: impl FnMut(T)) {
        let calls = &mut self.calls[..self.len];
        calls.iter().flatten().for_each(Call::prefetch_bytes);
        calls.iter_mut().filter_map(Option::take).for_each(recycle);
    }
}
