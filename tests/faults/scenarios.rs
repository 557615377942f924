//! What happens in production, one thing at a time.

use crate::child::Child;
use crate::os::{self, Traced};
use crate::rig::{Load, Outcome, Reading, Rig, run_for};
use std::time::{Duration, Instant};

pub struct Fault {
    pub name: &'static str,
    pub what: &'static str,
    /// Its share of the time.
    pub weight: u32,
    /// The least that must have come about, by the names of [`Seen`]: a row that did less has tried nothing, and fails.
    pub least: &'static [(&'static str, u64)],
    /// Runs for about the given time, or longer if it takes longer to do the least.
    pub run: fn(Duration) -> Result<Seen, String>,
}

/// What a row came to.
#[derive(Debug, Default)]
pub struct Seen {
    pub counts: Vec<(&'static str, u64)>,
    pub text: String,
    /// Why nothing could be tried here.
    pub skipped: Option<&'static str>,
}

impl Seen {
    /// The same, and so many of something.
    pub fn with(mut self, name: &'static str, count: u64) -> Seen {
        self.text = format!("{count} {name}; {}", self.text);
        self.counts.push((name, count));
        self
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Fault {
    /// Runs it, and says what it came to, or what was wrong, too little among that.
    pub fn verdict(&self, time: Duration) -> Result<Seen, String> {
        let seen = (self.run)(time)?;
        for (name, least) in self.least.iter().filter(|_| seen.skipped.is_none()) {
            let count = seen.counts.iter().find(|(counted, _)| counted == name).map_or(0, |(_, count)| *count);
            if count < *least {
                return Err(format!("it tried too little: {count} {name}, and the least is {least}; {seen}"));
            }
        }
        Ok(seen)
    }
}

/// Events that a load has to have settled at least, before a row may end.
const SOME: u64 = 1_000;
/// A call has two events at most.
const CALLS: (&str, u64) = ("calls", SOME / 2);
const EVICTED: (&str, u64) = ("evicted", 100);

macro_rules! faults {
    ($($name:literal $run:ident $least:expr, $what:literal;)*) => {
        pub const FAULTS: &[Fault] =
            &[$(Fault { name: $name, what: $what, weight: 1, least: &$least, run: $run }),*];
    };
}

faults! {
    "calm" calm [CALLS], "nothing happens";
    "killed" killed [CALLS, ("kills", 1)], "a subscriber is killed";
    "stopped" stopped [CALLS], "a subscriber is stopped (SIGSTOP) and resumed";
    "slow" slow [CALLS], "one subscriber is slow, another is not";
    "late" late [CALLS, ("joined", 3)], "subscribers join while events flow";
    "storm" storm [CALLS, ("connections", crate::peers::STORM as u64)], "200 subscribers connect and leave at once, over and over";
    "signals" signals [CALLS, ("signals", 100)], "the sender is interrupted every 100 us";
    "reset" reset [CALLS, ("resets", 3)], "peers reset their connections in the middle of a message";
    "overflow" overflow [CALLS, EVICTED], "producers flat out into a small queue";
    "frozen" frozen [CALLS, EVICTED, ("stops", 3)],
        "a producer is stopped inside its calls, 5 ms at a time, the queue full";
    "throttled" throttled [CALLS, EVICTED, ("stops", 3)], "the sender runs 1 ms in every 20, the queue full";
    "starved" starved [CALLS, EVICTED], "the sender gets only what two hogs on its core leave, the queue full";
    "memory" memory [("calls", 50)], "a memory limit, large keys, a subscriber that stands still";
    "shaped" shaped [CALLS], "a network that carries 8 Mbit/s, less than there is to send";
    "hostile" hostile [CALLS, ("times", 10)], "peers that send garbage, come and go, and stay silent";
    "topics" topics [CALLS, ("times", 100)], "a peer that subscribes to one topic after another";
    "abort_by_ping" abort_by_ping [CALLS, ("vanished", 40)],
        "peers subscribe to 6 or 60 topics, ping, and reset the connection";
    "heartbeat_client" heartbeat_client [CALLS, ("vanished", 8)],
        "subscribers with heartbeats take topic after topic and are killed";
    "restart" restart [CALLS, ("restarts", 1)], "stop, and start on the same port";
    "kill-9" kill_9 [CALLS, ("restarts", 1)], "the publisher is killed, another starts on the same port";
}

/// What all verdicts say.
pub fn figures(outcome: &Outcome) -> Seen {
    let publisher = &outcome.publisher;
    let counts = ["calls", "published", "evicted"].map(|name| (name, publisher.number(name)));
    let mut text = format!(
        "{} calls, {} published, {} evicted, worst call {} us, {} over 1 ms",
        counts[0].1,
        counts[1].1,
        counts[2].1,
        publisher.number("worst_us"),
        publisher.number("over_1ms"),
    );
    for reader in outcome.complete.iter().chain(&outcome.readers) {
        let (gaps, lost) = (reader.number("gaps"), reader.number("lost"));
        text += &format!("; reader: {} events, gaps {gaps}, lost on the way {lost}", reader.number("events"));
    }
    Seen { counts: counts.to_vec(), text, skipped: None }
}

fn done(rig: Rig) -> Result<Seen, String> {
    rig.finish().map(|outcome| figures(&outcome))
}

fn calm(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 2)?;
    rig.go();
    rig.work(time, SOME, 0)?;
    done(rig)
}

fn killed(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut kills = 0;
    while kills == 0 || Instant::now() < until {
        rig.join(Reading::default())?;
        run_for(time / 8);
        rig.readers.pop().unwrap().kill();
        kills += 1;
    }
    rig.work(Duration::ZERO, SOME, 0)?;
    Ok(done(rig)?.with("kills", kills))
}

fn stopped(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load { hwm: 50, ..Load::default() }, 0)?;
    rig.join(Reading { hwm: 50, ..Reading::default() })?;
    rig.join(Reading::default())?;
    rig.go();
    rig.readers[0].signal(libc::SIGSTOP);
    let worked = rig.work(time, SOME, 0);
    rig.readers[0].signal(libc::SIGCONT);
    worked?;
    done(rig)
}

/// The slow one loses, sees it, and costs the other nothing.
fn slow(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load { hwm: 0, ..Load::default() }, 1)?;
    let slow_ms = time.as_millis() as u64;
    rig.join(Reading { slow_us: 5_000, slow_ms, hwm: 10 })?;
    rig.go();
    rig.work(time, SOME, 0)?;
    done(rig)
}

fn late(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    for _ in 0..3 {
        run_for(time / 4);
        rig.join(Reading::default())?;
    }
    rig.work(time / 4, SOME, 0)?;
    let joined = rig.readers.len() as u64;
    Ok(done(rig)?.with("joined", joined))
}

fn storm(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let mut storm = Child::spawn("storm", &format!("endpoint={} sockets=200", rig.endpoint));
    rig.work(time, SOME, 0)?;
    storm.tell("enough");
    let words = storm.wait_for("report")?;
    Ok(done(rig)?.with("connections", words.number("connections")))
}

fn signals(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut sent = 0;
    while sent < 100 || Instant::now() < until {
        os::signal_thread(rig.publisher.pid(), rig.sender, libc::SIGPROF);
        sent += 1;
        std::thread::sleep(Duration::from_micros(100));
    }
    rig.work(Duration::ZERO, SOME, 0)?;
    Ok(done(rig)?.with("signals", sent))
}

fn reset(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load { key_bytes: 4000, rate: 20_000, ..Load::default() }, 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut resets = 0;
    while resets < 3 || Instant::now() < until {
        crate::peers::reset_within_a_message(&rig.endpoint).map_err(|error| format!("a raw peer: {error}"))?;
        resets += 1;
    }
    rig.work(Duration::ZERO, SOME, 0)?;
    Ok(done(rig)?.with("resets", resets))
}

/// Flat out into a small queue: evicts all the time.
fn full() -> Load {
    Load { rate: 0, capacity: 1024, ..Load::default() }
}

fn overflow(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(full(), 1)?;
    rig.go();
    rig.work(time, SOME, EVICTED.1)?;
    done(rig)
}

fn stop_again_and_again(tid: u32, time: Duration, run: Duration, stop: Duration) -> Result<u64, String> {
    let traced = Traced::seize(tid).map_err(|error| format!("ptrace: {error}"))?;
    let until = Instant::now() + time;
    let mut stops = 0;
    while stops < 3 || Instant::now() < until {
        std::thread::sleep(run);
        traced.stop_for(stop).map_err(|error| format!("ptrace: {error}"))?;
        stops += 1;
    }
    Ok(stops)
}

fn frozen(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(full(), 1)?;
    rig.go();
    let stops = stop_again_and_again(rig.producers[0], time, Duration::from_millis(1), Duration::from_millis(5))?;
    rig.work(Duration::ZERO, SOME, EVICTED.1)?;
    Ok(done(rig)?.with("stops", stops))
}

fn throttled(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(full(), 1)?;
    rig.go();
    let stops = stop_again_and_again(rig.sender, time, Duration::from_millis(1), Duration::from_millis(19))?;
    rig.work(Duration::ZERO, SOME, EVICTED.1)?;
    Ok(done(rig)?.with("stops", stops))
}

fn starved(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(full(), 1)?;
    let mut hogs: Vec<Child> = (0..2).map(|_| Child::spawn("hog", "core=0")).collect();
    for hog in &hogs {
        hog.wait_for("ready")?;
    }
    os::starve(rig.sender, 0).map_err(|error| format!("SCHED_IDLE: {error}"))?;
    rig.go();
    let worked = rig.work(time, SOME, EVICTED.1);
    hogs.drain(..).for_each(Child::kill);
    worked?;
    done(rig)
}

/// The limit is the documented worst case of what the settings below allow, plus what a process needs anyway.
fn memory(time: Duration) -> Result<Seen, String> {
    let load = Load { key_bytes: 12_000, capacity: 2_000, hwm: 20, rate: 0, ..Load::default() };
    let mut rig = Rig::start(load, 0)?;
    rig.join(Reading { hwm: 20, ..Reading::default() })?;
    let event = 16 << 10;
    let (queue, pool) = (2_000 * event, (2_000 + 64 + 64) * (2 << 10));
    let sockets = 2 * (20 + 2) * 64 * event;
    os::limit_data(rig.publisher.pid(), (queue + pool + sockets + (96 << 20)) as u64)
        .map_err(|error| format!("RLIMIT_DATA: {error}"))?;
    rig.go();
    rig.readers[0].signal(libc::SIGSTOP);
    let worked = rig.work(time, 100, 0);
    let rss = os::rss_kb(rig.publisher.pid());
    rig.readers[0].signal(libc::SIGCONT);
    worked?;
    Ok(done(rig)?.with("MiB resident", rss >> 10))
}

/// In a network namespace of its own, whose loopback is slow.
fn shaped(time: Duration) -> Result<Seen, String> {
    let on_a_slow_network = move || {
        let shape = |program: &str, args: &str| {
            let done = std::process::Command::new(program).args(args.split(' ')).output();
            done.is_ok_and(|output| output.status.success())
        };
        if os::own_network().is_err()
            || !shape("ip", "link set lo mtu 1500 up")
            || !shape("tc", "qdisc add dev lo root tbf rate 8mbit burst 64kbit latency 400ms")
        {
            let skipped = Some("this machine lets nobody make a network namespace and shape it");
            return Ok(Seen { skipped, ..Seen::default() });
        }
        let mut rig = Rig::start(Load { rate: 20_000, hwm: 20, ..Load::default() }, 1)?;
        rig.go();
        rig.work(time, SOME, 0)?;
        done(rig)
    };
    // In a thread of its own: the namespace is the thread's and its children's.
    std::thread::spawn(on_a_slow_network).join().unwrap()
}

fn hostile(time: Duration) -> Result<Seen, String> {
    beside("garbage", time)
}

fn topics(time: Duration) -> Result<Seen, String> {
    beside("topics", time)
}

fn beside(peers: &str, time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let before = os::rss_kb(rig.publisher.pid());
    let mut peers = Child::spawn("hostile", &format!("endpoint={} what={peers}", rig.endpoint));
    peers.wait_for("begun")?;
    rig.work(time, SOME, 0)?;
    let grown = os::rss_kb(rig.publisher.pid()).saturating_sub(before);
    peers.tell("enough");
    let done_by_peers = peers.wait_for("report")?.number("done");
    Ok(done(rig)?.with("KiB more resident", grown).with("times", done_by_peers))
}

/// To a publisher that says nothing and looks at its peers once a second, and to a busy one.
fn abort_by_ping(time: Duration) -> Result<Seen, String> {
    let mut idle = Child::spawn("idle", "");
    let endpoint = idle.wait_for("ready")?.text("endpoint").to_owned();
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut vanished = 0;
    while vanished < 40 || Instant::now() < until {
        let topics = if vanished % 4 < 2 { 6 } else { 60 };
        let endpoint = if vanished % 2 == 0 { &endpoint } else { &rig.endpoint };
        crate::peers::ping_and_vanish(endpoint, topics, Duration::from_millis(vanished % 20))
            .map_err(|error| format!("a raw peer: {error}"))?;
        vanished += 1;
        if vanished % 10 == 0 {
            idle.tell("publish");
            idle.wait_for("published")?;
        }
    }
    idle.tell("stop");
    idle.wait_for("stopped")?;
    rig.work(Duration::ZERO, SOME, 0)?;
    Ok(done(rig)?.with("vanished", vanished))
}

fn heartbeat_client(time: Duration) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut vanished = 0;
    while vanished < 8 || Instant::now() < until {
        let clients: Vec<Child> = [3, 5, 10, 30]
            .map(|ms| Child::spawn("heartbeats", &format!("endpoint={} interval={ms}", rig.endpoint)))
            .into();
        for client in &clients {
            client.wait_for("subscribed")?;
        }
        vanished += clients.len() as u64;
        clients.into_iter().for_each(Child::kill);
    }
    rig.work(Duration::ZERO, SOME, 0)?;
    Ok(done(rig)?.with("vanished", vanished))
}

fn restart(time: Duration) -> Result<Seen, String> {
    restarts(time, Rig::stop_and_restart)
}

fn kill_9(time: Duration) -> Result<Seen, String> {
    restarts(time, Rig::kill_and_restart)
}

fn restarts(time: Duration, restart: fn(&mut Rig) -> Result<(), String>) -> Result<Seen, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let count = (time.as_secs() / 2).clamp(1, 20) as u32;
    for _ in 0..count {
        run_for(time / (count + 1));
        restart(&mut rig)?;
    }
    rig.work(time / (count + 1), SOME, 0)?;
    let outcome = rig.finish()?;
    let seen = outcome.complete[0].number("restarts");
    if seen != u64::from(count) {
        return Err(format!("{count} restarts, the reader saw {seen}"));
    }
    Ok(figures(&outcome).with("restarts", count.into()))
}
