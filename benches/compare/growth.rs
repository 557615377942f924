//! How cost grows: with producers, with the length of the key, with what is queued, with subscribers.

use super::clock::now;
use super::latency::{count, time};
use super::load::Load;
use super::run::{self, Length, Only, Sample, Who, median};
use super::stalled::fill;
use crate::support::peer::{Peer, Settings};
use crate::support::sinks::Gate;
use crate::support::{CAPACITY, KEY, Publish, config, keys, object};
use kv_events::Publisher;
use serde::{Deserialize, Serialize};

/// One point: ours and the peer's, medians; nothing for who was not asked for.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Point {
    pub x: usize,
    /// A call's p50, ns.
    pub p50: [Option<f64>; 2],
    /// Its p99.99, ns; nothing where too few calls are made.
    pub p9999: [Option<f64>; 2],
    /// Processor time of a call, ns.
    pub cpu: [Option<f64>; 2],
    /// Events per second at each subscriber; nothing where nothing is delivered.
    pub delivered: [Option<f64>; 2],
}

/// One way to grow.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Sweep {
    pub what: String,
    pub points: Vec<Point>,
}

const WHO: [Who; 2] =
    [Who::Ours { burst: 16, wait: kv_events::WaitStrategy::Nap(std::time::Duration::from_micros(50)) }, Who::Peer];

const PRODUCERS: &str = "producers";
const KEY_BYTES: &str = "key bytes";
const SUBSCRIBERS: &str = "subscribers";
const DEPTHS: &str = "calls queued, sender stalled";

/// The ways to grow that begin with one of `wanted`; all if there is none.
pub fn sweeps(wanted: &[String], only: &Only, reps: usize, length: Length) -> Vec<Sweep> {
    let flat = Load::new(1, None);
    let sweep = |what: &str, xs: &[usize], load: fn(Load, usize) -> (Load, usize)| {
        let points = xs.iter().map(|&x| {
            let (load, subscribers) = load(flat, x);
            point(x, load, subscribers, only, reps, length)
        });
        Sweep { what: what.to_owned(), points: points.collect() }
    };
    let wanted = |what: &&str| wanted.is_empty() || wanted.iter().any(|wanted| what.starts_with(wanted.as_str()));
    let one = |what: &str| match what {
        PRODUCERS => sweep(what, &[1, 2, 3, 4, 6, 8, 12, 16], |load, x| (Load { producers: x, ..load }, 1)),
        KEY_BYTES => sweep(what, &[20, 100, 256, 512, 1024, 2048, 4096], |load, x| (Load { key: x, ..load }, 1)),
        SUBSCRIBERS => sweep(what, &[0, 1, 2, 4], |load, x| (load, x)),
        _ => Sweep { what: what.to_owned(), points: depths(reps) },
    };
    [PRODUCERS, KEY_BYTES, SUBSCRIBERS, DEPTHS].into_iter().filter(wanted).map(one).collect()
}

fn point(x: usize, load: Load, subscribers: usize, only: &Only, reps: usize, length: Length) -> Point {
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..reps {
        for (who, samples) in WHO.iter().zip(&mut samples) {
            if !only.of([*who]).is_empty() {
                samples.push(run::run(*who, load, length, subscribers));
            }
        }
    }
    let of = |what: fn(&Sample) -> f64| {
        let one = |samples: &Vec<Sample>| (!samples.is_empty()).then(|| median(samples.iter().map(what)));
        samples.each_ref().map(one)
    };
    let delivered = of(|sample| sample.delivered_per_s);
    let point = Point {
        x,
        p50: of(|sample| sample.service[0] as f64),
        p9999: of(|sample| sample.service[4] as f64),
        cpu: of(|sample| sample.cpu),
        delivered: delivered.map(|all| all.filter(|_| subscribers > 0).map(|all| all / subscribers as f64)),
    };
    eprintln!("{point:?}");
    point
}

/// Calls timed at one depth.
const PROBES: usize = 2048;

fn depths(reps: usize) -> Vec<Point> {
    let depths = [0, CAPACITY / 8, CAPACITY / 4, CAPACITY / 2, CAPACITY * 3 / 4, CAPACITY - PROBES, CAPACITY];
    let measure = |depth: usize| {
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..reps {
            let gate = Gate::new(true);
            let publisher = Publisher::start_with(config(CAPACITY), gate.transport()).expect("a publisher");
            costs[0].push(at_depth(&publisher, &gate, depth));
            let gate = Gate::new(true);
            let peer = Peer::start_with(Settings::new(CAPACITY), String::new(), gate.peer_sink());
            costs[1].push(at_depth(&peer, &gate, depth));
        }
        let costs = costs.map(|costs| Some(median(costs.iter().copied())));
        Point { x: depth, p50: costs, p9999: [None; 2], cpu: costs, delivered: [None; 2] }
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
            "| {} | call p50, ours | peer | p99.99, ours | peer | CPU, ours | peer | delivered/s, ours | peer |\n|---|---|---|---|---|---|---|---|---|\n",
            sweep.what
        );
        let cell = |value: Option<f64>, text: fn(f64) -> String| value.map_or("-".into(), text);
        for point in &sweep.points {
            let times = [point.p50, point.p9999, point.cpu].concat();
            let times = times.into_iter().map(|ns| cell(ns, time));
            let all: Vec<String> = times.chain(point.delivered.map(|all| cell(all, count))).collect();
            table += &format!("| {} | {} |\n", point.x, all.join(" | "));
        }
        table += "\n";
    }
    table
}
