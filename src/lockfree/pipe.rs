//! Queue, pool and wake put together: what a call goes through, from its buffer to the sender's hand.

use super::queue::{EvictingQueue, Limits};
use super::{Call, Closed, Pool, Wake};
use crate::faults::fault;
use std::time::{Duration, Instant};

/// The way from the producers to the sender.
#[derive(Debug)]
pub struct Pipe<T> {
    wake: Wake,
    queue: EvictingQueue<T>,
    pool: Pool<T>,
}

impl<T: Call> Pipe<T> {
    /// A pipe over `queue`, whose buffers come from and go back to `pool`.
    pub fn new(queue: EvictingQueue<T>, pool: Pool<T>) -> Self {
        Pipe { wake: Wake::new(), queue, pool }
    }

    /// Whether calls are taken.
    #[inline]
    pub fn check_open(&self) -> Result<(), Closed> {
        self.wake.check_open()
    }

    /// An idle buffer, if there is one.
    #[inline]
    pub fn take_buffer(&self) -> Option<T> {
        self.pool.take()
    }

    /// Queues a call, evicting the oldest if there is no room, and wakes the sender if it sleeps.
    #[inline(always)]
    pub fn push(&self, call: T) {
        self.queue.push(call, |victim| {
            if !fault!(VictimNotReturned) {
                self.pool.give_near(victim);
            }
        });
        if self.wake.notify() && !fault!(ProducerIgnoresEnd) {
            self.abandon();
        }
    }

    /// The sender has ended and may not have seen what was just pushed.
    #[cold]
    fn abandon(&self) {
        self.queue.abandon(|call| self.pool.give(call));
    }

    /// Sender: see [`EvictingQueue::take`].
    pub fn take(&self, limits: Limits, batch: &mut Vec<T>) -> u64 {
        self.queue.take(limits, batch)
    }

    /// Sender: gives back what it has dealt with.
    pub fn recycle(&self, batch: &mut Vec<T>) {
        for call in batch.drain(..) {
            #[cfg(feature = "__faults")]
            if fault!(BufferReturnedTwice) {
                if let Some(twin) = call.twin() {
                    self.pool.give(twin);
                }
            }
            self.pool.give(call);
        }
    }

    /// Sender: see [`Wake::register`].
    pub fn register_sender(&self) {
        self.wake.register();
    }

    /// Sender: sleeps until there is something to do; see [`Wake::park`].
    pub fn park(&self, timeout: Option<Duration>) {
        self.wake.park(timeout, || self.queue.is_empty());
    }

    /// Begins to stop; see [`Wake::close`].
    pub fn close(&self, deadline: Option<Instant>) -> bool {
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

    /// Sender: it will look once more at the queue, and then [`seal`](Self::seal) it; see [`Wake::end`].
    pub fn end(&self) {
        self.wake.end();
    }

    /// Sender, after [`end`](Self::end): takes nothing any more; see [`EvictingQueue::seal`].
    pub fn seal(&self) -> u64 {
        self.queue.seal(|call| self.pool.give(call))
    }

    /// Sender: the same for a sender that died.
    pub fn die(&self) -> u64 {
        self.wake.die();
        self.wake.end();
        self.seal()
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

    /// The queue, to be asked how it is.
    pub fn queue(&self) -> &EvictingQueue<T> {
        &self.queue
    }

    /// The pool, to be asked how it is.
    pub fn pool(&self) -> &Pool<T> {
        &self.pool
    }

    /// Events that were accepted and then neither sent nor evicted, since the sender had ended.
    pub fn abandoned(&self) -> u64 {
        self.queue.abandoned()
    }
}
