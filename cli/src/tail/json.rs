//! One JSON object a line.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use kv_events::decode::{Batch, Event, EventError, Timestamp};
use kv_events::subscriber::{Malformed, Source};
use kv_events::tracker::Verdict;
use serde::Serialize;

use super::Show;
use super::tally::Tally;
use crate::out;
use crate::signals::Stop;

pub struct Json<W> {
    output: W,
    /// The topic that was asked for; others are named.
    topic: String,
    for_terminal: bool,
    /// The line of the last bad event.
    bad: Vec<u8>,
    stop: Stop,
}

#[derive(Serialize)]
struct Line<'a, T> {
    line: &'static str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<Cow<'a, str>>,
    #[serde(flatten)]
    rest: T,
}

impl<'a, T> Line<'a, T> {
    /// A line about a source; its topic is named if it is not the one that was `asked` for.
    fn new(line: &'static str, (source, peer, topic): Whose<'a>, asked: &str, rest: T) -> Self {
        let topic = (topic != asked.as_bytes()).then(|| String::from_utf8_lossy(topic));
        Line { line, source, peer, topic, rest }
    }
}

/// How long an event may still take to be written once the end was asked for.
const WHOLE_LINE: Duration = Duration::from_millis(100);
/// Bytes written between two looks at whether it was.
const BYTES_A_LOOK: usize = 16 << 10;

/// The line of one event, which is as long as the event wants: it is cut if the end is asked for meanwhile.
struct Cuttable<'a, W> {
    output: &'a mut W,
    stop: &'a Stop,
    /// Since the last look.
    written: usize,
    asked: Option<Instant>,
    is_cut: bool,
}

impl<W: Write> Write for Cuttable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(BYTES_A_LOOK)];
        self.written += bytes.len();
        if self.written >= BYTES_A_LOOK {
            self.written = 0;
            self.is_cut = self.stop.is_raised() && self.asked.get_or_insert_with(Instant::now).elapsed() >= WHOLE_LINE;
        }
        if self.is_cut { Err(io::Error::other("cut")) } else { self.output.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[derive(Serialize)]
struct Started {
    sequence: u64,
    missed: Option<u64>,
}

#[derive(Serialize)]
struct Gap {
    from: u64,
    to: u64,
    missed: u64,
    cause: &'static str,
}

#[derive(Serialize)]
struct Restarted {
    previous: u64,
    sequence: u64,
}

#[derive(Serialize)]
struct Duplicate {
    sequence: u64,
}

#[derive(Serialize)]
struct Bad {
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct OneEvent<'a, E> {
    sequence: u64,
    timestamp: Timestamp,
    data_parallel_rank: Option<i128>,
    event: &'a E,
}

impl<'a, E> OneEvent<'a, E> {
    fn new(sequence: u64, batch: &Batch<'_>, event: &'a E) -> Self {
        let (timestamp, data_parallel_rank) = (batch.timestamp(), batch.data_parallel_rank());
        OneEvent { sequence, timestamp, data_parallel_rank, event }
    }
}

/// An engine's clear, with what its normal form leaves out: who takes it for a clear of all media forgets too much.
#[derive(Serialize)]
struct EngineClear<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    medium: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_salt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locality: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ownership: Option<&'a str>,
}

impl<'a> EngineClear<'a> {
    fn of(event: &Event<'a>) -> Option<Self> {
        let Event::Cleared(cleared) = event else { return None };
        let added = &cleared.additions;
        cleared.envelope.is_none().then(|| EngineClear {
            r#type: event.kind().as_str(),
            medium: cleared.medium.map(|medium| medium.as_str()),
            source_kind: added.source_kind,
            cache_salt: added.cache_salt,
            session_id: added.session_id,
            locality: added.locality,
            ownership: added.ownership,
        })
    }
}

/// Endpoint, peer and topic of whom a line is about.
type Whose<'a> = (&'a str, Option<&'a str>, &'a [u8]);

fn whose(source: &Source) -> Whose<'_> {
    (source.endpoint(), source.peer(), source.topic())
}

impl<W: Write> Json<W> {
    pub fn new(output: W, topic: String, for_terminal: bool, stop: Stop) -> Self {
        Json { output, topic, for_terminal, bad: Vec::new(), stop }
    }

    fn write(&mut self, line: &'static str, of: Whose<'_>, rest: impl Serialize) -> io::Result<()> {
        let json = Line::new(line, of, &self.topic, rest);
        out::write_json(&mut self.output, &json, self.for_terminal)?;
        self.output.write_all(b"\n")
    }
}

impl<W: Write> Show for Json<W> {
    fn notice(&mut self, source: &Source, sequence: u64, verdict: Verdict) -> io::Result<()> {
        let of = whose(source);
        match verdict {
            Verdict::Started { missed } => self.write("started", of, Started { sequence, missed }),
            Verdict::Gap { from, to, cause } => {
                let gap = Gap { from, to, missed: verdict.gap_size(), cause: cause.as_str() };
                self.write("gap", of, gap)
            }
            Verdict::Restarted { previous, .. } => self.write("restarted", of, Restarted { previous, sequence }),
            Verdict::Duplicate => self.write("duplicate", of, Duplicate { sequence }),
            Verdict::InOrder => Ok(()),
        }
    }

    fn reconnected(&mut self, source: &Source) -> io::Result<()> {
        self.write("reconnected", whose(source), Nothing {})
    }

    fn malformed(&mut self, source: &Source, sequence: Option<u64>, reason: Malformed) -> io::Result<()> {
        let (bytes, limit) = match reason {
            Malformed::TooLarge { bytes, limit } => (Some(bytes), Some(limit)),
            _ => (None, None),
        };
        let bad = Bad { sequence, reason: reason.as_str(), bytes, limit };
        self.write("malformed", whose(source), bad)
    }

    fn event(&mut self, source: &Source, sequence: u64, batch: &Batch<'_>, event: &Event<'_>) -> io::Result<()> {
        // Borrowed apart from the output, which the line is written to.
        let Json { output, topic, for_terminal, stop, .. } = self;
        let mut line = Cuttable { output, stop, written: 0, asked: None, is_cut: false };
        let written = match EngineClear::of(event) {
            Some(event) => {
                let rest = OneEvent::new(sequence, batch, &event);
                out::write_json(&mut line, &Line::new("event", whose(source), topic, rest), *for_terminal)
            }
            None => {
                let rest = OneEvent::new(sequence, batch, event);
                out::write_json(&mut line, &Line::new("event", whose(source), topic, rest), *for_terminal)
            }
        };
        if line.is_cut {
            out::say("tail: the line of an event is cut, since the end was asked for");
        } else {
            written?;
        }
        self.output.write_all(b"\n")
    }

    fn bad(
        &mut self,
        source: &Source,
        sequence: u64,
        batch: &Batch<'_>,
        error: &EventError,
        before: u64,
    ) -> io::Result<()> {
        // All that a line tells of it is its class, so those of a run are alike.
        if before == 0 {
            let mut line = std::mem::take(&mut self.bad);
            line.clear();
            let rest = OneEvent::new(sequence, batch, error);
            let json = Line::new("event", whose(source), &self.topic, rest);
            out::write_json(&mut line, &json, self.for_terminal)?;
            line.push(b'\n');
            self.bad = line;
        }
        self.output.write_all(&self.bad)
    }

    fn bad_end(&mut self, _: &Source, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn heartbeat(&mut self, _: &Source, _: u64, _: &Batch<'_>) -> io::Result<()> {
        Ok(())
    }

    fn summary(&mut self, tally: &Tally) -> io::Result<()> {
        self.write("summary", (&tally.endpoint, tally.peer.as_deref(), &tally.topic), tally)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn clear(event: &[u8]) -> Option<Value> {
        let event = Event::parse(event).unwrap();
        EngineClear::of(&event).map(|clear| serde_json::to_value(clear).unwrap())
    }

    #[test]
    fn an_engine_s_clear_tells_of_which_medium_and_from_where() {
        assert_eq!(clear(b"\x91\xb0AllBlocksCleared"), Some(json!({"type": "cleared"})));
        assert_eq!(
            clear(b"\x93\xb0AllBlocksCleared\xa3GPU\xa9connector"),
            Some(json!({"type": "cleared", "medium": "GPU", "source_kind": "connector"}))
        );
        assert_eq!(
            clear(b"\x83\xa4type\xb0AllBlocksCleared\xa6medium\xa3CPU\xa8locality\xa5LOCAL"),
            Some(json!({"type": "cleared", "medium": "CPU", "locality": "LOCAL"}))
        );
        // A store's says so itself.
        assert_eq!(clear(b"\x82\xaaevent_type\xa7cleared\xa6medium\xa3cpu"), None);
        assert_eq!(clear(b"\x92\xacBlockRemoved\x90"), None);
    }
}
