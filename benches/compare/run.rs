//! One run: a publisher, its subscribers in other processes, a load; and what came of it.

use super::clock::{now, process_cpu};
use super::load::{self, Calls, Load, Window};
use super::subscriber::{QUANTILES, Received, Subscriber};
use crate::support::peer::{Peer, Settings};
use crate::support::{CAPACITY, Nothing, Publish, config};
use kv_events::{Publisher, TransportKind, WaitStrategy, recommended_eviction_burst};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Who {
    Ours {
        burst: usize,
        wait: WaitStrategy,
    },
    /// Ours on this transport.
    On {
        kind: TransportKind,
        wait: WaitStrategy,
    },
    Peer,
    /// See [`Settings::frugal`].
    FrugalPeer,
    /// The measuring itself.
    Harness,
}

impl Who {
    /// With the recommended settings.
    pub fn ours() -> Who {
        Who::Ours { burst: recommended_eviction_burst(CAPACITY), wait: WaitStrategy::default() }
    }

    pub fn waiting(wait: WaitStrategy) -> Who {
        Who::Ours { burst: recommended_eviction_burst(CAPACITY), wait }
    }

    pub fn burst_1() -> Who {
        Who::burst(1)
    }

    pub fn burst(burst: usize) -> Who {
        Who::Ours { burst, wait: WaitStrategy::default() }
    }

    /// Ours by the burst, or `peer`.
    pub fn named(name: &str) -> Who {
        match name.parse() {
            Ok(burst) => Who::Ours { burst, wait: WaitStrategy::default() },
            Err(_) => Who::Peer,
        }
    }

    pub fn peer_settings(self) -> Settings {
        Settings { frugal: self == Who::FrugalPeer, ..Settings::new(CAPACITY) }
    }

    pub fn name(self) -> String {
        let standard = Who::ours();
        match self {
            Who::Peer => "peer".into(),
            Who::FrugalPeer => "frugal peer".into(),
            Who::Harness => "harness".into(),
            Who::On { kind, .. } => kind.to_string(),
            ours if ours == standard => "ours".into(),
            Who::Ours { burst, wait } if wait == WaitStrategy::default() => format!("ours, burst {burst}"),
            Who::Ours { wait, .. } => format!("ours, {wait}"),
        }
    }
}

/// The names of those who are measured; all of them if there is none.
#[derive(Clone, Debug, Default)]
pub struct Only(pub Vec<String>);

impl Only {
    pub fn of(&self, who: impl IntoIterator<Item = Who>) -> Vec<Who> {
        who.into_iter().filter(|who| self.0.is_empty() || self.0.contains(&who.name())).collect()
    }
}

pub fn start_ours(capacity: usize, burst: usize, wait: WaitStrategy) -> Publisher {
    Publisher::start(config(capacity).eviction_burst(burst).wait_strategy(wait)).expect("a publisher")
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub warm_up: Duration,
    pub window: Duration,
}

/// What one run came to. Times in ns.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Sample {
    /// The call alone, at [`QUANTILES`].
    pub service: Vec<u64>,
    /// From when the call was due, at [`QUANTILES`]; empty flat out.
    pub response: Vec<u64>,
    /// Wall time of a producer per call.
    pub mean: f64,
    /// Processor time of a producer per call.
    pub cpu: f64,
    /// Processor time of the publisher's whole process per delivered event.
    pub process_cpu: f64,
    pub calls_per_s: f64,
    /// Events per second at the subscribers, summed.
    pub delivered_per_s: f64,
    pub events_per_message: f64,
    /// From the call to the subscriber, at [`QUANTILES`].
    pub receive: Vec<u64>,
    /// Calls ever, those before what counts too.
    pub made: u64,
    /// Events evicted, of all those calls.
    pub evicted: u64,
    /// Voluntary context switches inside calls; `None` if nobody looked.
    pub waits: Option<u64>,
    /// Events that a subscriber missed, by its sequence or by the number of calls.
    pub lost: u64,
}

impl Sample {
    /// What the callers saw; nothing of what became of their events.
    pub fn of_calls(calls: &Calls) -> Sample {
        let of = |histogram: &hdrhistogram::Histogram<u64>| {
            if histogram.is_empty() { Vec::new() } else { QUANTILES.map(|q| histogram.value_at_quantile(q)).into() }
        };
        Sample {
            service: of(&calls.service),
            response: of(&calls.response),
            mean: calls.wall as f64 / calls.count as f64,
            cpu: calls.cpu as f64 / calls.count as f64,
            process_cpu: 0.0,
            calls_per_s: 0.0,
            delivered_per_s: 0.0,
            events_per_message: 0.0,
            receive: Vec::new(),
            made: calls.made,
            evicted: 0,
            waits: calls.waits,
            lost: 0,
        }
    }
}

pub fn run(who: Who, load: Load, length: Length, subscribers: usize) -> Sample {
    match who {
        Who::Ours { burst, wait } => run_on(&start_ours(CAPACITY, burst, wait), load, length, subscribers),
        Who::Peer | Who::FrugalPeer => run_on(&Peer::start(who.peer_settings()), load, length, subscribers),
        Who::On { kind, wait } => {
            let config = config(CAPACITY).wait_strategy(wait).transport(kind);
            run_on(&Publisher::start(config).expect("a publisher"), load, length, subscribers)
        }
        Who::Harness => run_on(&Nothing, load, length, 0),
    }
}

fn run_on<P: Publish>(publisher: &P, load: Load, length: Length, subscribers: usize) -> Sample {
    let every = load.timed && load.rate.is_some();
    let mut subscribers: Vec<_> = (0..subscribers).map(|_| Subscriber::join(publisher, every)).collect();
    let from = now() + length.warm_up.as_nanos() as u64 + 20_000_000;
    let window = Window { from, until: from + length.window.as_nanos() as u64 };
    for subscriber in &mut subscribers {
        subscriber.tell_window(window);
    }
    let cpu = process_cpu();
    let calls = load::run(publisher, load, window);
    let evicted = publisher.evicted();
    publisher.finish();
    let cpu = process_cpu() - cpu;
    let received: Vec<Received> = subscribers.into_iter().map(Subscriber::end).collect();
    let seconds = length.window.as_secs_f64();
    let sum = |what: fn(&Received) -> u64| received.iter().map(what).sum::<u64>() as f64;
    let (events, all_events) = (sum(|received| received.events), sum(|received| received.all_events));
    let fewest = received.iter().map(|received| received.all_events).min().unwrap_or(0);
    Sample {
        process_cpu: cpu as f64 / all_events.max(1.0),
        calls_per_s: calls.count as f64 / seconds,
        delivered_per_s: events / seconds,
        events_per_message: events / sum(|received| received.messages).max(1.0),
        receive: received.first().map(|received| received.latency.clone()).unwrap_or_default(),
        evicted,
        lost: calls.made.saturating_sub(fewest).max(sum(|received| received.missed) as u64),
        ..Sample::of_calls(&calls)
    }
}

/// The middle one, or the mean of the two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
