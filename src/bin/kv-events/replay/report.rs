//! What a run came to.

use super::model::Failures;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::fmt;

/// The subscriber's view against the master's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Equal throughout; nothing was missed.
    Equal,
    /// Equal throughout, with a snapshot taken wherever a gap was told of.
    EqualAfterResync,
    /// Not equal at a checkpoint or at the end, or the numbers were wrong.
    Differs,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Equal => "equal",
            Verdict::EqualAfterResync => "equal_after_resync",
            Verdict::Differs => "differs",
        })
    }
}

/// Some quantiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

impl From<&Histogram<u64>> for Quantiles {
    fn from(histogram: &Histogram<u64>) -> Self {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| histogram.value_at_quantile(quantile));
        Quantiles { p50, p99, p999, max: histogram.max() }
    }
}

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {}, p99 {}, p99.9 {}, max {}", self.p50, self.p99, self.p999, self.max)
    }
}

/// The report, and its JSON form. Events of the probes and the sentinel are in none of the figures; the messages they
/// went in are.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// As counted by the callers.
    pub events_accepted: u64,
    pub events_published: u64,
    pub events_evicted: u64,
    pub events_failed: u64,
    pub events_abandoned: u64,
    pub events_skipped: u64,
    pub events_refused: u64,
    pub messages: u64,
    /// Of payload.
    pub bytes: u64,
    pub sequence_last: u64,
    pub gaps_seen: u64,
    /// The sum of all gaps.
    pub events_missed: u64,
    pub events_received: u64,
    pub resyncs: u64,
    pub checkpoints: u64,
    /// Duration of a call.
    pub publish_ns: Quantiles,
    /// Age of an event when it is received.
    pub receive_us: Quantiles,
    pub elapsed_s: f64,
    pub producers: usize,
    pub view: Verdict,
}

impl Report {
    /// What the figures have to come to, whatever happened.
    pub fn check(&self, failures: &mut Failures) {
        let lost = self.events_evicted + self.events_failed;
        for (what, left, right) in [
            ("accepted = published + lost", self.events_accepted, self.events_published + lost + self.events_abandoned),
            ("received = published", self.events_received, self.events_published),
            ("missed = evicted + failed", self.events_missed, lost),
            ("last sequence = messages + evicted + failed", self.sequence_last, self.messages + lost),
            ("refused = 0", self.events_refused, 0),
            ("skipped = 0", self.events_skipped, 0),
        ] {
            if left != right {
                failures.add(|| format!("at the end: {what} does not hold: {left} against {right}"));
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.events_accepted as f64 / self.elapsed_s;
        writeln!(
            f,
            "accepted    {} events of {} producers in {:.1} s, {rate:.0}/s",
            self.events_accepted, self.producers, self.elapsed_s
        )?;
        writeln!(
            f,
            "published   {} events in {} messages, {} bytes, the last numbered {}",
            self.events_published, self.messages, self.bytes, self.sequence_last
        )?;
        writeln!(
            f,
            "lost        {} evicted, {} failed, {} abandoned; {} skipped, {} refused",
            self.events_evicted, self.events_failed, self.events_abandoned, self.events_skipped, self.events_refused
        )?;
        writeln!(
            f,
            "received    {} events; {} missed in {} gaps, {} snapshots taken",
            self.events_received, self.events_missed, self.gaps_seen, self.resyncs
        )?;
        writeln!(f, "publish ns  {}", self.publish_ns)?;
        writeln!(f, "receive us  {}", self.receive_us)?;
        write!(f, "view        {} at {} checkpoints", self.view, self.checkpoints)
    }
}
