//! `kv-events tail`: what publishers say, as it comes, and what of it got lost.

mod json;
mod tally;
mod text;

use std::io::{self, BufWriter, IsTerminal};
use std::process::ExitCode;

use anyhow::Context;
use kv_events::decode::{Batch, Event, EventError};
use kv_events::subscriber::{Delivery, Malformed, RecvError, Settings, Source, Subscriber, TopicFilter};
use kv_events::tracker::{Base, Verdict};
use tally::{Tallies, Tally};

use crate::decode::is_closed;

/// Print events as they come, with gaps and restarts marked before the message that shows them.
///
/// A summary follows for each source (endpoint and topic) at the end: after --limit events, or on Ctrl-C. Publishers need
/// not be there yet, and may come and go.
#[derive(clap::Args)]
pub struct Args {
    /// Publishers to connect to, like `tcp://127.0.0.1:5557`.
    #[arg(required = true, value_name = "ENDPOINT")]
    endpoints: Vec<String>,
    /// JSON lines instead of columns.
    #[arg(long)]
    json: bool,
    /// Who publishes: tells where numbers begin, at 0 (engine) or 1 (master). `auto` goes by a source's first events.
    #[arg(long, value_enum, default_value = "auto")]
    source: Kind,
    /// The number that publishers begin at, if not what --source says; it tells how much was missed before the start.
    #[arg(long, value_enum, default_value = "auto")]
    base: Begin,
    /// Topic to subscribe to; every topic that begins with it is taken.
    #[arg(long, default_value = "")]
    topic: String,
    /// End after this many events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print the events of duplicates too; they still count as duplicates only.
    #[arg(long)]
    duplicates: bool,
}

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
            std::process::exit(130);
        }
        stop.stop();
    })
    .context("cannot catch signals")?;
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let output = BufWriter::new(stdout.lock());
    let mut show: Box<dyn Show> = if args.json {
        Box::new(json::Json::new(output, args.topic.clone()))
    } else {
        let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Box::new(text::Text::new(output, colour, args.endpoints.len() > 1))
    };
    let mut tallies = Tallies::new(&args.endpoints, &args.topic);
    let (written, failed) = match watch(&mut subscriber, show.as_mut(), &mut tallies, args.limit) {
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

/// Shows everything until the limit is reached or the subscriber is stopped.
fn watch(
    subscriber: &mut Subscriber,
    show: &mut dyn Show,
    tallies: &mut Tallies,
    limit: Option<u64>,
) -> Result<(), Ended> {
    let mut left = limit;
    loop {
        let delivery = match subscriber.try_recv() {
            Err(RecvError::Empty) => {
                show.flush()?;
                subscriber.recv()
            }
            other => other,
        };
        match delivery {
            Ok(delivery) => {
                if take(&delivery, show, tallies, &mut left)? {
                    return Ok(());
                }
            }
            Err(RecvError::Stopped) => return Ok(()),
            Err(error) => return Err(Ended::Input(error)),
        }
    }
}

/// Shows one delivery and counts it. Whether the limit is reached.
fn take(delivery: &Delivery, show: &mut dyn Show, tallies: &mut Tallies, left: &mut Option<u64>) -> io::Result<bool> {
    match delivery {
        Delivery::Notice { source, sequence, verdict } => {
            tallies.of(source).notice(*sequence, *verdict);
            show.notice(source, *sequence, *verdict)?;
        }
        Delivery::Malformed { source, sequence, reason } => {
            tallies.of(source).malformed(*sequence);
            show.malformed(source, *sequence, *reason)?;
        }
        Delivery::Message(message) => {
            let (source, sequence, batch) = (message.source(), message.sequence(), message.batch());
            let tally = tallies.of(source);
            tally.message(sequence, message.is_duplicate());
            if batch.is_empty() {
                show.heartbeat(source, sequence, &batch)?;
            }
            for event in batch.events() {
                if !message.is_duplicate() {
                    tally.event(&event);
                }
                show.event(source, sequence, &batch, &event)?;
                if let Some(left) = left {
                    *left -= 1;
                    if *left == 0 {
                        return Ok(true);
                    }
                }
            }
        }
    }
    Ok(false)
}

fn summarise(show: &mut dyn Show, tallies: &Tallies) -> io::Result<()> {
    for tally in tallies.told() {
        show.summary(tally)?;
    }
    show.flush()
}
