//! A master in small, what it says to its publisher, and a subscriber that follows it and checks every word. The
//! replay and the convergence test drive the same parts.
#![allow(missing_docs, missing_debug_implementations, reason = "not published; only this workspace uses it")]

pub mod checkpoint;
pub mod follower;
pub mod master;
pub mod numbering;
pub mod operations;
pub mod recording_publisher;
pub mod session;
mod shard;
#[cfg(test)]
mod tests;
pub mod view;
pub mod workload;

use hdrhistogram::Histogram;
use std::fmt;

/// Tenant of the probes and the sentinel, which belong to no figure and to no view.
pub const IN_BAND_TENANT: &str = "kv-events-replay";
/// Object key of a probe: has the subscriber joined?
pub const PROBE: &str = "probe";
/// Object key of the sentinel: nothing follows.
pub const SENTINEL: &str = "sentinel";

/// A histogram to three digits that grows with what it is given.
pub fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are a valid precision")
}

/// Counts one value in a histogram of that kind.
fn record(histogram: &mut Histogram<u64>, value: u64) {
    histogram.record(value).expect("a histogram that grows takes every value");
}

/// What was found to be wrong: how often, and the first few in words.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    count: u64,
    first: Vec<String>,
}

impl Failures {
    const TOLD: usize = 10;

    pub fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push(text());
        }
    }

    pub fn merge(&mut self, other: Failures) {
        self.count += other.count;
        let room = Self::TOLD - self.first.len();
        self.first.extend(other.first.into_iter().take(room));
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for text in &self.first {
            writeln!(f, "  {text}")?;
        }
        let untold = self.count - self.first.len() as u64;
        if untold > 0 { writeln!(f, "  and {untold} more") } else { Ok(()) }
    }
}
