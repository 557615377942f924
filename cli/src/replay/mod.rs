//! `kv-events replay`: real traffic through a small master and the real publisher, to a subscriber that must end up with
//! exactly the master's view.

mod driver;
mod progress;
mod report;
mod subscriber;
mod trace;

use anyhow::{Context, anyhow};
use driver::Job;
use hdrhistogram::Histogram;
use kv_events::{Config, Publisher, Status, TransportKind, WaitStrategy};
use progress::Progress;
use report::{Report, Verdict};
use simulated_master::checkpoint::CheckpointBarrier;
use simulated_master::master::Master;
use simulated_master::recording_publisher::Ledger;
use simulated_master::session::Session;
use simulated_master::{PROBE, SENTINEL};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use subscriber::Subscriber;

use crate::input;
use crate::out::{self, Output};
use crate::signals::{self, Stop};

/// How long a probe or the sentinel is waited for before another is sent.
const IN_BAND_INTERVAL: Duration = Duration::from_millis(50);
/// How long the subscriber may take to join, or the sentinel to arrive.
const IN_BAND_PATIENCE: Duration = Duration::from_secs(20);
/// How long the subscriber may still take to join once the end was asked for: without it there is no report.
const JOIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long stop may take.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// Replay requests against a small master that publishes what happens to its cache, follow the stream as a subscriber on
/// a real socket, and compare the two: at every message, at 60 or more checkpoints, and at the end.
///
/// On a sequence gap the subscriber takes a snapshot from the master, at no other time. The exit status is not 0 if its
/// view differs from the master's anywhere, or if a number in the stream is not where it should be; such a run ends at the
/// next checkpoint. Ctrl-C ends a run early: what was done until then is compared and reported.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    /// Requests to replay, JSON lines {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [ids]};
    /// the pace is that of --rate [default: a built-in workload of 12000 requests]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Longest line of the trace, in bytes (or like 64K, 64M, 1G); a longer one is an error
    #[arg(long, value_name = "BYTES", default_value = input::MAX_LINE, value_parser = input::bytes)]
    max_line: usize,
    /// Replay so many times in a row
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = count(1..=1_000_000))]
    loops: u64,
    /// Where to publish; port 0 is a free one. The standard error tells which it is
    #[arg(long, value_name = "ENDPOINT", default_value = "tcp://127.0.0.1:0")]
    bind: String,
    /// What carries the messages: zmq (libzmq) or native (on Linux)
    #[arg(long, value_name = "TRANSPORT", default_value_t)]
    transport: TransportKind,
    /// Bytes that may wait for one subscriber of the native transport (or like 64K, 64M, 1G) before it misses messages; the
    /// run fails if its own does
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = input::bytes)]
    peer_queue: usize,
    /// Threads of the master that handle requests
    #[arg(long, value_name = "THREADS", default_value_t = 4, value_parser = count(1..=256))]
    producers: u64,
    /// Pace of all producers together, in events per second, or `max` for as fast as it goes
    #[arg(long, value_name = "EVENTS_PER_S|max", default_value = "100000")]
    rate: Rate,
    /// Events the publisher's queue holds [default: 65536]
    #[arg(long, value_name = "EVENTS")]
    queue_capacity: Option<usize>,
    /// Calls evicted at once when the queue is full [default: 1]
    #[arg(long, value_name = "CALLS")]
    eviction_burst: Option<usize>,
    /// Objects the master keeps in memory
    #[arg(long, value_name = "OBJECTS", default_value_t = 2000, value_parser = count(1..=10_000_000))]
    cpu_objects: u64,
    /// Objects the master keeps on disk
    #[arg(long, value_name = "OBJECTS", default_value_t = 8000, value_parser = count(0..=10_000_000))]
    disk_objects: u64,
    /// What the sender does when there is nothing to send: park, nap[:50us], poll[:50us] or spin; the time, in us or ms,
    /// is that of a nap or between two looks
    #[arg(long, value_name = "STRATEGY", default_value_t)]
    wait_strategy: WaitStrategy,
    /// Send an empty batch whenever nothing was sent for so many ms; 0 for never
    #[arg(long, value_name = "MS", default_value_t = 0)]
    heartbeat: u64,
    /// Publish nothing but probes for so many seconds (a fraction will do), or until there is a `line` (or the end) on the
    /// standard input, for other subscribers to join
    #[arg(long, value_name = "SECONDS|line", default_value = "0", value_parser = start_after)]
    start_after: StartAfter,
    /// Seed of the built-in workload and of the master's operations; the same number, the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the report as one JSON object on the last line of the standard output, and no progress [default: lines for
    /// people, and progress if the standard error is a terminal]
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
The object of --json: events_accepted (as the callers counted), events_published, events_evicted, events_failed,
events_abandoned, events_skipped, events_refused; messages, bytes (of payload) and sequence_last, those of the socket;
gaps_seen, events_missed (the numbers in them), events_received, resyncs (snapshots taken), checkpoints; publish_ns (duration
of a call) and receive_us (age of an event on arrival), each with p50, p99, p999 and max; elapsed_s, producers; view: equal,
equal_after_resync or differs; and interrupted, which is true, only if a signal ended the run early.

Exit status:
  0    the view was the master's throughout
  1    it was not (view is differs), or something failed: the trace cannot be read, the endpoint cannot be bound, the report
       cannot be written (but for a reader that has gone)
  2    the arguments are wrong
  3    Ctrl-C, SIGTERM or SIGHUP ended the run early; until then the view was the master's
  70   a library gave up where the system is short, and what it said stands before
  130  a second signal ended it at once, without a report
Before it publishes, while it reads the trace, a signal ends it at once.";

/// The exit status of a run that a signal ended, and that was well until then.
const INTERRUPTED: u8 = 3;

fn count(range: std::ops::RangeInclusive<u64>) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(range)
}

/// What the producers wait for.
#[derive(Clone, Copy, Debug)]
enum StartAfter {
    Time(Duration),
    Line,
}

fn start_after(text: &str) -> Result<StartAfter, &'static str> {
    match text.parse() {
        _ if text == "line" => Ok(StartAfter::Line),
        Ok(seconds) if (0.0..=1e6).contains(&seconds) => Ok(StartAfter::Time(Duration::from_secs_f64(seconds))),
        _ => Err("neither a number of seconds from 0 to 1e6 nor `line`"),
    }
}

/// Events a second.
#[derive(Clone, Copy, Debug)]
enum Rate {
    Max,
    PerSecond(f64),
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            _ if text == "max" => Ok(Rate::Max),
            Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(Rate::PerSecond(rate)),
            _ => Err("neither `max` nor a number of events per second from 0.001 to 1e9"),
        }
    }
}

impl Args {
    fn config(&self) -> Config {
        let mut config = Config::new(&self.bind, "kv-events-replay")
            .model_name("replay-model")
            .block_size(512)
            .wait_strategy(self.wait_strategy)
            .heartbeat_interval(Duration::from_millis(self.heartbeat))
            .transport(self.transport)
            .peer_queue_bytes(self.peer_queue)
            // Every gap is to be the publisher's own.
            .send_hwm(0);
        if let Some(capacity) = self.queue_capacity {
            config = config.queue_capacity(capacity);
        }
        if let Some(burst) = self.eviction_burst {
            config = config.eviction_burst(burst);
        }
        config
    }

    /// Time between two events of one producer; zero for none.
    fn interval(&self) -> Duration {
        match self.rate {
            Rate::Max => Duration::ZERO,
            Rate::PerSecond(rate) => Duration::from_secs_f64(self.producers as f64 / rate),
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = match &args.trace {
        Some(path) => trace::read(path, args.max_line)?,
        None => trace::built_in(args.seed),
    };
    let stop = Stop::default();
    let mut output = Output::open(&stop).context("cannot open the standard output")?;
    signals::catch(&stop, || {}, || {})?;
    let publisher = Publisher::start(args.config())?;
    let endpoint = publisher.bound_endpoint().context("the publisher is disabled")?.to_owned();
    out::say(format_args!("publishing on {endpoint}"));
    let checkpoints = driver::checkpoints(trace.len() * args.loops as usize);
    let progress = if args.json { Progress::hidden() } else { Progress::begin(checkpoints as u64)? };
    let subscriber =
        Subscriber::connect(&endpoint, progress).with_context(|| format!("cannot subscribe to {endpoint}"))?;

    let producers = args.producers as usize;
    let master = Master::new(args.cpu_objects as usize, args.disk_objects as usize);
    let ledgers: Vec<Ledger> = (0..producers).map(|_| Ledger::default()).collect();
    let gate = CheckpointBarrier::new(producers);
    let mut session = Session::new(&publisher, &master, &ledgers, &gate, subscriber, None);
    if !join(&mut session, args.start_after, &stop)? {
        session.source.progress.end();
        out::say("kv-events: interrupted before the subscriber had joined; there is nothing to report");
        return Ok(ExitCode::from(INTERRUPTED));
    }

    let start = Instant::now();
    session.source.start = start;
    let job = Job {
        publisher: &publisher,
        master: &master,
        gate: &gate,
        trace: &trace,
        loops: args.loops as usize,
        interval: args.interval(),
        seed: args.seed,
        start,
        next: Mutex::new(0),
        stop: &stop,
    };
    let (publish_ns, interrupted) = drive(&job, &mut session)?;
    let elapsed = start.elapsed();
    if !args.json {
        tell_of_peers(&publisher.status());
    }
    let _ = publisher.stop(STOP_DEADLINE);
    let end = session.end();
    let report = Report::new(&end, elapsed, &publish_ns, producers, interrupted);

    if report.view == Verdict::Differs {
        out::say("kv-events: the view differs from the master's, or the stream is not as it should be:");
        end.failures.to_string().lines().for_each(out::say);
    }
    let text = if args.json { serde_json::to_string(&report)? } else { report.to_string() };
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if !out::is_gone(&error) => return Err(error).context("cannot write the report"),
        _ => {}
    }
    Ok(match report.view {
        Verdict::Differs => ExitCode::FAILURE,
        _ if interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::SUCCESS,
    })
}

/// How the subscribers are doing, as far as the transport knows.
fn tell_of_peers(status: &Status) {
    for peer in &status.peers {
        out::say(format_args!(
            "subscriber {}: {} messages ({} bytes) wait for it, {} dropped with {} events",
            peer.address, peer.queued_messages, peer.queued_bytes, peer.dropped_messages, peer.dropped_events
        ));
    }
}

/// Sends probes until the subscriber has received one, and until it is time to start or the end is asked for. Says whether
/// the subscriber has joined.
fn join(session: &mut Session<'_, Subscriber>, start: StartAfter, stop: &Stop) -> anyhow::Result<bool> {
    let mut asked = None;
    let gives_up = || stop.is_raised() && asked.get_or_insert_with(Instant::now).elapsed() >= JOIN_PATIENCE;
    let has_joined = repeat_in_band(session, PROBE, gives_up);
    if !has_joined.map_err(|error| anyhow!("the subscriber cannot join: {error}"))? {
        return Ok(false);
    }
    let mut is_due: Box<dyn FnMut() -> bool> = match start {
        StartAfter::Time(time) => {
            let until = Instant::now() + time;
            Box::new(move || Instant::now() >= until)
        }
        StartAfter::Line => {
            // A thread of its own, which the end of the process ends: nothing else can wait for both.
            let read = || std::io::stdin().read_line(&mut String::new());
            let reader = std::thread::Builder::new().spawn(read).context("cannot wait for a line")?;
            Box::new(move || reader.is_finished())
        }
    };
    let mut is_over = || is_due() || stop.is_raised();
    while !is_over() {
        session.say_in_band(PROBE).map_err(|error| anyhow!(error))?;
        let next = Instant::now() + IN_BAND_INTERVAL;
        while Instant::now() < next && !is_over() {
            session.follow().map_err(|error| anyhow!(error))?;
        }
    }
    session.arrive().map_err(|error| anyhow!(error))?;
    Ok(true)
}

/// Says the probe or the sentinel again and again until it has been received. Says whether it was; `gives_up` ends it before.
fn repeat_in_band(
    session: &mut Session<'_, Subscriber>,
    key: &str,
    mut gives_up: impl FnMut() -> bool,
) -> Result<bool, String> {
    let since = Instant::now();
    while since.elapsed() < IN_BAND_PATIENCE {
        session.say_in_band(key)?;
        let next = Instant::now() + IN_BAND_INTERVAL;
        while Instant::now() < next {
            if session.follower.has_heard(key) {
                return Ok(true);
            }
            if gives_up() {
                return Ok(false);
            }
            session.follow()?;
        }
    }
    Err(format!("no {key} was received for {IN_BAND_PATIENCE:?}"))
}

/// Runs the producers and follows them from checkpoint to checkpoint up to the sentinel. A run that has failed, or that is
/// asked to end, ends at the checkpoint that finds it, since nothing after it can mend it. What goes wrong is the
/// follower's to tell. Returns the durations of all calls, ns, and whether the end came early because it was asked for.
fn drive(job: &Job<'_>, session: &mut Session<'_, Subscriber>) -> anyhow::Result<(Histogram<u64>, bool)> {
    let checkpoints = job.checkpoints();
    std::thread::scope(|scope| {
        let spawn = |(producer, ledger)| {
            std::thread::Builder::new()
                .name(format!("producer-{producer}"))
                .spawn_scoped(scope, move || job.produce(producer, ledger))
        };
        let threads: Vec<_> = session.ledgers.iter().enumerate().map(spawn).collect();
        let mut follow = || {
            let mut interrupted = false;
            for checkpoint in 1..=checkpoints {
                session.checkpoint()?;
                session.source.progress.checkpoint(session.follower.received());
                interrupted = job.is_cut_short();
                if checkpoint == checkpoints || session.follower.has_failed() || interrupted {
                    break;
                }
                job.gate.open();
            }
            repeat_in_band(session, SENTINEL, || false).map(|_| interrupted)
        };
        let followed = if threads.iter().all(Result::is_ok) { follow() } else { Err("not all producers began".into()) };
        session.source.progress.end();
        job.gate.break_up();
        let interrupted = followed.unwrap_or_else(|error| {
            session.follower.fail(|| error);
            job.is_cut_short()
        });
        let mut publish_ns = simulated_master::histogram();
        for thread in threads {
            let thread = thread.context("cannot start a producer")?;
            publish_ns.add(thread.join().map_err(|_| anyhow!("a producer panicked"))?)?;
        }
        Ok((publish_ns, interrupted))
    })
}
