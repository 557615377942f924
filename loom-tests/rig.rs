//! The real sender on the real pipe, with a sink that writes down what it is given.

use crate::oracle::{Accounts, judge, published};
use crate::support::{Counts, ModelCall, Seen, World, assert_buffers_home};
use kv_events::WaitStrategy;
use kv_events::internals::model_queue::StandIn;
use kv_events::internals::{Closed, EvictingQueue, Limits, Pace, Pipe, Pool, SendError, Sender, Sink, Tally};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a publisher is without its socket.
pub struct Rig {
    pub pipe: Pipe<ModelCall>,
    pub tally: Tally,
    pub world: World,
    watched: bool,
    /// Events of accepted and of refused calls; the standard library's atomics, no step of a model.
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// Of what size.
#[derive(Clone, Copy)]
pub struct Size {
    pub queue: StandIn,
    pub pool: StandIn,
    pub capacity: usize,
    pub burst: usize,
    /// Whether loom watches the calls' contents; for queues that hand something over.
    pub watched: bool,
}

/// What the sink does with its n-th message; it sends those it is not told of.
pub type Script = &'static [Act];

/// What a sink does.
#[derive(Clone, Copy)]
pub enum Act {
    Send,
    Fail,
    Break,
    Panic,
}

struct ModelSink {
    world: World,
    script: std::slice::Iter<'static, Act>,
}

impl Sink<ModelCall> for ModelSink {
    fn send(&mut self, sequence: u64, batch: &[ModelCall]) -> Result<usize, SendError> {
        let act = self.script.next().copied().unwrap_or(Act::Send);
        self.world.sent(sequence, batch, !matches!(act, Act::Send));
        match act {
            Act::Send => Ok(1),
            Act::Fail => Err(SendError::Failed("as the model wants it".into())),
            Act::Break => Err(SendError::Broken("as the model wants it".into())),
            Act::Panic => std::panic::resume_unwind(Box::new("as the model wants it")),
        }
    }
}

impl Rig {
    pub fn new(size: Size) -> Arc<Self> {
        let queue = size.queue.make(|| EvictingQueue::new(size.capacity, size.burst));
        let pool = size.pool.make(|| Pool::new(size.capacity + 8, 1));
        Arc::new(Rig {
            pipe: Pipe::new(queue, pool),
            tally: Tally::new(),
            world: World::new(),
            watched: size.watched,
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// A call as a caller makes it.
    pub fn publish(&self, name: (u8, u32), events: u64) {
        if let Err(closed) = self.pipe.check_open() {
            self.refused.fetch_add(events, Ordering::Relaxed);
            if closed == Closed::SenderDead {
                assert!(self.tally.cause_of_death.get().is_some(), "whoever is refused for a death finds the cause");
            }
            return;
        }
        let call = self.world.call_from(&self.pipe, name, events);
        self.pipe.push(if self.watched { call.watched() } else { call });
        self.accepted.fetch_add(events, Ordering::Relaxed);
    }

    /// What the sender's thread does.
    pub fn send(&self, limits: Limits, script: Script) {
        let pace = Pace { limits, wait: WaitStrategy::Park, heartbeat: Duration::ZERO };
        let sink = ModelSink { world: self.world.clone(), script: script.iter() };
        let mut sender = Sender::new(&self.pipe, &self.tally, sink, pace);
        let cause = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sender.run())) {
            Ok(outcome) => outcome.err(),
            Err(panic) if panic.is::<&str>() => Some("it panicked".into()),
            // Not the sink's: loom's, or an assertion's.
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some(cause) = cause {
            sender.bury(cause);
        }
    }

    /// What stop does before it waits.
    pub fn stop(&self, deadline: Option<Instant>) -> bool {
        let first = self.pipe.close(deadline);
        assert!(self.pipe.check_open().is_err(), "I7: calls are refused from the moment stop begins");
        first
    }

    /// Judges the execution when all threads have ended; `told` is whether the sender had the time to tell of everything.
    pub fn judge(&self, counts: &Counts, told: bool) {
        let log = self.world.log();
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (evicted, failed) = (self.pipe.queue().evicted(), self.tally.failed.get());
        let accounts = Accounts { evicted, failed, abandoned: self.pipe.abandoned(), told };
        judge(&log, accounts);
        assert_eq!(self.tally.events.get(), published(&log));
        let accounted = self.tally.events.get() + evicted + failed + accounts.abandoned;
        assert_eq!(get(&self.accepted), accounted, "I1: what was accepted is accounted for: {log:#?}");
        let used_up = self.tally.messages.get() + evicted + failed;
        assert_eq!(self.tally.sequence.get(), used_up, "the sequence rule: {log:#?}");
        assert!(self.pipe.queue().is_empty(), "I7: drained");
        counts.note(Seen::Evicted, evicted > 0);
        counts.note(Seen::Refused, get(&self.refused) > 0);
        counts.note(Seen::Special, accounts.abandoned > 0);
        drop(log);
        assert_buffers_home(&self.pipe, &self.world);
    }
}
