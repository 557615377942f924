//! The subscriber's side of a run: it follows the stream from gate to gate.

use crate::checkpoint::CheckpointBarrier;
use crate::follower::{Follower, Heard, Message};
use crate::master::Master;
use crate::recording_publisher::Ledger;
use crate::{Failures, IN_BAND_TENANT};
use kv_events::{MediaSet, Object, Publisher, Status};
use std::ops::Deref;
use std::time::{Duration, Instant};

/// How long nothing may come in while something is expected.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where messages come from.
pub trait Source {
    type Payload: Deref<Target = [u8]>;

    /// Puts what has come in behind `in_hand`, waiting about a millisecond if there is nothing.
    ///
    /// # Errors
    ///
    /// What came in is no message, or nothing can come in any more.
    fn receive(&mut self, in_hand: &mut Vec<Message<Self::Payload>>) -> Result<(), String>;
}

/// What a run came to. Events said in band are in none of the figures, except in the status.
#[derive(Debug)]
pub struct End {
    /// As counted by the callers.
    pub accepted: u64,
    pub published: u64,
    pub received: u64,
    /// The sum of all gaps.
    pub missed: u64,
    pub status: Status,
    pub heard: Heard,
    pub failures: Failures,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Session<'a, S: Source> {
    pub publisher: &'a Publisher,
    pub master: &'a Master,
    pub ledgers: &'a [Ledger],
    pub gate: &'a CheckpointBarrier,
    pub follower: Follower<'a>,
    pub source: S,
    /// Events said in band, all of them sent.
    pub in_band: u64,
    in_hand: Vec<Message<S::Payload>>,
}

impl<'a, S: Source> Session<'a, S> {
    /// A session of which nothing has been received; `last` as in [`Follower::new`].
    pub fn new(
        publisher: &'a Publisher,
        master: &'a Master,
        ledgers: &'a [Ledger],
        gate: &'a CheckpointBarrier,
        source: S,
        last: Option<u64>,
    ) -> Self {
        let follower = Follower::new(ledgers, last);
        Session { publisher, master, ledgers, gate, follower, source, in_band: 0, in_hand: Vec::new() }
    }

    /// Follows until all producers wait at the gate and everything they said has arrived or is known to be lost, then
    /// compares the view with the master. The gate stays shut.
    ///
    /// # Errors
    ///
    /// The run cannot go on.
    pub fn checkpoint(&mut self) -> Result<(), String> {
        while !self.gate.all_wait()? {
            self.follow()?;
        }
        self.arrive()?;
        self.follower.checkpoint(&self.master.snapshot());
        Ok(())
    }

    /// Says something in band, to be called while all producers wait or have not begun: at a moment when nothing is under
    /// way, so that it neither evicts anything nor is evicted.
    ///
    /// # Errors
    ///
    /// It was not sent.
    pub fn say_in_band(&mut self, key: &str) -> Result<(), String> {
        self.settle()?;
        let outcome = self.publisher.committed(&Object::new(IN_BAND_TENANT, key), MediaSet::CPU);
        if !outcome.is_accepted() {
            return Err(format!("the {key} came to {outcome:?}"));
        }
        let lost = self.publisher.status().dropped_events;
        self.in_band += 1;
        self.settle()?;
        if self.publisher.status().dropped_events > lost { Err(format!("the {key} was lost")) } else { Ok(()) }
    }

    /// Follows until all that was said has arrived.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn arrive(&mut self) -> Result<(), String> {
        let last = self.settle()?;
        self.follow_until(|session| (session.follower.last() >= Some(last)).then_some(()))
    }

    /// Follows until all that was said has been sent or lost; returns the last number used up.
    fn settle(&mut self) -> Result<u64, String> {
        self.follow_until(|session| {
            let said: u64 = session.ledgers.iter().map(|ledger| ledger.read().accepted()).sum();
            let status = session.publisher.status();
            (status.published_events + status.dropped_events == said + session.in_band).then_some(status.last_sequence)
        })
    }

    fn follow_until<R>(&mut self, is_done: impl Fn(&Self) -> Option<R>) -> Result<R, String> {
        let mut quiet_since = Instant::now();
        loop {
            if let Some(done) = is_done(self) {
                return Ok(done);
            }
            let last = self.follower.last();
            self.follow()?;
            if self.follower.last() != last {
                quiet_since = Instant::now();
            } else if quiet_since.elapsed() > PATIENCE {
                let status = self.publisher.status();
                return Err(format!("nothing came in for {PATIENCE:?} after message {last:?}; {status:?}"));
            }
        }
    }

    /// Ends the run, once the publisher has stopped: takes what has come in last, compares the views again, and checks what
    /// the figures have to come to.
    pub fn end(mut self) -> End {
        if let Err(error) = self.arrive() {
            self.follower.fail(|| error);
        }
        self.follower.compare(&self.master.snapshot());
        let status = self.publisher.status();
        let mut failures = Failures::default();
        let mut accepted = 0;
        for ledger in self.ledgers {
            let mut account = ledger.read();
            accepted += account.accepted();
            failures.merge(std::mem::take(&mut account.failures));
        }
        let (received, missed) = (self.follower.received(), self.follower.missed());
        let heard = self.follower.end(&mut failures);
        let published = status.published_events - self.in_band;
        let lost = status.evicted_events + status.failed_events;
        for (what, left, right) in [
            ("accepted = published + lost", accepted, published + lost + status.abandoned_events),
            ("received = published", received, published),
            ("missed = evicted + failed", missed, lost),
            ("last sequence = messages + evicted + failed", status.last_sequence, status.published_batches + lost),
            ("refused = 0", status.refused_events, 0),
            ("skipped = 0", status.skipped_keyless_events, 0),
        ] {
            if left != right {
                failures.add(|| format!("at the end: {what} does not hold: {left} against {right}"));
            }
        }
        End { accepted, published, received, missed, status, heard, failures }
    }

    /// Takes what has come in, waiting about a millisecond if there is nothing.
    ///
    /// # Errors
    ///
    /// What came in is no message, or nothing can come in any more.
    pub fn follow(&mut self) -> Result<(), String> {
        self.source.receive(&mut self.in_hand)?;
        self.follower.take(&self.in_hand, || self.master.snapshot());
        self.in_hand.clear();
        Ok(())
    }
}
