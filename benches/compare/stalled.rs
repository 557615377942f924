//! A full queue while the sender stands still: every call evicts.
//!
//! **Slow calls.** Wall time alone cannot tell a call that did much from one that was not allowed to run. So a second pass
//! reads, around every call, the thread's processor time and its context switches: a slow call that used little processor
//! time and gave the processor up was held up by the scheduler, either directly (involuntary) or because whoever held the
//! lock was (voluntary: it slept on the lock, and no call's own work, which this shows too, is long enough to explain it).

use super::clock::{now, switches, thread_cpu};
use super::load::{self, Load, Window};
use super::run::{Length, Only, Who, median};
use crate::support::peer::{Peer, Settings};
use crate::support::sinks::Gate;
use crate::support::{CAPACITY, KEY, Publish, config, keys, object};
use kv_events::Publisher;
use serde::Serialize;
use std::time::Duration;

/// A call that took long.
#[derive(Clone, Debug, Serialize)]
pub struct SlowCall {
    pub wall_us: f64,
    pub cpu_us: f64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl SlowCall {
    /// Whether it was off the processor for all but `work` of its time.
    pub fn is_scheduled(&self) -> bool {
        self.cpu_us < 1000.0 && self.voluntary_switches + self.involuntary_switches > 0
    }
}

/// What one pass came to, ns.
#[derive(Clone, Debug, Serialize)]
pub struct Stalled {
    pub mean: f64,
    /// The most processor time any one call used, us.
    pub most_cpu_us: f64,
    pub slow: Vec<SlowCall>,
}

/// What counts as slow.
const SLOW: u64 = 5_000_000;

/// All contenders, or those called `only`, in turn, `reps` times over.
pub fn interleaved(producers: usize, only: &Only, reps: usize, length: Length) -> Vec<(Who, Vec<Stalled>)> {
    let who = only.of([Who::ours(), Who::burst_1(), Who::Peer, Who::FrugalPeer]);
    let mut runs: Vec<_> = who.into_iter().map(|who| (who, Vec::new())).collect();
    for _ in 0..reps {
        for (who, runs) in &mut runs {
            runs.push(run(*who, producers, length.window / 2));
        }
    }
    runs
}

/// The median of the runs' means, ns.
pub fn mean(runs: &[Stalled]) -> f64 {
    median(runs.iter().map(|run| run.mean))
}

fn run(who: Who, producers: usize, length: Duration) -> Stalled {
    let gate = Gate::new(true);
    match who {
        Who::Ours { .. } => stalled(&ours(who, CAPACITY, &gate), &gate, producers, length),
        _ => stalled(&peer(who, CAPACITY, &gate), &gate, producers, length),
    }
}

/// Makes `count` calls.
pub fn calls(who: Who, count: u64) {
    let gate = Gate::new(true);
    match who {
        Who::Ours { .. } => make_calls(&ours(who, CAPACITY, &gate), &gate, count),
        _ => make_calls(&peer(who, CAPACITY, &gate), &gate, count),
    }
}

fn make_calls<P: Publish>(publisher: &P, gate: &Gate, count: u64) {
    fill(publisher, gate, CAPACITY);
    let keys = keys(KEY);
    for n in 0..count {
        publisher.stored(&object(&keys[n as usize % keys.len()]));
    }
    gate.set_open(true);
    publisher.finish();
}

pub fn ours(who: Who, capacity: usize, gate: &Gate) -> Publisher {
    let Who::Ours { burst, wait } = who else { unreachable!("ours") };
    let config = config(capacity).eviction_burst(burst).wait_strategy(wait);
    Publisher::start_with(config, gate.transport()).expect("a publisher")
}

pub fn peer(who: Who, capacity: usize, gate: &Gate) -> Peer {
    Peer::start_with(Settings { capacity, ..who.peer_settings() }, String::new(), gate.peer_sink())
}

/// Closes the gate, has the sender stand before it, and puts `depth` calls into the queue; how many that were in all.
pub fn fill<P: Publish>(publisher: &P, gate: &Gate, depth: usize) -> u64 {
    gate.set_open(false);
    publisher.stored(&object("stall"));
    gate.wait_for_sender();
    let keys = keys(KEY);
    for n in 0..depth {
        publisher.stored(&object(&keys[n % keys.len()]));
    }
    depth as u64 + 1
}

fn stalled<P: Publish>(publisher: &P, gate: &Gate, producers: usize, length: Duration) -> Stalled {
    // Twice over, so that every buffer and page is there.
    fill(publisher, gate, CAPACITY * 2);
    let from = now() + 20_000_000;
    let window = Window { from, until: from + length.as_nanos() as u64 };
    let calls = load::run(publisher, Load { timed: false, ..Load::new(producers, None) }, window);
    let (most_cpu, slow) = watch(publisher, producers, length);
    gate.set_open(true);
    publisher.finish();
    Stalled { mean: calls.wall as f64 / calls.count as f64, most_cpu_us: most_cpu as f64 / 1e3, slow }
}

fn watch<P: Publish>(publisher: &P, producers: usize, length: Duration) -> (u64, Vec<SlowCall>) {
    let until = now() + length.as_nanos() as u64;
    let one = || {
        let keys = keys(KEY);
        let (mut most, mut slow, mut n) = (0, Vec::new(), 0);
        while now() < until {
            let object = object(&keys[n % keys.len()]);
            n += 1;
            let (voluntary, involuntary) = switches();
            let (cpu, wall) = (thread_cpu(), now());
            publisher.stored(&object);
            let (wall, cpu) = (now() - wall, thread_cpu() - cpu);
            most = most.max(cpu);
            if wall > SLOW {
                let after = switches();
                slow.push(SlowCall {
                    wall_us: wall as f64 / 1e3,
                    cpu_us: cpu as f64 / 1e3,
                    voluntary_switches: after.0 - voluntary,
                    involuntary_switches: after.1 - involuntary,
                });
            }
        }
        (most, slow)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..producers).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a producer"))
            .fold((0, Vec::new()), |all, one| (all.0.max(one.0), [all.1, one.1].concat()))
    })
}
