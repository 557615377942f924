//! What `tail` can be told.

use kv_events::subscriber::{Settings, TopicFilter};
use kv_events::tracker::{Base, Numbering};

use crate::input;

/// Print events as they come, with gaps and restarts marked before the message that shows them.
///
/// A summary follows for each source (endpoint and topic) at the end: after --limit events, or on Ctrl-C. Publishers need
/// not be there yet, and may come and go; which of them do not answer, or have said nothing yet, is told on the standard
/// error. Text from the wire is printed with control characters, and those that show as nothing, escaped (with --json, the
/// latter only if the output is a terminal).
#[derive(clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    /// Publishers to connect to, like `tcp://127.0.0.1:5557` or `ipc:///run/kv-events.sock`; with --bind, where they
    /// connect to.
    #[arg(required = true, value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Let publishers connect, instead of connecting to them: vLLM and SGLang do where their endpoint names a host. The
    /// port may be 0, for a free one, which is told on the standard error.
    #[arg(long)]
    pub bind: bool,
    /// JSON lines instead of columns [default: columns].
    ///
    /// Timestamps are as they were sent there: by masters in ms, as an integer; by engines in s, as a float. In columns
    /// both are in s.
    #[arg(long)]
    pub json: bool,
    /// Figures on one screen instead of events: rates, losses, lag, media, tenants; q or Ctrl-C leaves.
    ///
    /// Rates, and the median and worst lag, are those of the last second. Lag is this machine's clock minus a message's
    /// timestamp, so it also shows how far apart two machines' clocks are; `-` where the timestamp is no time of day.
    /// MISSED counts numbers, each of which is a message or an event. EVICTED% is the share of a master's events that it lost
    /// before it sent them, of those and the ones received; `-` where events have no ids, which would tell (engines).
    /// Without a terminal (a pipe, a file, TERM=dumb): one line per source and second.
    #[arg(long, conflicts_with_all = ["json", "duplicates"])]
    pub top: bool,
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
    /// What a publisher with several topics counts: each `topic`'s messages for themselves (most do), all messages of the
    /// `endpoint` (LMCache, llm-d's file store); `auto` finds out, and tells no gap that is none meanwhile.
    #[arg(long, value_enum, default_value = "auto")]
    numbering: Numbers,
    /// Topic to subscribe to; every topic that begins with it is taken, and with the default all are.
    ///
    /// Masters publish under the empty topic, engines under the one they are configured with: `--topic kv-events`.
    #[arg(long, default_value = "")]
    pub topic: String,
    /// End after this many events [default: never].
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Print the events of duplicates too [default: only that there was one]; they still count as duplicates only.
    #[arg(long)]
    duplicates: bool,
    /// Largest frame taken, in bytes (or like 64K, 16M, 1G); a larger one is told, with its size, and passed over.
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = frame_bytes)]
    max_frame: u32,
    /// Bytes of messages still on their way that are held, of all publishers together (or like 64K, 16M, 1G); what finds
    /// no room waits in the system's buffers, and with the publisher.
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = input::bytes)]
    max_buffered: usize,
    /// Topics of one endpoint that are followed; messages of further ones are malformed.
    #[arg(long, value_name = "TOPICS", default_value_t = Settings::default().max_topics as u64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_topics: u64,
}

impl Args {
    /// The subscriber's settings.
    pub fn settings(&self) -> Settings {
        let base = match (self.base, self.source) {
            (Begin::Zero, _) | (Begin::Auto, Kind::Engine) => Base::ENGINE,
            (Begin::One, _) | (Begin::Auto, Kind::Master) => Base::MASTER,
            (Begin::Auto, Kind::Auto) => Base::Auto,
        };
        Settings {
            topic: TopicFilter::Prefix(self.topic.clone().into_bytes()),
            base,
            deliver_duplicates: self.duplicates,
            numbering: match self.numbering {
                Numbers::Auto => Numbering::Auto,
                Numbers::Topic => Numbering::Topic,
                Numbers::Endpoint => Numbering::Endpoint,
            },
            max_frame_bytes: self.max_frame,
            max_buffered_bytes: self.max_buffered as u64,
            max_topics: usize::try_from(self.max_topics).unwrap_or(usize::MAX),
            ..Settings::default()
        }
    }
}

fn frame_bytes(text: &str) -> Result<u32, &'static str> {
    let bytes = input::bytes(text)?;
    u32::try_from(bytes).map_err(|_| "at most 4294967295 bytes, the largest frame there can be a limit of")
}

const AFTER_HELP: &str = r#"Examples:
  A master, as figures on one screen:
      kv-events tail --top tcp://127.0.0.1:5557

  vLLM, started with
  --kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", "topic": "kv-events"}':
      kv-events tail --source engine --topic kv-events tcp://127.0.0.1:5557

  SGLang, started with
  --kv-events-config '{"publisher": "zmq", "endpoint": "tcp://*:5557", "topic": "kv-events"}':
      kv-events tail --source engine --topic kv-events tcp://127.0.0.1:5557

  With data parallelism each rank has a port of its own, one after the other: name them all.

Lines of --json, by their field `line`. All have `source`, the endpoint, `topic` if it is not the one of --topic, and `peer` with --bind:
  started     sequence: the first number seen; missed: numbers before it, null if unknown
  event       sequence, timestamp, data_parallel_rank; event: its type and fields, or {"error": CLASS} if it is bad
              (of an engine's clear also medium and source_kind, where it is not of all)
  gap         from, to: the numbers missing; missed: how many; cause: evicted (lost before they were sent, each an event),
              lost (on the way) or unknown
  restarted   previous: the last number of the publisher's life before; sequence: the first seen of the new one
  reconnected the connection was lost and is there again; the next number tells whether anything was missed
  duplicate   sequence
  malformed   reason; sequence, if it could be read; bytes and limit of a frame that is too large
  summary     one per source, at the end: messages, events, stored, removed, cleared, errors (bad events), malformed, gaps,
              missed (numbers in gaps), duplicates, restarts, first_sequence, last_sequence, seconds
Messages without events (heartbeats) have no line; they count as messages. A signal may cut the line of one event of many
megabytes; the standard error tells.

Exit status:
  0    ended by --limit, q, Ctrl-C, SIGTERM or SIGHUP, with the summary; or the reader of the output, or the terminal, has gone
  1    an endpoint cannot be subscribed to; receiving failed; the output cannot be written, or was not read for 1 s when
       the end was asked for, or is not for 5 s then
  2    the arguments are wrong
  70   a library gave up where the system is short, and what it said stands before
  130  a second signal ended it at once, without a summary"#;

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    Auto,
    Engine,
    Master,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Numbers {
    Auto,
    Topic,
    Endpoint,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Begin {
    #[value(name = "0")]
    Zero,
    #[value(name = "1")]
    One,
    Auto,
}
