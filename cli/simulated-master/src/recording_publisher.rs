//! What a producer says to the publisher: it numbers, times and counts its own calls.

use crate::{Failures, histogram, record};
use hdrhistogram::Histogram;
use kv_events::{Before, MediaSet, Object, Outcome, Publisher, Sweep, SweepOutcome};
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A producer's own account, as the subscriber's side may read it.
#[derive(Debug, Default)]
pub struct Account {
    /// Object events accepted, as of the producer's last stop at the gate.
    pub objects: u64,
    /// For each `cleared` accepted, how many object events were accepted before it; at once.
    pub cleared_after: Vec<u64>,
    /// Calls that came to something else than they should have.
    pub failures: Failures,
}

/// An [`Account`] with its lock.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Account>);

impl Ledger {
    pub fn read(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Events accepted.
    pub fn accepted(&self) -> u64 {
        self.objects + self.cleared_after.len() as u64
    }
}

/// One producer's way to speak. `group_id` of its object events is `p<producer>:<n>:<ns>`: `n` numbers them from 1 (the
/// two events of a call share the number of the first), `ns` is the time of the call since the start.
#[derive(Debug)]
pub struct RecordingPublisher<'p> {
    publisher: &'p Publisher,
    ledger: &'p Ledger,
    producer: usize,
    start: Instant,
    objects: u64,
    cleared: u64,
    group: String,
    /// Duration of the calls that had something to say.
    pub publish_ns: Histogram<u64>,
}

impl<'p> RecordingPublisher<'p> {
    pub fn new(publisher: &'p Publisher, ledger: &'p Ledger, producer: usize, start: Instant) -> Self {
        RecordingPublisher {
            publisher,
            ledger,
            producer,
            start,
            objects: 0,
            cleared: 0,
            group: String::new(),
            publish_ns: histogram(),
        }
    }

    /// Events accepted so far.
    pub fn accepted(&self) -> u64 {
        self.objects + self.cleared
    }

    /// Writes the count into the ledger.
    pub fn settle(&self) {
        self.ledger.read().objects = self.objects;
    }

    /// Reports what should not have happened.
    pub fn complain(&self, text: impl FnOnce() -> String) {
        self.ledger.read().failures.add(text);
    }

    pub fn committed(&mut self, tenant: &str, key: &str, now: MediaSet) {
        let publisher = self.publisher;
        self.say(now.len(), tenant, key, |object| publisher.committed(object, now));
    }

    pub fn changed(&mut self, tenant: &str, key: &str, before: Before, now: MediaSet) {
        let publisher = self.publisher;
        let events = before.media().minus(now).len() + now.minus(before.media()).len();
        self.say(events, tenant, key, |object| publisher.changed(object, before, now));
    }

    pub fn removed(&mut self, tenant: &str, key: &str, before: Before) {
        let publisher = self.publisher;
        self.say(before.media().len(), tenant, key, |object| publisher.removed(object, before));
    }

    pub fn sweep(&self, tenant: &str) -> Sweep {
        self.publisher.sweep(tenant)
    }

    pub fn swept(&mut self, sweep: &mut Sweep, tenant: &str, key: &str, before: Before) {
        self.say(before.media().len(), tenant, key, |object| sweep.removed(object, before));
    }

    pub fn finish(&mut self, sweep: Sweep) -> SweepOutcome {
        let outcome = sweep.finish();
        if let SweepOutcome::Cleared(Outcome::Accepted { .. }) = outcome {
            self.cleared += 1;
            self.ledger.read().cleared_after.push(self.objects);
        }
        outcome
    }

    fn say(&mut self, events: usize, tenant: &str, key: &str, call: impl FnOnce(&Object<'_>) -> Outcome) {
        let ns = self.start.elapsed().as_nanos();
        self.group.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.group, "p{}:{}:{ns}", self.producer, self.objects + 1);
        let object = Object::new(tenant, key).in_group(&self.group);
        let called = Instant::now();
        let outcome = call(&object);
        let took = called.elapsed();
        let expected = match events {
            0 => Outcome::Nothing,
            events => Outcome::Accepted { events: events as u8 },
        };
        if let Outcome::Accepted { events } = outcome {
            self.objects += u64::from(events);
            record(&mut self.publish_ns, took.as_nanos() as u64);
        }
        if outcome != expected {
            self.complain(|| format!("a call about {key} came to {outcome:?} instead of {expected:?}"));
        }
    }
}
