//! What a run came to.

use hdrhistogram::Histogram;
use serde::Serialize;
use simulated_master::session::End;
use std::fmt;
use std::time::Duration;

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
    /// Whether a signal ended the run early; there only if one did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl Report {
    pub fn new(
        end: &End,
        elapsed: Duration,
        publish_ns: &Histogram<u64>,
        producers: usize,
        interrupted: bool,
    ) -> Report {
        let End { status, heard, .. } = end;
        Report {
            events_accepted: end.accepted,
            events_published: end.published,
            events_evicted: status.evicted_events,
            events_failed: status.failed_events,
            events_abandoned: status.abandoned_events,
            events_skipped: status.skipped_keyless_events,
            events_refused: status.refused_events,
            messages: status.published_batches,
            bytes: status.published_bytes,
            sequence_last: status.last_sequence,
            gaps_seen: heard.gaps_seen,
            events_missed: end.missed,
            events_received: end.received,
            resyncs: heard.resyncs,
            checkpoints: heard.checkpoints,
            publish_ns: publish_ns.into(),
            receive_us: (&heard.receive_us).into(),
            elapsed_s: elapsed.as_secs_f64(),
            producers,
            view: match heard.gaps_seen {
                _ if !end.failures.is_empty() => Verdict::Differs,
                0 => Verdict::Equal,
                _ => Verdict::EqualAfterResync,
            },
            interrupted,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.interrupted {
            writeln!(f, "interrupted by a signal; what follows is true of what was done until then")?;
        }
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
