//! The producers: threads that replay the trace at a pace, and stop at the gate between.

use super::trace::Trace;
use crate::signals::Stop;
use hdrhistogram::Histogram;
use kv_events::Publisher;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use simulated_master::checkpoint::CheckpointBarrier;
use simulated_master::master::Master;
use simulated_master::operations::Worker;
use simulated_master::recording_publisher::{Ledger, RecordingPublisher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Stops at the gate in a run, at least.
const CHECKPOINTS: usize = 60;
/// Requests between two stops, at most, so that a long run that goes wrong is found out soon.
const REQUESTS: usize = 200;
/// One touch in so many is followed by a chore.
const CHORE_EVERY: u32 = 12;
/// How far a producer that was held up may run ahead of the pace to make up for it.
const CATCH_UP: Duration = Duration::from_millis(10);

/// What all producers share.
#[derive(Debug)]
pub struct Job<'a> {
    pub publisher: &'a Publisher,
    pub master: &'a Master,
    pub gate: &'a CheckpointBarrier,
    pub trace: &'a Trace,
    pub loops: usize,
    /// Time between two events of one producer; zero for as fast as it goes.
    pub interval: Duration,
    pub seed: u64,
    pub start: Instant,
    /// The next request nobody has taken yet, counting through all loops.
    pub next: Mutex<usize>,
    /// Once it is raised no request is taken any more, so that all producers come to the gate at once.
    pub stop: &'a Stop,
}

/// Stops at the gate, in a run of so many requests.
pub fn checkpoints(requests: usize) -> usize {
    CHECKPOINTS.max(requests.div_ceil(REQUESTS))
}

impl Job<'_> {
    /// Requests in all loops.
    fn requests(&self) -> usize {
        self.trace.len() * self.loops
    }

    /// Stops at the gate.
    pub fn checkpoints(&self) -> usize {
        checkpoints(self.requests())
    }

    /// Whether the end was asked for before all requests were taken.
    pub fn is_cut_short(&self) -> bool {
        let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.is_raised() && next < self.requests()
    }

    /// One producer's life. Returns the durations of its calls, ns.
    pub fn produce(&self, producer: usize, ledger: &Ledger) -> Histogram<u64> {
        let _guard = self.gate.guard();
        let mut worker = Worker {
            master: self.master,
            voice: RecordingPublisher::new(self.publisher, ledger, producer, self.start),
            rng: SmallRng::seed_from_u64(self.seed.wrapping_add(producer as u64)),
            chore_every: CHORE_EVERY,
        };
        let (requests, checkpoints) = (self.requests(), self.checkpoints());
        for checkpoint in 1..=checkpoints {
            let end = (requests as u128 * checkpoint as u128 / checkpoints as u128) as usize;
            let mut due = Instant::now();
            let mut accepted = worker.voice.accepted();
            while let Some(request) = self.next_before(end) {
                worker.request(&self.trace[request % self.trace.len()]);
                let now_accepted = worker.voice.accepted();
                due = self.keep_pace(due, now_accepted - accepted);
                accepted = now_accepted;
            }
            // Swept between all checkpoints, whatever the trace holds.
            if producer == 0 {
                worker.solo_rounds();
            }
            worker.voice.settle();
            if !self.gate.wait() {
                break;
            }
        }
        worker.voice.publish_ns
    }

    /// Takes the next request, so that all producers come to the gate at about the same time.
    fn next_before(&self, end: usize) -> Option<usize> {
        if self.stop.is_raised() {
            return None;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let request = *next;
        (request < end).then(|| {
            *next += 1;
            request
        })
    }

    /// Waits until the time for these events is over, or the end was asked for; returns when the next are due.
    fn keep_pace(&self, due: Instant, events: u64) -> Instant {
        if self.interval.is_zero() {
            return due;
        }
        let due = due + self.interval.mul_f64(events as f64);
        match due.checked_duration_since(Instant::now()) {
            Some(early) => {
                self.stop.wait(early);
                due
            }
            None => due.max(Instant::now() - CATCH_UP),
        }
    }
}
