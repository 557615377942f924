//! Everything at once, in an order that chance makes.

use crate::child::Child;
use crate::os::{self, Traced};
use crate::rig::{Load, Reading, Rig, run_for};
use crate::scenarios::{Fault, Seen, figures};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const FAULTS: &[Fault] = &[
    Fault { name: "combined", what: "all of these together, paced", weight: 8, least: LEAST, run: paced },
    Fault {
        name: "combined-full",
        what: "all of these together, flat out into a small queue",
        weight: 8,
        least: LEAST,
        run: full,
    },
];

const LEAST: &[(&str, u64)] = &[("rounds", 1), ("published", 1_000)];

/// Rounds are short, so that many queues, sockets and endings are seen.
const ROUND: Duration = Duration::from_secs(20);

fn paced(time: Duration) -> Result<Seen, String> {
    rounds(time, &Load { rate: 40_000, ..Load::default() })
}

fn full(time: Duration) -> Result<Seen, String> {
    rounds(time, &Load { rate: 0, capacity: 512, ..Load::default() })
}

fn rounds(time: Duration, load: &Load) -> Result<Seen, String> {
    let until = Instant::now() + time;
    let (mut rounds, mut events, mut evicted, mut worst, mut last) = (0, 0, 0, 0, String::new());
    while rounds == 0 || Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        let outcome = round(left.clamp(Duration::from_secs(1), ROUND), load, rounds)?;
        rounds += 1;
        events += outcome.publisher.number("published");
        evicted += outcome.publisher.number("evicted");
        worst = worst.max(outcome.publisher.number("worst_us"));
        last = figures(&outcome).text;
    }
    let text =
        format!("{rounds} rounds, {events} published, {evicted} evicted, worst call {worst} us; the last: {last}");
    Ok(Seen { counts: vec![("rounds", rounds), ("published", events)], text, skipped: None })
}

fn round(time: Duration, load: &Load, seed: u64) -> Result<crate::rig::Outcome, String> {
    let mut rig = Rig::start(load.clone(), 1)?;
    rig.go();
    let mut storm = Child::spawn("storm", &format!("endpoint={} sockets=50", rig.endpoint));
    let over = AtomicBool::new(false);
    let (publisher, sender) = (rig.publisher.pid(), rig.sender);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                os::signal_thread(publisher, sender, libc::SIGPROF);
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let disturbed = disturb(&mut rig, time, seed);
        over.store(true, Ordering::Release);
        disturbed
    })?;
    rig.work(Duration::ZERO, 1_000, 0)?;
    storm.tell("enough");
    storm.wait_for("report")?;
    rig.finish()
}

fn disturb(rig: &mut Rig, time: Duration, seed: u64) -> Result<(), String> {
    let until = Instant::now() + time;
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while Instant::now() < until {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let pick = (random >> 33) as usize;
        let reader = pick / 8 % rig.readers.len().max(1);
        match pick % 8 {
            0 | 1 if rig.readers.len() < 4 => rig.join(Reading::default())?,
            2 if rig.readers.len() < 4 => rig.join(Reading { slow_us: 2_000, slow_ms: 3_000, hwm: 10 })?,
            3 if !rig.readers.is_empty() => rig.readers.swap_remove(reader).kill(),
            4 if !rig.readers.is_empty() => {
                rig.readers[reader].signal(libc::SIGSTOP);
                run_for(Duration::from_millis(200));
                rig.readers[reader].signal(libc::SIGCONT);
            }
            5 => crate::peers::reset_within_a_message(&rig.endpoint).map_err(|error| error.to_string())?,
            6 => hold(rig.producers[reader % rig.producers.len()], Duration::from_millis(5))?,
            7 => hold(rig.sender, Duration::from_millis(20))?,
            _ => run_for(Duration::from_millis(20)),
        }
    }
    Ok(())
}

fn hold(tid: u32, time: Duration) -> Result<(), String> {
    let held = Traced::seize(tid).and_then(|traced| traced.stop_for(time));
    held.map_err(|error| format!("ptrace: {error}"))
}
