//! Every pace and number of producers, ours and the peer's in turn: what a call costs, and when its event arrives.

use super::load::Load;
use super::run::{self, Length, Only, Sample, Who, median};
use crate::support::POLL;
use kv_events::WaitStrategy;
use serde::{Deserialize, Serialize};

/// Events per second, all producers together; `None` is flat out.
pub const RATES: [Option<f64>; 4] = [Some(1e3), Some(1e4), Some(1e5), None];
pub const PRODUCERS: [usize; 3] = [1, 2, 4];

/// One contender under one load.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Cell {
    /// What else there is to say of the load.
    pub case: String,
    pub who: String,
    pub producers: usize,
    pub rate: Option<f64>,
    /// Field by field the median of `samples`.
    pub median: Sample,
    pub samples: Vec<Sample>,
}

/// Every pace with every number of producers.
pub fn grid(rates: &[Option<f64>], producers: &[usize], only: &Only, reps: usize, length: Length) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &rate in rates {
        for &producers in producers {
            let load = Load::new(producers, rate);
            cells.extend(interleaved(&only.of(contenders(load)), load, reps, length));
        }
    }
    cells
}

fn contenders(load: Load) -> Vec<Who> {
    match (load.rate, load.producers) {
        (None, _) => vec![Who::ours(), Who::burst_1(), Who::Peer, Who::FrugalPeer, Who::Harness],
        (Some(rate), 1) if rate <= 1e3 => {
            vec![Who::ours(), Who::waiting(WaitStrategy::Park), Who::waiting(POLL), Who::Peer, Who::FrugalPeer]
        }
        _ => vec![Who::ours(), Who::Peer],
    }
}

fn interleaved(who: &[Who], load: Load, reps: usize, length: Length) -> Vec<Cell> {
    in_turn("", who, load, reps, |who| run::run(who, load, length, 1))
}

/// Runs all of `who` in turn, `reps` times over, so that what else the machine does meets them alike.
pub fn in_turn(case: &str, who: &[Who], load: Load, reps: usize, run: impl Fn(Who) -> Sample) -> Vec<Cell> {
    let mut samples = vec![Vec::new(); who.len()];
    for _ in 0..reps {
        for (who, samples) in who.iter().zip(&mut samples) {
            samples.push(run(*who));
        }
    }
    let cells = who.iter().zip(samples).map(|(who, samples)| Cell {
        case: case.to_owned(),
        who: who.name(),
        producers: load.producers,
        rate: load.rate,
        median: median_of(&samples),
        samples,
    });
    let cells: Vec<Cell> = cells.collect();
    eprintln!("{}", rows(&cells).join("\n"));
    cells
}

pub fn median_of(samples: &[Sample]) -> Sample {
    let one = |of: fn(&Sample) -> f64| median(samples.iter().map(of));
    let many = |of: fn(&Sample) -> &Vec<u64>| -> Vec<u64> {
        (0..of(&samples[0]).len()).map(|at| median(samples.iter().map(|sample| of(sample)[at] as f64)) as u64).collect()
    };
    Sample {
        service: many(|sample| &sample.service),
        response: many(|sample| &sample.response),
        mean: one(|sample| sample.mean),
        cpu: one(|sample| sample.cpu),
        process_cpu: one(|sample| sample.process_cpu),
        calls_per_s: one(|sample| sample.calls_per_s),
        delivered_per_s: one(|sample| sample.delivered_per_s),
        events_per_message: one(|sample| sample.events_per_message),
        receive: many(|sample| &sample.receive),
        made: one(|sample| sample.made as f64) as u64,
        evicted: one(|sample| sample.evicted as f64) as u64,
        // The most there were in any run: none is what was promised.
        waits: samples.iter().filter_map(|sample| sample.waits).max(),
        lost: one(|sample| sample.lost as f64) as u64,
    }
}

/// `evicted` is the share of calls whose place had to be made at the cost of the oldest; `waits` are voluntary context
/// switches inside calls, in the run that had most of them.
pub fn table(cells: &[Cell]) -> String {
    let head = "| events/s | producers | | evicted | call p50 | p99 | p99.9 | p99.99 | max | from due p50 | p99.9 | mean | CPU | waits | delivered/s | to receive p50 | p99 | p99.9 |\n\
                |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";
    format!("{head}\n{}\n", rows(cells).join("\n"))
}

fn rows(cells: &[Cell]) -> Vec<String> {
    let row = |cell: &Cell| {
        let Sample { service, response, receive, mean, cpu, delivered_per_s, .. } = &cell.median;
        let at = |of: &Vec<u64>, at: usize| of.get(at).map_or_else(|| "-".into(), |ns| time(*ns as f64));
        let pace = cell.rate.map_or("flat out".into(), |rate| format!("{rate}"));
        let row = [
            if cell.case.is_empty() { pace } else { format!("{pace}, {}", cell.case) },
            cell.producers.to_string(),
            cell.who.clone(),
            share(cell.median.evicted, cell.median.made),
            at(service, 0),
            at(service, 2),
            at(service, 3),
            at(service, 4),
            at(service, 6),
            at(response, 0),
            at(response, 3),
            time(*mean),
            time(*cpu),
            cell.median.waits.map_or("-".into(), |waits| waits.to_string()),
            count(*delivered_per_s),
            at(receive, 0),
            at(receive, 2),
            at(receive, 3),
        ];
        format!("| {} |", row.join(" | "))
    };
    cells.iter().map(row).collect()
}

/// None is 0; anything else is shown, however little.
fn share(part: u64, all: u64) -> String {
    match part {
        0 => "0".into(),
        part => format!("{:.3} %", part as f64 * 100.0 / all.max(1) as f64),
    }
}

/// Nanoseconds as people write them.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e5 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

pub fn count(n: f64) -> String {
    match n {
        n if n < 1e3 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.0}k", n / 1e3),
        n => format!("{:.2}M", n / 1e6),
    }
}
