//! The two transports under the same loads, in turn: what is delivered flat out, when an event is received, what an event
//! costs, and what a burst loses.

use super::latency::{Cell, count, in_turn, time};
use super::load::Load;
use super::run::{self, Length, Only, Who};
use kv_events::{TransportKind, WaitStrategy};
use std::time::Duration;

const SUBSCRIBERS: [usize; 3] = [1, 4, 16];

/// Events of the burst, and its pace.
const BURST: f64 = 1e6;
const BURST_RATE: f64 = 3e6;

fn both(wait: WaitStrategy) -> Vec<Who> {
    [TransportKind::Zmq, TransportKind::Native].map(|kind| Who::On { kind, wait }).into()
}

/// All cases, or those whose name contains one of `cases`.
pub fn cells(cases: &[String], only: &Only, reps: usize, length: Length) -> Vec<Cell> {
    let (nap, park) = (WaitStrategy::default(), WaitStrategy::Park);
    let mut cells = Vec::new();
    let mut add = |name: &str, wait: WaitStrategy, load: Load, length: Length| {
        for subscribers in SUBSCRIBERS {
            let case = format!("{name}, {subscribers} subscribers");
            if cases.is_empty() || cases.iter().any(|wanted| case.contains(wanted.as_str())) {
                let who = only.of(both(wait));
                cells.extend(in_turn(&case, &who, load, reps, |who| run::run(who, load, length, subscribers)));
            }
        }
    };
    for producers in [1, 4] {
        add("flat out", nap, Load::new(producers, None), length);
    }
    add("receipt", nap, Load::new(1, Some(1e3)), length);
    add("receipt, parked", park, Load::new(1, Some(1e3)), length);
    for rate in [5e4, 2e5] {
        add("cost", nap, Load { timed: false, ..Load::new(1, Some(rate)) }, length);
    }
    let burst = Length { warm_up: Duration::ZERO, window: Duration::from_secs_f64(BURST / BURST_RATE) };
    add("burst", nap, Load { timed: false, ..Load::new(1, Some(BURST_RATE)) }, burst);
    cells
}

/// `CPU` is that of the whole process for an event at a subscriber; `without callers` leaves out what the producers took
/// themselves. `lost` are the events that subscribers did not get, summed over
/// them.
pub fn table(cells: &[Cell]) -> String {
    let head = "| load | producers | | delivered/s | to receive p50 | p99 | CPU | without callers | made | evicted | lost |\n\
                |---|---|---|---|---|---|---|---|---|---|---|";
    let row = |cell: &Cell| {
        let sample = &cell.median;
        let pace = cell.rate.map_or_else(String::new, |rate| format!(" at {}/s", count(rate)));
        let at = |at: usize| sample.receive.get(at).map_or_else(|| "-".into(), |ns| time(*ns as f64));
        // Of the calls in the window, by the events that arrived.
        let callers = sample.cpu * sample.calls_per_s / sample.delivered_per_s;
        format!(
            "| {}{pace} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cell.case,
            cell.producers,
            cell.who,
            count(sample.delivered_per_s),
            at(0),
            at(2),
            time(sample.process_cpu),
            time(sample.process_cpu - callers),
            sample.made,
            sample.evicted,
            sample.lost,
        )
    };
    let rows: Vec<String> = cells.iter().map(row).collect();
    format!("{head}\n{}\n", rows.join("\n"))
}
