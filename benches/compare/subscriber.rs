//! The subscriber in another process: this binary again, with a hidden command.
//!
//! It says `joined` when the first message arrives, is told the window on its standard input, counts what arrives in it,
//! and answers `end` with one line of JSON once nothing has come for a while.

use super::clock::now;
use super::load::{STAMP, Window, histogram};
use crate::support::Publish;
use hdrhistogram::Histogram;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The quantiles that are reported.
pub const QUANTILES: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0];

/// What arrived.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Received {
    /// Events in the window.
    pub events: u64,
    /// Messages in the window.
    pub messages: u64,
    /// Bytes of payload in the window.
    pub bytes: u64,
    /// Events ever.
    pub all_events: u64,
    /// Sum of the gaps in the numbers.
    pub missed: u64,
    /// From the call to here, ns, at [`QUANTILES`].
    pub latency: Vec<u64>,
    /// Processor time of the whole process, ns.
    pub cpu: u64,
}

/// The subscriber's process, seen from the publisher's.
pub struct Subscriber {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Subscriber {
    /// Starts one and waits until it receives. `every` makes it look for a time in every event rather than in the first of
    /// a message.
    pub fn join<P: Publish>(publisher: &P, every: bool) -> Subscriber {
        let mut subscriber = Subscriber::spawn(&publisher.endpoint(), if every { "every" } else { "first" });
        subscriber.wait_joined(|| publisher.stored(&crate::support::object("probe")));
        subscriber
    }

    pub fn spawn(endpoint: &str, mode: &str) -> Subscriber {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["subscribe", endpoint, mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary again");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Subscriber { child, output }
    }

    /// Waits until it receives; meanwhile `probe` is called once a millisecond.
    pub fn wait_joined(&mut self, mut probe: impl FnMut() + Send) {
        let joined = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !joined.load(Ordering::Relaxed) {
                    probe();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let line = self.line();
            joined.store(true, Ordering::Relaxed);
            assert_eq!(line, "joined");
        });
    }

    pub fn tell_window(&mut self, window: Window) {
        self.say(&format!("{} {}", window.from, window.until));
    }

    /// What it received, once the publisher has sent everything.
    pub fn end(mut self) -> Received {
        self.say("end");
        let received = serde_json::from_str(&self.line()).expect("the subscriber's report");
        self.child.wait().expect("the subscriber's end");
        received
    }

    fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("a subscriber that listens");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a subscriber that answers");
        line.trim().to_owned()
    }
}

/// A subscriber that was not ended is of no use to anyone.
impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the parent has said so far.
#[derive(Default)]
struct Told {
    from: AtomicU64,
    until: AtomicU64,
    end: AtomicBool,
}

/// The other process.
pub fn main(endpoint: &str, mode: &str) {
    let told = Arc::new(Told::default());
    std::thread::spawn({
        let told = Arc::clone(&told);
        move || listen(&told)
    });
    let socket = zmq::Context::new().socket(zmq::SUB).expect("a SUB socket");
    socket.set_subscribe(b"").expect("SUBSCRIBE");
    socket.connect(endpoint).expect("an endpoint");
    if mode == "stalled" {
        stall(&socket, &told);
        return;
    }
    socket.set_rcvtimeo(100).expect("RCVTIMEO");
    let mut count = Count { received: Received::default(), latency: histogram(), last: None, every: mode == "every" };
    let mut frames = [zmq::Message::new(), zmq::Message::new(), zmq::Message::new()];
    loop {
        match receive(&socket, &mut frames) {
            Ok(()) => count.message(&frames, &told),
            Err(_) if told.end.load(Ordering::Acquire) => break,
            Err(_) => {}
        }
    }
    let mut received = count.received;
    received.latency = QUANTILES.map(|quantile| count.latency.value_at_quantile(quantile)).into();
    received.cpu = super::clock::process_cpu();
    println!("{}", serde_json::to_string(&received).expect("a report"));
}

/// Receives one message and then nothing any more.
fn stall(socket: &zmq::Socket, told: &Told) {
    socket.recv_multipart(0).expect("a message");
    println!("joined");
    while !told.end.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{}", serde_json::to_string(&Received::default()).expect("a report"));
}

fn listen(told: &Told) {
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text");
        match line.split_once(' ') {
            Some((from, until)) => {
                told.until.store(until.parse().expect("ns"), Ordering::Release);
                told.from.store(from.parse().expect("ns"), Ordering::Release);
            }
            None => break,
        }
    }
    // `end`, or a parent that is gone.
    told.end.store(true, Ordering::Release);
}

fn receive(socket: &zmq::Socket, frames: &mut [zmq::Message; 3]) -> zmq::Result<()> {
    for frame in frames {
        socket.recv(frame, 0)?;
    }
    Ok(())
}

struct Count {
    received: Received,
    latency: Histogram<u64>,
    last: Option<u64>,
    every: bool,
}

impl Count {
    fn message(&mut self, frames: &[zmq::Message; 3], told: &Told) {
        let now = now();
        let [_, sequence, payload] = frames;
        let sequence = u64::from_be_bytes(sequence[..].try_into().expect("8 bytes"));
        match self.last {
            None => println!("joined"),
            Some(last) => self.received.missed += sequence - last - 1,
        }
        self.last = Some(sequence);
        let events = events(payload);
        self.received.all_events += events;
        let from = told.from.load(Ordering::Relaxed);
        if from == 0 || now < from || now >= told.until.load(Ordering::Relaxed) {
            return;
        }
        self.received.events += events;
        self.received.messages += 1;
        self.received.bytes += payload.len() as u64;
        let part = if self.every { payload } else { &payload[..payload.len().min(600)] };
        for at in memmem::find_iter(part, STAMP) {
            let digits = part.get(at + STAMP.len()..at + STAMP.len() + 16);
            let sent = digits.and_then(|digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
            if let Some(sent) = sent {
                self.latency.saturating_record(now.saturating_sub(sent));
            }
        }
    }
}

/// Events in a payload `[timestamp, [event, ...], rank]`.
fn events(mut payload: &[u8]) -> u64 {
    let mut count = || {
        rmp::decode::read_array_len(&mut payload).ok()?;
        rmp::decode::read_int::<u64, _>(&mut payload).ok()?;
        rmp::decode::read_array_len(&mut payload).ok()
    };
    count().expect("a payload").into()
}
