//! Flat out into a queue that fills and does not evict: what a call costs whose buffer comes from the pool.
//!
//! Producers make as many calls in a round as there is room for, and wait until all of them were sent before the next. So
//! nothing is evicted whatever the sender does, and it drains all the while. In the first rounds buffers are made; they do
//! not count.

use super::clock::now;
use super::latency::{Cell, in_turn};
use super::load::{self, Calls, Load};
use super::run::{Length, Only, Sample, Who, start_ours};
use super::subscriber::Subscriber;
use crate::support::Publish;
use crate::support::peer::{Peer, Settings};

/// The usual room: four times the default, and more than caches hold.
pub const CAPACITY: usize = 1 << 18;
pub const PRODUCERS: [usize; 4] = [1, 2, 4, 8];

const WARM_UP: usize = 2;

pub fn cells(producers: &[usize], capacity: usize, only: &Only, reps: usize, length: Length) -> Vec<Cell> {
    let who = only.of([Who::ours(), Who::burst_1(), Who::Peer, Who::FrugalPeer]);
    let cell = |&producers: &usize| {
        let load = Load::new(producers, None);
        in_turn(&format!("room for {capacity}"), &who, load, reps, |who| run(who, load, capacity, length))
    };
    producers.iter().flat_map(cell).collect()
}

fn run(who: Who, load: Load, capacity: usize, length: Length) -> Sample {
    match who {
        Who::Ours { burst, wait } => run_on(&start_ours(capacity, burst, wait), load, capacity, length),
        _ => run_on(&Peer::start(Settings { capacity, ..who.peer_settings() }), load, capacity, length),
    }
}

fn run_on<P: Publish>(publisher: &P, load: Load, capacity: usize, length: Length) -> Sample {
    let subscriber = Subscriber::join(publisher, false);
    // What the probes left has long been sent by the time the first rounds are over.
    let each = (capacity - capacity / 16) as u64 / load.producers as u64;
    let round = |settled: u64| {
        let start = now();
        let calls = load::run_calls(publisher, load, each);
        let settled = settled + each * load.producers as u64;
        while publisher.settled() < settled {
            std::thread::yield_now();
        }
        (calls, now() - start, settled)
    };
    std::thread::sleep(length.warm_up.min(std::time::Duration::from_millis(50)));
    let probes = publisher.settled();
    let mut settled = probes;
    for _ in 0..WARM_UP {
        settled = round(settled).2;
    }
    let (mut calls, mut time, mut producing) = (Calls::new(), 0, 0);
    while producing < length.window.as_nanos() as u64 * load.producers as u64 {
        let (made, took, now_settled) = round(settled);
        producing += made.wall;
        time += took;
        settled = now_settled;
        calls = calls.merge(made);
    }
    let evicted = publisher.evicted();
    publisher.finish();
    let received = subscriber.end();
    Sample {
        delivered_per_s: calls.made as f64 * 1e9 / time as f64,
        evicted,
        made: settled - probes,
        lost: received.missed,
        ..Sample::of_calls(&calls)
    }
}
