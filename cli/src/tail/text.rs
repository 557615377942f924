//! Columns for people.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::time::SystemTime;

use kv_events::decode::{Additions, Batch, BlockHash, Envelope, Event, EventError, List, MediumName};
use kv_events::subscriber::{Malformed, Source};
use kv_events::tracker::{GapCause, Verdict};

use super::Show;
use super::stamp;
use super::tally::Tally;
use crate::out;

/// Bad events of one class that follow each other in a message and are shown each.
const BAD_SHOWN: u64 = 100;
/// Bytes of a text from the wire that are shown; no master's key is longer, unless it is told to allow that.
const TEXT_SHOWN: usize = 16 << 10;

pub struct Text<W> {
    output: W,
    colour: bool,
    /// Several endpoints: say whose line it is.
    name_source: bool,
    headed: bool,
}

#[derive(Clone, Copy)]
enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Magenta = 35,
    Grey = 90,
}

impl<W: Write> Text<W> {
    pub fn new(output: W, colour: bool, name_source: bool) -> Self {
        Text { output, colour, name_source, headed: false }
    }

    fn line(&mut self, colour: Colour, source: &Source, text: &str) -> io::Result<()> {
        if self.colour {
            write!(self.output, "\x1b[{}m", colour as u8)?;
        }
        self.output.write_all(text.as_bytes())?;
        if self.colour {
            self.output.write_all(b"\x1b[0m")?;
        }
        if self.name_source || source.peer().is_some() || !source.topic().is_empty() {
            write!(self.output, "  [{}", plain(source.endpoint()))?;
            if let Some(peer) = source.peer() {
                write!(self.output, " {}", plain(peer))?;
            }
            if !source.topic().is_empty() {
                write!(self.output, " {}", plain(&String::from_utf8_lossy(source.topic())))?;
            }
            self.output.write_all(b"]")?;
        }
        self.output.write_all(b"\n")
    }

    fn row(&mut self, colour: Colour, source: &Source, row: Row<'_>) -> io::Result<()> {
        if !self.headed {
            self.headed = true;
            writeln!(
                self.output,
                "{:>10}  {:>16}  {:<8}  {:<7}  WHAT",
                "SEQUENCE", "TIMESTAMP (s)", "EVENT", "MEDIUM"
            )?;
        }
        let Row { sequence, batch, event, medium, what } = row;
        let timestamp = stamp::seconds(batch.timestamp(), SystemTime::now());
        let medium = plain(medium).to_string();
        let text = format!("{sequence:>10}  {timestamp:>16}  {event:<8}  {medium:<7}  {what}");
        self.line(colour, source, text.trim_end())
    }
}

struct Row<'a> {
    sequence: u64,
    batch: &'a Batch<'a>,
    event: &'a str,
    medium: &'a str,
    what: String,
}

impl<W: Write> Show for Text<W> {
    fn notice(&mut self, source: &Source, sequence: u64, verdict: Verdict) -> io::Result<()> {
        let (colour, text) = match verdict {
            Verdict::Started { missed } => {
                let before = match missed {
                    Some(0) => String::new(),
                    Some(missed) => format!(", {missed} missed before it"),
                    None => ", an unknown number missed before it".to_owned(),
                };
                (Colour::Grey, format!("--- started at number {sequence}{before}"))
            }
            Verdict::Gap { from, to, cause } => {
                let cause = match cause {
                    GapCause::Evicted => "lost by the publisher before it sent them",
                    GapCause::Lost => "lost on the way",
                    GapCause::Unknown => "cause unknown",
                };
                let missed = verdict.gap_size();
                (Colour::Red, format!("--- gap: {missed} missed, numbers {from} to {to}, {cause}"))
            }
            Verdict::Restarted { previous, .. } => {
                let text =
                    format!("--- restarted: the publisher began anew, now at number {sequence}, after {previous}");
                (Colour::Magenta, text)
            }
            Verdict::Duplicate => (Colour::Grey, format!("--- duplicate of number {sequence}")),
            Verdict::InOrder => return Ok(()),
        };
        self.line(colour, source, &text)
    }

    fn reconnected(&mut self, source: &Source) -> io::Result<()> {
        self.line(Colour::Grey, source, "--- reconnected: the next number tells whether anything was missed")
    }

    fn malformed(&mut self, source: &Source, sequence: Option<u64>, reason: Malformed) -> io::Result<()> {
        let number = sequence.map_or_else(String::new, |sequence| format!(" number {sequence}"));
        self.line(Colour::Red, source, &format!("--- malformed message{number}: {reason}"))
    }

    fn event(&mut self, source: &Source, sequence: u64, batch: &Batch<'_>, event: &Event<'_>) -> io::Result<()> {
        let name = |medium: Option<MediumName<'_>>| medium.map(|medium| medium.as_str().to_owned()).unwrap_or_default();
        let (colour, medium, what) = match event {
            Event::Stored(stored) => {
                let mut what = subject(stored.envelope.as_ref(), &stored.block_hashes);
                let tokens = stored.token_ids.map(|tokens| tokens.len());
                if let Some(tokens) = tokens.or(stored.mixed_token_ids.map(|tokens| tokens.len())) {
                    let _ = write!(what, ", {tokens} tokens");
                }
                mark(&mut what, stored.group_idx, (stored.lora_id, stored.lora_name), &stored.additions);
                (Colour::Green, name(stored.medium), what)
            }
            Event::Removed(removed) => {
                let mut what = subject(removed.envelope.as_ref(), &removed.block_hashes);
                mark(&mut what, removed.group_idx, (None, removed.lora_name), &removed.additions);
                (Colour::Yellow, name(removed.medium), what)
            }
            Event::Cleared(cleared) => {
                let tenant = cleared.envelope.and_then(|envelope| envelope.tenant_id);
                let mut what = tenant.map_or("everything".to_owned(), |tenant| format!("all of {}", plain(tenant)));
                mark(&mut what, None, (None, cleared.lora_name), &cleared.additions);
                (Colour::Magenta, name(cleared.medium), what)
            }
            _ => (Colour::Grey, String::new(), String::new()),
        };
        self.row(colour, source, Row { sequence, batch, event: event.kind().as_str(), medium: &medium, what })
    }

    fn bad(
        &mut self,
        source: &Source,
        sequence: u64,
        batch: &Batch<'_>,
        error: &EventError,
        before: u64,
    ) -> io::Result<()> {
        if before >= BAD_SHOWN {
            return Ok(());
        }
        // Another engine's kind of event is no damage.
        let (colour, event) =
            if error.foreign_kind().is_some() { (Colour::Grey, "unknown") } else { (Colour::Red, "bad") };
        self.row(colour, source, Row { sequence, batch, event, medium: "", what: error.to_string() })
    }

    fn bad_end(&mut self, source: &Source, count: u64) -> io::Result<()> {
        match count.saturating_sub(BAD_SHOWN) {
            0 => Ok(()),
            more => self.line(Colour::Red, source, &format!("--- {more} more bad events like it in this message")),
        }
    }

    fn heartbeat(&mut self, source: &Source, sequence: u64, batch: &Batch<'_>) -> io::Result<()> {
        self.row(Colour::Grey, source, Row { sequence, batch, event: "(empty)", medium: "", what: String::new() })
    }

    fn summary(&mut self, tally: &Tally) -> io::Result<()> {
        let Tally { messages, events, stored, removed, cleared, errors, malformed, .. } = tally;
        let Tally { gaps, missed, duplicates, restarts, seconds, .. } = tally;
        write!(self.output, "\n{}", plain(&tally.endpoint))?;
        if let Some(peer) = &tally.peer {
            write!(self.output, " {}", plain(peer))?;
        }
        if !tally.topic.is_empty() {
            write!(self.output, " {}", plain(&String::from_utf8_lossy(&tally.topic)))?;
        }
        writeln!(self.output)?;
        write!(self.output, "  {messages} messages, {events} events in {seconds:.1} s")?;
        if *seconds >= 0.1 {
            let (message_rate, event_rate) = (*messages as f64 / seconds, *events as f64 / seconds);
            write!(self.output, " ({message_rate:.1} messages/s, {event_rate:.1} events/s)")?;
        }
        writeln!(self.output)?;
        writeln!(self.output, "  {stored} stored, {removed} removed, {cleared} cleared, {errors} bad")?;
        if let (Some(first), Some(last)) = (tally.first_sequence, tally.last_sequence) {
            writeln!(self.output, "  numbers {first} to {last}")?;
        }
        let why = why(tally);
        writeln!(
            self.output,
            "  {gaps} gaps, {missed} numbers missed{why}, {duplicates} duplicates, {restarts} restarts, {malformed} malformed"
        )
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// A text from the wire as it is shown.
fn plain(text: &str) -> impl fmt::Display {
    out::Plain(text).cut_behind(TEXT_SHOWN)
}

/// Why numbers were missed, and how much that is where it can be known.
fn why(tally: &Tally) -> String {
    let unexplained = tally.unexplained();
    let mut parts = Vec::new();
    if tally.evicted > 0 {
        let share = tally.evicted_events().map_or_else(String::new, |share| format!(", {:.2} % of all", 100.0 * share));
        parts.push(format!("{} events evicted{share}", tally.evicted));
    }
    if tally.lost > 0 {
        parts.push(format!("{} lost on the way", tally.lost));
    }
    match tally.missed_messages() {
        Some(share) if tally.missed > 0 => parts.push(format!("{:.2} % of the messages", 100.0 * share)),
        _ if unexplained > 0 => parts.push(format!("{unexplained} of unknown cause")),
        _ => {}
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Adds the cache group, the adapter, and where the blocks lie as seen from the publisher, where an event says so.
fn mark(what: &mut String, group: Option<u32>, lora: (Option<u64>, Option<&str>), additions: &Additions<'_>) {
    // Writing to a string cannot fail.
    if let Some(group) = group {
        let _ = write!(what, ", group {group}");
    }
    match lora {
        (_, Some(name)) if !name.is_empty() => _ = write!(what, ", LoRA {}", plain(name)),
        (Some(id), _) => _ = write!(what, ", LoRA {id}"),
        _ => {}
    }
    if let Some(locality) = additions.locality {
        let _ = write!(what, ", {}", plain(locality));
    }
}

/// What an event is about: an object, or blocks.
fn subject(envelope: Option<&Envelope<'_>>, hashes: &List<'_, BlockHash<'_>>) -> String {
    let mut what = String::new();
    // Writing to a string can't fail.
    if let Some(envelope) = envelope {
        let _ = write!(what, "{}", plain(envelope.tenant_id.unwrap_or("-")));
        match envelope.object_key {
            Some(key) => _ = write!(what, " {}", plain(key)),
            None => what.push_str(" -"),
        }
        if let Some(group) = envelope.group_id {
            let _ = write!(what, " (group {})", plain(group));
        }
        if hashes.is_empty() {
            return what;
        }
        what.push_str(", ");
    }
    let _ = write!(what, "{} block{}", hashes.len(), if hashes.len() == 1 { "" } else { "s" });
    if let Some(first) = hashes.iter().next() {
        match first.low64() {
            Some(low64) => _ = write!(what, " {low64:016x}"),
            None => what.push_str(" (short hash)"),
        }
        if hashes.len() > 1 {
            what.push_str(" ...");
        }
    }
    what
}
