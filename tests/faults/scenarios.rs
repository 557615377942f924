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
    /// Runs for about the given time; `Ok` says what was seen.
    pub run: fn(Duration) -> Result<String, String>,
}

pub const FAULTS: &[Fault] = &[
    Fault { name: "calm", what: "nothing happens", weight: 1, run: calm },
    Fault { name: "killed", what: "a subscriber is killed", weight: 1, run: killed },
    Fault { name: "stopped", what: "a subscriber is stopped (SIGSTOP) and resumed", weight: 1, run: stopped },
    Fault { name: "slow", what: "one subscriber is slow, another is not", weight: 1, run: slow },
    Fault { name: "late", what: "subscribers join while events flow", weight: 1, run: late },
    Fault { name: "storm", what: "200 subscribers connect and leave at once, over and over", weight: 1, run: storm },
    Fault { name: "signals", what: "the sender is interrupted every 100 us", weight: 1, run: signals },
    Fault { name: "reset", what: "peers reset their connections in the middle of a message", weight: 1, run: reset },
    Fault { name: "overflow", what: "producers flat out into a small queue", weight: 1, run: overflow },
    Fault {
        name: "frozen",
        what: "a producer is stopped inside its calls, 5 ms at a time, the queue full",
        weight: 1,
        run: frozen,
    },
    Fault { name: "throttled", what: "the sender runs 1 ms in every 20, the queue full", weight: 1, run: throttled },
    Fault {
        name: "starved",
        what: "the sender gets only what two hogs on its core leave, the queue full",
        weight: 1,
        run: starved,
    },
    Fault {
        name: "memory",
        what: "a memory limit, large keys, a subscriber that stands still",
        weight: 1,
        run: memory,
    },
    Fault {
        name: "shaped",
        what: "a network that carries 8 Mbit/s, less than there is to send",
        weight: 1,
        run: shaped,
    },
    Fault { name: "hostile", what: "peers that send garbage, come and go, and stay silent", weight: 1, run: hostile },
    Fault { name: "topics", what: "a peer that subscribes to one topic after another", weight: 1, run: topics },
    Fault { name: "restart", what: "stop, and start on the same port", weight: 1, run: restart },
    Fault { name: "kill-9", what: "the publisher is killed, another starts on the same port", weight: 1, run: kill_9 },
];

/// What all verdicts say.
pub fn figures(outcome: &Outcome) -> String {
    let publisher = &outcome.publisher;
    let mut text = format!(
        "{} calls, {} published, {} evicted, worst call {} us, {} over 1 ms",
        publisher.number("calls"),
        publisher.number("published"),
        publisher.number("evicted"),
        publisher.number("worst_us"),
        publisher.number("over_1ms"),
    );
    for reader in outcome.complete.iter().chain(&outcome.readers) {
        let (gaps, lost) = (reader.number("gaps"), reader.number("lost"));
        text += &format!("; reader: {} events, gaps {gaps}, lost on the way {lost}", reader.number("events"));
    }
    text
}

fn done(rig: Rig) -> Result<String, String> {
    rig.finish().map(|outcome| figures(&outcome))
}

fn calm(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 2)?;
    rig.go();
    run_for(time);
    done(rig)
}

fn killed(time: Duration) -> Result<String, String> {
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
    Ok(format!("{kills} killed; {}", done(rig)?))
}

/// PC-42
fn stopped(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load { hwm: 50, ..Load::default() }, 0)?;
    rig.join(Reading { hwm: 50, ..Reading::default() })?;
    rig.join(Reading::default())?;
    rig.go();
    rig.readers[0].signal(libc::SIGSTOP);
    run_for(time);
    rig.readers[0].signal(libc::SIGCONT);
    done(rig)
}

/// PC-42: the slow one loses, sees it, and costs the other nothing.
fn slow(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load { hwm: 0, ..Load::default() }, 1)?;
    let slow_ms = time.as_millis() as u64;
    rig.join(Reading { slow_us: 5_000, slow_ms, hwm: 10 })?;
    rig.go();
    run_for(time);
    done(rig)
}

fn late(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    for _ in 0..3 {
        run_for(time / 4);
        rig.join(Reading::default())?;
    }
    run_for(time / 4);
    done(rig)
}

fn storm(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let mut storm = Child::spawn("storm", &format!("endpoint={} sockets=200", rig.endpoint));
    run_for(time);
    storm.tell("enough");
    let words = storm.wait_for("report")?;
    Ok(format!("{} connections; {}", words.number("connections"), done(rig)?))
}

/// PC-41
fn signals(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut sent = 0;
    while Instant::now() < until {
        os::signal_thread(rig.publisher.pid(), rig.sender, libc::SIGPROF);
        sent += 1;
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(format!("{sent} signals; {}", done(rig)?))
}

fn reset(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load { key_bytes: 4000, rate: 20_000, ..Load::default() }, 1)?;
    rig.go();
    let until = Instant::now() + time;
    let mut resets = 0;
    while resets == 0 || Instant::now() < until {
        crate::peers::reset_within_a_message(&rig.endpoint).map_err(|error| format!("a raw peer: {error}"))?;
        resets += 1;
    }
    Ok(format!("{resets} resets; {}", done(rig)?))
}

/// Flat out into a small queue: evicts all the time.
fn full() -> Load {
    Load { rate: 0, capacity: 1024, ..Load::default() }
}

fn overflow(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(full(), 1)?;
    rig.go();
    run_for(time);
    done(rig)
}

fn stop_again_and_again(tid: u32, time: Duration, run: Duration, stop: Duration) -> Result<u32, String> {
    let traced = Traced::seize(tid).map_err(|error| format!("ptrace: {error}"))?;
    let until = Instant::now() + time;
    let mut stops = 0;
    while Instant::now() < until {
        std::thread::sleep(run);
        traced.stop_for(stop).map_err(|error| format!("ptrace: {error}"))?;
        stops += 1;
    }
    Ok(stops)
}

fn frozen(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(full(), 1)?;
    rig.go();
    let stops = stop_again_and_again(rig.producers[0], time, Duration::from_millis(1), Duration::from_millis(5))?;
    Ok(format!("{stops} stops; {}", done(rig)?))
}

fn throttled(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(full(), 1)?;
    rig.go();
    let stops = stop_again_and_again(rig.sender, time, Duration::from_millis(1), Duration::from_millis(19))?;
    Ok(format!("{stops} stops; {}", done(rig)?))
}

fn starved(time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(full(), 1)?;
    let mut hogs: Vec<Child> = (0..2).map(|_| Child::spawn("hog", "core=0")).collect();
    for hog in &hogs {
        hog.wait_for("ready")?;
    }
    os::starve(rig.sender, 0).map_err(|error| format!("SCHED_IDLE: {error}"))?;
    rig.go();
    run_for(time);
    hogs.drain(..).for_each(Child::kill);
    done(rig)
}

/// The limit is the documented worst case of what the settings below allow, plus what a process needs anyway.
fn memory(time: Duration) -> Result<String, String> {
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
    run_for(time);
    let rss = os::rss_kb(rig.publisher.pid());
    rig.readers[0].signal(libc::SIGCONT);
    Ok(format!("{} MiB resident; {}", rss >> 10, done(rig)?))
}

/// In a network namespace of its own, whose loopback is slow.
fn shaped(time: Duration) -> Result<String, String> {
    let on_a_slow_network = move || {
        let shape = |program: &str, args: &str| {
            let done = std::process::Command::new(program).args(args.split(' ')).output();
            done.is_ok_and(|output| output.status.success())
        };
        if os::own_network().is_err()
            || !shape("ip", "link set lo mtu 1500 up")
            || !shape("tc", "qdisc add dev lo root tbf rate 8mbit burst 64kbit latency 400ms")
        {
            return Ok("skipped: this machine lets nobody make a network namespace and shape it".to_owned());
        }
        let mut rig = Rig::start(Load { rate: 20_000, hwm: 20, ..Load::default() }, 1)?;
        rig.go();
        run_for(time);
        done(rig)
    };
    // In a thread of its own: the namespace is the thread's and its children's.
    std::thread::spawn(on_a_slow_network).join().unwrap()
}

fn hostile(time: Duration) -> Result<String, String> {
    beside("garbage", time)
}

fn topics(time: Duration) -> Result<String, String> {
    beside("topics", time)
}

fn beside(peers: &str, time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let before = os::rss_kb(rig.publisher.pid());
    let mut peers = Child::spawn("hostile", &format!("endpoint={} what={peers}", rig.endpoint));
    run_for(time);
    let grown = os::rss_kb(rig.publisher.pid()).saturating_sub(before);
    peers.tell("enough");
    let done_by_peers = peers.wait_for("report")?.number("done");
    Ok(format!("{done_by_peers} times, {grown} KiB more resident; {}", done(rig)?))
}

fn restart(time: Duration) -> Result<String, String> {
    restarts(time, Rig::stop_and_restart)
}

fn kill_9(time: Duration) -> Result<String, String> {
    restarts(time, Rig::kill_and_restart)
}

fn restarts(time: Duration, restart: fn(&mut Rig) -> Result<(), String>) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    let count = (time.as_secs() / 2).clamp(1, 20) as u32;
    for _ in 0..count {
        run_for(time / (count + 1));
        restart(&mut rig)?;
    }
    run_for(time / (count + 1));
    let outcome = rig.finish()?;
    let seen = outcome.complete[0].number("restarts");
    if seen != u64::from(count) {
        return Err(format!("{count} restarts, the reader saw {seen}"));
    }
    Ok(format!("{count} restarts, all seen; {}", figures(&outcome)))
}
