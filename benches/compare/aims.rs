//! What the crate promises against the peer, and whether this run bears it out.

use super::alloc::{self, Allocations};
use super::ceiling;
use super::latency::{Cell, PRODUCERS, count, time};
use super::memory::{self, Peak};
use super::run::{Length, Only, Who, median};
use super::stalled::{self, SlowCall, Stalled};
use crate::support::{CAPACITY, POLL};
use kv_events::WaitStrategy;
use serde::Serialize;

/// One aim.
#[derive(Clone, Debug, Serialize)]
pub struct Aim {
    pub what: String,
    pub ours: String,
    pub peer: String,
    pub ratio: f64,
    pub bound: String,
    pub met: bool,
}

impl Aim {
    fn at_most(what: String, ours: String, peer: String, ratio: f64, bound: f64) -> Aim {
        Aim { what, ours, peer, ratio, bound: format!("at most {bound}"), met: ratio <= bound }
    }

    fn at_least(what: String, ours: String, peer: String, ratio: f64, bound: f64) -> Aim {
        Aim { what, ours, peer, ratio, bound: format!("at least {bound}"), met: ratio >= bound }
    }
}

/// Aims that the latency cells answer.
pub fn of_cells(cells: &[Cell]) -> Vec<Aim> {
    let mut aims = Vec::new();
    for (producers, p50) in [(1, 0.5), (4, 0.4)] {
        let [ours, peer] = ["ours", "peer"].map(|who| find(cells, who, producers, None));
        let mut compare = |what: &str, of: fn(&Cell) -> f64, bound: f64| {
            let what = format!("flat out, {producers} producers: {what}");
            let (ours, peer) = (of(ours), of(peer));
            aims.push(Aim::at_most(what, time(ours), time(peer), ours / peer, bound));
        };
        compare("call p50", |cell| cell.median.service[0] as f64, p50);
        compare("call p99.9", |cell| cell.median.service[3] as f64, 0.05);
        compare("CPU per call", |cell| cell.median.cpu, 0.55);
        let [ours, peer] = [ours, peer].map(|cell| cell.median.delivered_per_s);
        let what = format!("flat out, {producers} producers: delivered events/s");
        aims.push(Aim::at_least(what, count(ours), count(peer), ours / peer, 6.0));
    }
    let p50 = |who: Who| find(cells, &who.name(), 1, Some(1e3)).median.service[0] as f64;
    let (park, poll, peer) = (p50(Who::waiting(WaitStrategy::Park)), p50(Who::waiting(POLL)), p50(Who::Peer));
    let what = "one call per ms, parked sender: p50".to_owned();
    aims.push(Aim::at_most(what, time(park), time(peer), park / peer, 0.2));
    let what = "one call per ms, polling sender: p50, us".to_owned();
    aims.push(Aim::at_most(what, time(poll), time(peer), poll / 1e3, 1.0));
    aims
}

fn find<'a>(cells: &'a [Cell], who: &str, producers: usize, rate: Option<f64>) -> &'a Cell {
    let this = |cell: &&Cell| cell.who == who && cell.producers == producers && cell.rate == rate;
    cells.iter().find(this).expect("a cell that was run")
}

/// What else was measured for the aims.
#[derive(Clone, Debug, Serialize)]
pub struct Extra {
    pub raw_ceiling: Vec<f64>,
    pub lossless_share: Vec<(usize, Vec<f64>)>,
    pub stalled: Vec<(String, usize, Vec<Stalled>)>,
    pub allocations: Vec<(String, Allocations)>,
    pub memory: Vec<(String, Peak)>,
}

/// Measures what the latency cells do not show.
pub fn extra(reps: usize, length: Length) -> (Extra, Vec<Aim>) {
    let mut aims = Vec::new();
    let (raw_ceiling, lossless_share) = shares(reps, length, &mut aims);
    let stalled = stalled(reps, length, &mut aims);
    let mut allocations = Vec::new();
    for (pace, flat_out) in [("flat out", true), ("paced", false)] {
        let [ours, peer] = [Who::ours(), Who::Peer].map(|who| alloc::measure(who, flat_out));
        let text = |all: Allocations| format!("{:.4} + {:.4}", all.caller, all.sender);
        let what = format!("{pace}: allocations per event, caller + sender");
        // Less than one in ten thousand events: what the runtime does now and then.
        aims.push(Aim::at_most(what, text(ours), text(peer), ours.caller + ours.sender, 1e-4));
        allocations.extend([(format!("ours, {pace}"), ours), (format!("peer, {pace}"), peer)]);
    }
    let [ours, peer] = [Who::ours(), Who::Peer].map(memory::measure);
    let text = |mib: f64| format!("{mib:.0} MiB");
    aims.push(Aim::at_most(
        format!("memory at {CAPACITY} calls queued, as a share of what is documented"),
        text(ours.queue),
        text(peer.queue),
        ours.queue / documented_mib(),
        1.0,
    ));
    aims.push(Aim::at_most(
        "memory with a stalled subscriber".to_owned(),
        text(ours.stalled_subscriber),
        text(peer.stalled_subscriber),
        ours.stalled_subscriber / peer.stalled_subscriber,
        1.1,
    ));
    let memory = vec![("ours".into(), ours), ("peer".into(), peer)];
    (Extra { raw_ceiling, lossless_share, stalled, allocations, memory }, aims)
}

/// What the documentation of `queue_capacity` says, and 2 MiB for the thread's stack and the like.
fn documented_mib() -> f64 {
    CAPACITY as f64 * 450.0 / f64::from(1 << 20) + 2.0
}

/// What can be sent without a loss with 1 and 4 producers: the bare socket's figures, and the shares.
pub fn shares(reps: usize, length: Length, aims: &mut Vec<Aim>) -> (Vec<f64>, Vec<(usize, Vec<f64>)>) {
    let (mut raw, mut shares) = (Vec::new(), [(1, Vec::new()), (4, Vec::new())]);
    for _ in 0..reps {
        let ceiling = ceiling::raw(length);
        for (producers, shares) in &mut shares {
            shares.push(ceiling::lossless_share(Who::ours(), *producers, ceiling, length));
        }
        eprintln!(
            "raw zmq {}, lossless {:.2} and {:.2} of it",
            count(ceiling),
            shares[0].1.last().unwrap_or(&0.0),
            shares[1].1.last().unwrap_or(&0.0)
        );
        raw.push(ceiling);
    }
    let ceiling = median(raw.iter().copied());
    for ((producers, shares), bound) in shares.iter().zip([0.75, 0.65]) {
        let share = median(shares.iter().copied());
        let what = format!("paced, {producers} producers, nothing lost: share of raw zmq ({})", count(ceiling));
        aims.push(Aim::at_least(what, count(share * ceiling), "-".into(), share, bound));
    }
    (raw, shares.into())
}

fn stalled(reps: usize, length: Length, aims: &mut Vec<Aim>) -> Vec<(String, usize, Vec<Stalled>)> {
    let mut all = Vec::new();
    for producers in PRODUCERS {
        let runs = stalled::interleaved(producers, &Only::default(), reps, length);
        let mean = |of: Who| runs.iter().find(|(who, _)| *who == of).map_or(f64::NAN, |(_, runs)| stalled::mean(runs));
        let (peer, frugal) = (mean(Who::Peer), mean(Who::FrugalPeer));
        for who in [Who::ours(), Who::burst_1()] {
            let what = format!("full queue, sender stalled, {producers} producers, {}: mean", who.name());
            let ours = mean(who);
            let peers = format!("{} (frugal {})", time(peer), time(frugal));
            aims.push(Aim::at_most(what, time(ours), peers, ours / peer, 1.0));
        }
        all.extend(runs.into_iter().map(|(who, runs)| (who.name(), producers, runs)));
    }
    let slow = |ours: bool| -> Vec<&SlowCall> {
        let runs = all.iter().filter(|(who, ..)| who.starts_with("ours") == ours).flat_map(|(.., runs)| runs);
        runs.flat_map(|run| &run.slow).collect()
    };
    let (ours, peer) = (slow(true), slow(false));
    let unexplained = ours.iter().filter(|call| !call.is_scheduled()).count();
    aims.push(Aim::at_most(
        "full queue: calls above 5 ms that the scheduler did not cause".to_owned(),
        format!("{unexplained} of {}", ours.len()),
        format!("{} of {}", peer.iter().filter(|call| !call.is_scheduled()).count(), peer.len()),
        unexplained as f64,
        0.0,
    ));
    all
}

pub fn table(aims: &[Aim]) -> String {
    let mut table = "| | ours | peer | ratio | aim | |\n|---|---|---|---|---|---|\n".to_owned();
    for aim in aims {
        let met = if aim.met { "met" } else { "**not met**" };
        let Aim { what, ours, peer, ratio, bound, .. } = aim;
        table += &format!("| {what} | {ours} | {peer} | {ratio:.3} | {bound} | {met} |\n");
    }
    table
}
