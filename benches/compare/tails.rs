//! The slowest calls: on a full queue whose sender stands still, on one that overflows while it is drained, and on one that
//! the sender keeps up with; with nothing else on the machine, and with as many busy threads beside as there are processors.
//!
//! Messages go nowhere (`support/sinks.rs`), so that neither ZeroMQ nor a subscriber takes a part of the machine.

use super::clock::now;
use super::latency::{Cell, in_turn};
use super::load::{self, Load, Window};
use super::run::{Length, Only, Sample, Who};
use super::stalled::{fill, ours, peer};
use crate::support::sinks::Gate;
use crate::support::{CAPACITY, Publish};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

/// A queue that is soon full.
const SMALL: usize = 1024;

/// What becomes of what is queued.
#[derive(Clone, Copy)]
struct State {
    name: &'static str,
    capacity: usize,
    drains: bool,
}

const STALLED: State = State { name: "stalled", capacity: SMALL, drains: false };
const DRAINING: State = State { name: "draining", capacity: SMALL, drains: true };
const DRAINED: State = State { name: "draining", capacity: CAPACITY, drains: true };

/// A full queue, at `rate` or flat out.
pub fn full(producers: &[usize], rate: Option<f64>, only: &Only, reps: usize, length: Length) -> Vec<Cell> {
    let who = only.of([Who::ours(), Who::burst_1(), Who::Peer, Who::FrugalPeer]);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cells = Vec::new();
    for state in [STALLED, DRAINING] {
        for busy in [0, processors] {
            for &producers in producers {
                let load = Load { watched: true, ..Load::new(producers, rate) };
                cells.extend(cell(&who, state, busy, load, reps, length));
            }
        }
    }
    cells
}

/// What evicting several calls at once is worth.
pub fn bursts(producers: &[usize], reps: usize, length: Length) -> Vec<Cell> {
    let who = [1, 4, 16].map(Who::burst);
    let cell = |state, producers| cell(&who, state, 0, Load::new(producers, None), reps, length);
    let all = [STALLED, DRAINING, DRAINED].into_iter();
    all.flat_map(|state| producers.iter().flat_map(move |&producers| cell(state, producers))).collect()
}

fn cell(who: &[Who], state: State, busy: usize, load: Load, reps: usize, length: Length) -> Vec<Cell> {
    let State { name, capacity, .. } = state;
    let beside = if busy == 0 { String::new() } else { format!(", {busy} busy threads beside") };
    let case = format!("{name}, room for {capacity}{beside}");
    in_turn(&case, who, load, reps, |who| {
        let gate = Gate::new(true);
        match who {
            Who::Ours { .. } => run(&ours(who, capacity, &gate), &gate, state, busy, load, length),
            _ => run(&peer(who, capacity, &gate), &gate, state, busy, load, length),
        }
    })
}

fn run<P: Publish>(publisher: &P, gate: &Gate, state: State, busy: usize, load: Load, length: Length) -> Sample {
    // Twice over, so that every buffer and page is there.
    let filled = fill(publisher, gate, state.capacity * 2);
    if state.drains {
        gate.set_open(true);
    }
    let stop = AtomicBool::new(false);
    let sent = || publisher.settled() - publisher.evicted();
    let (calls, sent, time) = std::thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let start = now();
        let from = start + length.warm_up.as_nanos() as u64;
        let before = sent();
        let calls = load::run(publisher, load, Window { from, until: from + length.window.as_nanos() as u64 });
        let (sent, time) = (sent() - before, now() - start);
        stop.store(true, Ordering::Relaxed);
        (calls, sent, time)
    });
    let evicted = publisher.evicted();
    gate.set_open(true);
    publisher.finish();
    Sample {
        delivered_per_s: sent as f64 * 1e9 / time as f64,
        evicted,
        made: calls.made + filled,
        ..Sample::of_calls(&calls)
    }
}
