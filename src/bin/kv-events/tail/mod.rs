//! `kv-events tail`: what publishers say, as it comes, and what of it got lost.

mod json;
mod plain;
mod presence;
mod stamp;
mod tally;
mod text;
mod top;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use kv_events::decode::{Batch, Event, EventError};
use kv_events::subscriber::{Delivery, Malformed, RecvError, Settings, Source, Subscriber, TopicFilter};
use kv_events::tracker::{Base, Verdict};
use presence::Presence;
use tally::{Tallies, Tally};

use crate::decode::is_closed;

/// Print events as they come, with gaps and restarts marked before the message that shows them.
///
/// A summary follows for each source (endpoint and topic) at the end: after --limit events, or on Ctrl-C. Publishers need
/// not be there yet, and may come and go; which of them do not answer, or have said nothing yet, is told on the standard
/// error. Text from the wire is printed with control characters escaped.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Publishers to connect to, like `tcp://127.0.0.1:5557` or `ipc:///run/kv-events.sock`.
    #[arg(required = true, value_name = "ENDPOINT")]
    endpoints: Vec<String>,
    /// JSON lines instead of columns [default: columns].
    ///
    /// Timestamps are as they were sent there: by masters in ms, as an integer; by engines in s, as a float. In columns
    /// both are in s.
    #[arg(long)]
    json: bool,
    /// Figures on one screen instead of events: rates, losses, lag, media, tenants; q or Ctrl-C leaves.
    ///
    /// Rates, and the median and worst lag, are those of the last second. Lag is this machine's clock minus a message's
    /// timestamp, so it also shows how far apart two machines' clocks are; `-` where the timestamp is no time of day.
    /// MISSED counts numbers, each of which is a message or an event. EVICTED% is the share of a master's events that it lost
    /// before it sent them, of those and the ones received; `-` where events have no ids, which would tell (engines).
    /// Without a terminal (a pipe, a file, TERM=dumb): one line per source and second.
    #[arg(long, conflicts_with_all = ["json", "duplicates"])]
    top: bool,
    /// Who publishes: tells where numbers begin, at 0 (`engine`: vLLM, SGLang and their like) or 1 (`master`). `auto` goes
    /// by a source's first events.
    ///
    /// It tells how many messages were missed before the first one seen, and nothing else: events of both are read in
    /// any case.
    #[arg(long, value_enum, default_value = "auto")]
    source: Kind,
    /// The number that publishers begin at, if not what --source says (`auto`); it tells how much was missed before the
    /// start.
    #[arg(long, value_enum, default_value = "auto")]
    base: Begin,
    /// Topic to subscribe to; every topic that begins with it is taken, and with the default all are.
    ///
    /// Masters publish under the empty topic, engines under the one they are configured with: `--topic kv-events`.
    #[arg(long, default_value = "")]
    topic: String,
    /// End after this many events [default: never].
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print the events of duplicates too [default: only that there was one]; they still count as duplicates only.
    #[arg(long)]
    duplicates: bool,
}

const EXAMPLES: &str = r#"Examples:
  A master, as figures on one screen:
      kv-events tail --top tcp://127.0.0.1:5557

  vLLM, started with
  --kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", "topic": "kv-events"}':
      kv-events tail --source engine --topic kv-events tcp://127.0.0.1:5557

  SGLang, started with
  --kv-events-config '{"publisher": "zmq", "endpoint": "tcp://*:5557", "topic": "kv-events"}':
      kv-events tail --source engine --topic kv-events tcp://127.0.0.1:5557

  With data parallelism each rank has a port of its own, one after the other: name them all.

Lines of --json, by their field `line`. All have `source`, the endpoint, and `topic` if it is not the one of --topic:
  started     sequence: the first number seen; missed: numbers before it, null if unknown
  event       sequence, timestamp, data_parallel_rank; event: its type and fields, or {"error": CLASS} if it is bad
  gap         from, to: the numbers missing; missed: how many; cause: evicted (lost before they were sent, each an event),
              lost (on the way) or unknown
  restarted   previous: the last number of the publisher's life before; sequence: the first seen of the new one
  duplicate   sequence
  malformed   reason; sequence, if it could be read
  summary     one per source, at the end: messages, events, stored, removed, cleared, errors (bad events), malformed, gaps,
              missed (numbers in gaps), duplicates, restarts, first_sequence, last_sequence, seconds
Messages without events (heartbeats) have no line; they count as messages."#;

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    Auto,
    Engine,
    Master,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Begin {
    #[value(name = "0")]
    Zero,
    #[value(name = "1")]
    One,
    Auto,
}

/// How what arrives is shown.
trait Show {
    fn notice(&mut self, source: &Source, sequence: u64, verdict: Verdict) -> io::Result<()>;
    fn malformed(&mut self, source: &Source, sequence: Option<u64>, reason: Malformed) -> io::Result<()>;
    fn event(
        &mut self,
        source: &Source,
        sequence: u64,
        batch: &Batch<'_>,
        event: &Result<Event<'_>, EventError>,
    ) -> io::Result<()>;
    /// A batch without events.
    fn heartbeat(&mut self, source: &Source, sequence: u64, batch: &Batch<'_>) -> io::Result<()>;
    fn summary(&mut self, tally: &Tally) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let base = match (args.base, args.source) {
        (Begin::Zero, _) | (Begin::Auto, Kind::Engine) => Base::ENGINE,
        (Begin::One, _) | (Begin::Auto, Kind::Master) => Base::MASTER,
        (Begin::Auto, Kind::Auto) => Base::Auto,
    };
    let settings = Settings {
        topic: TopicFilter::Prefix(args.topic.clone().into_bytes()),
        base,
        deliver_duplicates: args.duplicates,
        ..Settings::default()
    };
    let mut subscriber = Subscriber::connect(&args.endpoints, &settings)?;
    let stop = subscriber.stop_handle();
    ctrlc::set_handler(move || {
        // A second signal is for whoever can't wait for the summary, or for a reader of our output that hangs.
        if stop.is_stopped() {
            top::restore_terminal();
            std::process::exit(130);
        }
        stop.stop();
    })
    .context("cannot catch signals")?;
    let is_terminal = io::stdout().is_terminal();
    let has_colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let output = BufWriter::new(io::stdout());
    let mut show: Box<dyn Show> = if args.json {
        Box::new(json::Json::new(output, args.topic.clone()))
    } else {
        Box::new(text::Text::new(output, has_colour, args.endpoints.len() > 1))
    };
    let mut tallies = Tallies::new(&args.endpoints, &args.topic, args.limit);
    let ended = if args.top {
        let is_screen = is_terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        top::watch(&mut subscriber, &mut tallies, is_screen.then_some(has_colour))
    } else {
        let presence = Presence::new(&args.endpoints, &args.topic, subscriber.status_handle(), Instant::now());
        watch(&mut subscriber, show.as_mut(), &mut tallies, presence)
    };
    let (written, failed) = match ended {
        Ok(()) => (summarise(show.as_mut(), &tallies), None),
        // What was seen before is worth telling all the same.
        Err(Ended::Input(error)) => (summarise(show.as_mut(), &tallies), Some(error)),
        Err(Ended::Output(error)) => (Err(error), None),
    };
    // Once nobody reads any more there is nothing left to say, and nobody to say it to.
    if !is_closed(&written) {
        written.context("cannot write")?;
    }
    failed.map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

enum Ended {
    Output(io::Error),
    Input(RecvError),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Output(error)
    }
}

/// Shows everything until the limit is reached or the subscriber is stopped. Who is not there is told beside it.
fn watch(
    subscriber: &mut Subscriber,
    show: &mut dyn Show,
    tallies: &mut Tallies,
    mut presence: Presence,
) -> Result<(), Ended> {
    while !tallies.is_full() {
        let delivery = match subscriber.try_recv() {
            Err(RecvError::Empty) => {
                show.flush()?;
                subscriber.recv_timeout(presence.wait())
            }
            other => other,
        };
        match delivery {
            Ok(delivery) => take(&delivery, show, tallies)?,
            Err(RecvError::Empty) => {}
            Err(RecvError::Stopped) => return Ok(()),
            Err(error) => return Err(Ended::Input(error)),
        }
        for line in presence.look() {
            // Events stand on the standard output alone; where nobody can be told of this nothing is lost.
            let _ = writeln!(io::stderr(), "tail: {line}");
        }
    }
    Ok(())
}

/// Shows one delivery and counts it.
fn take(delivery: &Delivery, show: &mut dyn Show, tallies: &mut Tallies) -> io::Result<()> {
    match delivery {
        Delivery::Notice { source, sequence, verdict } => show.notice(source, *sequence, *verdict)?,
        Delivery::Malformed { source, sequence, reason } => show.malformed(source, *sequence, *reason)?,
        Delivery::Message(message) if message.batch().is_empty() => {
            show.heartbeat(message.source(), message.sequence(), &message.batch())?;
        }
        Delivery::Message(_) => {}
    }
    tallies
        .count(delivery, |message, event| show.event(message.source(), message.sequence(), &message.batch(), event))?;
    Ok(())
}

fn summarise(show: &mut dyn Show, tallies: &Tallies) -> io::Result<()> {
    for (_, tally) in tallies.told() {
        show.summary(tally)?;
    }
    show.flush()
}
