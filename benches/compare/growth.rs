//! How cost grows: with producers, with the length of the key, with what is queued, with subscribers.

use super::clock::now;
use super::latency::{count, time};
use super::load::Load;
use super::run::{self, Length, Sample, Who, median};
use super::stalled::fill;
use crate::support::peer::{Peer, Settings};
use crate::support::sinks::Gate;
use crate::support::{CAPACITY, KEY, Publish, config, keys, object};
use kv_events::Publisher;
use serde::Serialize;

/// One point: ours and the peer's, medians.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub x: usize,
    /// A call's p50, ns.
    pub p50: [f64; 2],
    /// Processor time of a call, ns.
    pub cpu: [f64; 2],
    /// Events per second at each subscriber; nothing where nothing is delivered.
    pub delivered: [Option<f64>; 2],
}

/// One way to grow.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    pub what: &'static str,
    pub points: Vec<Point>,
}

const WHO: [Who; 2] =
    [Who::Ours { burst: 16, wait: kv_events::WaitStrategy::Nap(std::time::Duration::from_micros(50)) }, Who::Peer];

pub fn sweeps(reps: usize, length: Length) -> Vec<Sweep> {
    let flat = Load { producers: 1, rate: None, timed: true, key: KEY };
    let sweep = |what, xs: &[usize], load: fn(Load, usize) -> (Load, usize)| {
        let points = xs.iter().map(|&x| {
            let (load, subscribers) = load(flat, x);
            point(x, load, subscribers, reps, length)
        });
        Sweep { what, points: points.collect() }
    };
    vec![
        sweep("producers", &[1, 2, 3, 4, 6, 8], |load, x| (Load { producers: x, ..load }, 1)),
        sweep("key bytes", &[20, 100, 256, 512, 1024, 2048, 4096], |load, x| (Load { key: x, ..load }, 1)),
        sweep("subscribers", &[0, 1, 2, 4], |load, x| (load, x)),
        Sweep { what: "calls queued, sender stalled", points: depths(reps) },
    ]
}

fn point(x: usize, load: Load, subscribers: usize, reps: usize, length: Length) -> Point {
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..reps {
        for (who, samples) in WHO.iter().zip(&mut samples) {
            samples.push(run::run(*who, load, length, subscribers));
        }
    }
    let of = |what: fn(&Sample) -> f64| [0, 1].map(|who: usize| median(samples[who].iter().map(what)));
    let delivered = of(|sample| sample.delivered_per_s);
    Point {
        x,
        p50: of(|sample| sample.service[0] as f64),
        cpu: of(|sample| sample.cpu),
        delivered: delivered.map(|all| (subscribers > 0).then(|| all / subscribers as f64)),
    }
}

/// Calls timed at one depth.
const PROBES: usize = 2048;

fn depths(reps: usize) -> Vec<Point> {
    let depths = [0, CAPACITY / 8, CAPACITY / 4, CAPACITY / 2, CAPACITY * 3 / 4, CAPACITY - PROBES, CAPACITY];
    let measure = |depth: usize| {
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..reps {
            let gate = Gate::new(true);
            let opened = gate.opened();
            let publisher = Publisher::start_with(config(CAPACITY), || Ok(opened)).expect("a publisher");
            costs[0].push(at_depth(&publisher, &gate, depth));
            let gate = Gate::new(true);
            let peer = Peer::start_with(Settings::new(CAPACITY), String::new(), gate.peer_sink());
            costs[1].push(at_depth(&peer, &gate, depth));
        }
        let costs = costs.map(|costs| median(costs.iter().copied()));
        Point { x: depth, p50: costs, cpu: costs, delivered: [None; 2] }
    };
    depths.into_iter().map(measure).collect()
}

/// What a call costs with `depth` calls queued: the mean over a stretch in which the depth hardly changes.
fn at_depth<P: Publish>(publisher: &P, gate: &Gate, depth: usize) -> f64 {
    // Every buffer exists and has been used, and the queue has been empty again.
    let made = fill(publisher, gate, CAPACITY * 2);
    gate.set_open(true);
    while publisher.settled() < made {
        std::thread::yield_now();
    }
    fill(publisher, gate, depth);
    let keys = keys(KEY);
    let start = now();
    for n in 0..PROBES {
        publisher.stored(&object(&keys[n % keys.len()]));
    }
    let cost = (now() - start) as f64 / PROBES as f64;
    gate.set_open(true);
    publisher.finish();
    cost
}

pub fn table(sweeps: &[Sweep]) -> String {
    let mut table = String::new();
    for sweep in sweeps {
        table += &format!(
            "| {} | call p50, ours | peer | CPU, ours | peer | delivered/s, ours | peer |\n|---|---|---|---|---|---|---|\n",
            sweep.what
        );
        for point in &sweep.points {
            let [ours, peer] = point.p50.map(time);
            let [cpu, peer_cpu] = point.cpu.map(time);
            let [delivered, peer_delivered] = point.delivered.map(|all| all.map_or("-".into(), count));
            table +=
                &format!("| {} | {ours} | {peer} | {cpu} | {peer_cpu} | {delivered} | {peer_delivered} |\n", point.x);
        }
        table += "\n";
    }
    table
}
