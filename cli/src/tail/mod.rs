//! `kv-events tail`: what publishers say, as it comes, and what of it got lost.

mod args;
mod json;
mod presence;
mod stamp;
mod tally;
mod text;
mod top;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use kv_events::decode::{Batch, Event, EventError};
use kv_events::subscriber::{Delivery, Malformed, Message, RecvError, Source, Subscriber};
use kv_events::tracker::Verdict;
use presence::Presence;
use tally::{Tallies, Tally};

pub use args::Args;

use crate::out::{self, Face, Output};
use crate::signals::{self, Stop};

/// Events of one message between two looks at whether the end was asked for.
const EVENTS_A_LOOK: usize = 64;

/// How long it takes at most until something of a message that is still worked on is seen.
const SEEN_AFTER: Duration = Duration::from_millis(200);

/// How what arrives is shown.
trait Show {
    fn notice(&mut self, source: &Source, sequence: u64, verdict: Verdict) -> io::Result<()>;
    fn reconnected(&mut self, source: &Source) -> io::Result<()>;
    fn malformed(&mut self, source: &Source, sequence: Option<u64>, reason: Malformed) -> io::Result<()>;
    fn event(&mut self, source: &Source, sequence: u64, batch: &Batch<'_>, event: &Event<'_>) -> io::Result<()>;
    /// A bad event, behind so many of the same class in the same message.
    fn bad(
        &mut self,
        source: &Source,
        sequence: u64,
        batch: &Batch<'_>,
        error: &EventError,
        before: u64,
    ) -> io::Result<()>;
    /// The end of a run of so many bad events of one class.
    fn bad_end(&mut self, source: &Source, count: u64) -> io::Result<()>;
    /// A batch without events.
    fn heartbeat(&mut self, source: &Source, sequence: u64, batch: &Batch<'_>) -> io::Result<()>;
    fn summary(&mut self, tally: &Tally) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::default();
    let output = Output::open(&stop).context("cannot open the standard output")?;
    let begin = if args.bind { Subscriber::bind } else { Subscriber::connect };
    let mut subscriber = begin(&args.endpoints, &args.settings())?;
    for bound in subscriber.endpoints().filter(|_| args.bind) {
        out::say(format_args!("tail: publishers may connect to {bound}"));
    }
    let handle = subscriber.stop_handle();
    signals::catch(&stop, move || handle.stop(), top::restore_terminal)?;
    let face = Face::of_stdout();
    let mut tallies = Tallies::new(&args.endpoints, &args.topic, args.limit);
    let (ended, mut show) = if args.top {
        let (ended, output) = top::watch(&mut subscriber, &mut tallies, face, output);
        (ended, show(args, face, output?, &stop))
    } else {
        let presence =
            Presence::new(&args.endpoints, args.bind, &args.topic, subscriber.status_handle(), Instant::now());
        let mut show = show(args, face, output, &stop);
        (watch(&mut subscriber, show.as_mut(), &mut tallies, presence, &stop), show)
    };
    let (written, failed) = match ended {
        Ok(()) => (summarise(show.as_mut(), &tallies), None),
        // What was seen before is worth telling all the same.
        Err(Ended::Input(error)) => (summarise(show.as_mut(), &tallies), Some(error)),
        Err(Ended::Output(error)) => (Err(error), None),
    };
    match written {
        // Once nobody reads any more there is nothing left to say, and nobody to say it to.
        Err(error) if !out::is_gone(&error) => return Err(error).context("cannot write"),
        _ => {}
    }
    failed.map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

fn show(args: &Args, face: Face, output: Output, stop: &Stop) -> Box<dyn Show> {
    if args.json {
        Box::new(json::Json::new(output, args.topic.clone(), face.is_terminal, stop.clone()))
    } else {
        Box::new(text::Text::new(output, face.has_colour, args.endpoints.len() > 1))
    }
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
    stop: &Stop,
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
            Ok(delivery) => take(&delivery, show, tallies, stop)?,
            Err(RecvError::Empty) => {}
            Err(RecvError::Stopped) => return Ok(()),
            Err(error) => return Err(Ended::Input(error)),
        }
        for line in presence.look() {
            // Events stand on the standard output alone.
            out::say(format_args!("tail: {line}"));
        }
    }
    Ok(())
}

/// Shows one delivery and counts it, up to the limit, or until the end is asked for.
fn take(delivery: &Delivery, show: &mut dyn Show, tallies: &mut Tallies, stop: &Stop) -> io::Result<()> {
    let place = tallies.count(delivery);
    match delivery {
        Delivery::Notice { source, sequence, verdict } => show.notice(source, *sequence, *verdict),
        Delivery::Reconnected { source } => show.reconnected(source),
        Delivery::Malformed { source, sequence, reason } => show.malformed(source, *sequence, *reason),
        Delivery::Message(message) => {
            let (source, sequence, batch) = (message.source(), message.sequence(), message.batch());
            if batch.is_empty() {
                show.heartbeat(source, sequence, &batch)?;
            }
            let (mut run, mut flushed) = ((None, 0), Instant::now());
            each_event(message, tallies, place, |_, event, at| {
                let class = event.as_ref().err().map(EventError::class);
                if class != run.0 {
                    if run.0.is_some() {
                        show.bad_end(source, run.1)?;
                    }
                    run = (class, 0);
                }
                match event {
                    Ok(event) => show.event(source, sequence, &batch, event)?,
                    Err(error) => show.bad(source, sequence, &batch, error, run.1)?,
                }
                run.1 += 1;
                if at % EVENTS_A_LOOK != 0 {
                    return Ok(true);
                }
                if flushed.elapsed() >= SEEN_AFTER {
                    flushed = Instant::now();
                    show.flush()?;
                }
                Ok(!stop.is_raised())
            })?;
            if run.0.is_some() { show.bad_end(source, run.1) } else { Ok(()) }
        }
    }
}

/// Counts the events of a message up to the limit, and has each of them looked at, with its place from 1. That may end it.
fn each_event(
    message: &Message,
    tallies: &mut Tallies,
    place: usize,
    mut look: impl FnMut(&Tallies, &Result<Event<'_>, EventError>, usize) -> io::Result<bool>,
) -> io::Result<()> {
    for (event, at) in message.batch().events().zip(1..) {
        let is_full = tallies.count_event(place, message.is_duplicate(), &event);
        if !look(tallies, &event, at)? || is_full {
            break;
        }
    }
    Ok(())
}

fn summarise(show: &mut dyn Show, tallies: &Tallies) -> io::Result<()> {
    for (_, tally) in tallies.told() {
        show.summary(tally)?;
    }
    show.flush()
}
