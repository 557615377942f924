//! Producer threads: how they pace themselves and what they record of every call.
//!
//! **Coordinated omission.** A paced producer follows a schedule that is laid down before it starts: call k is due at
//! `start + k / rate`, whatever became of call k - 1. `response` is measured from when a call was *due*, so a call that
//! was held up by the one before is charged for its wait (and, alike for everyone measured, for the timer's oversleeping);
//! `service` is the call alone. Flat out there is no schedule, and `service` is all there is.
//!
//! **Waits.** A voluntary context switch is a wait. Flat out a producer makes none of its own, so all that its thread made
//! were made inside calls. A paced one sleeps between calls; if it is *watched*, they are read around every call.

use super::clock::{now, sleep_until, switches, thread_cpu};
use crate::support::{GROUP, KEY, Publish, keys, object};
use hdrhistogram::Histogram;
use kv_events::Object;
use nix::sys::prctl;
use std::sync::Barrier;

/// What precedes the 16 hex digits of a call's start in a group.
pub const STAMP: &[u8] = b"@sent:";

/// What producers do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub producers: usize,
    /// Calls per second of all producers together; `None` for flat out.
    pub rate: Option<f64>,
    /// Whether every call is timed. If not, calls that are due are made in one go.
    pub timed: bool,
    /// Bytes of an object key.
    pub key: usize,
    /// Whether a paced producer looks for waits around every call.
    pub watched: bool,
}

impl Load {
    /// Timed calls with keys of the usual length.
    pub fn new(producers: usize, rate: Option<f64>) -> Load {
        Load { producers, rate, timed: true, key: KEY, watched: false }
    }
}

/// When what counts is counted, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: u64,
    pub until: u64,
}

/// What producers saw in the window.
pub struct Calls {
    pub service: Histogram<u64>,
    pub response: Histogram<u64>,
    /// Calls in the window.
    pub count: u64,
    /// Calls ever.
    pub made: u64,
    /// Processor time of the calling threads in the window, ns.
    pub cpu: u64,
    /// Time they spent in the window, ns, summed.
    pub wall: u64,
    /// Voluntary context switches inside calls in the window; `None` if nobody looked.
    pub waits: Option<u64>,
}

impl Calls {
    pub fn new() -> Self {
        Calls { service: histogram(), response: histogram(), count: 0, made: 0, cpu: 0, wall: 0, waits: None }
    }

    pub fn merge(mut self, other: Calls) -> Calls {
        self.service.add(other.service).expect("equal bounds");
        self.response.add(other.response).expect("equal bounds");
        self.count += other.count;
        self.made += other.made;
        self.cpu += other.cpu;
        self.wall += other.wall;
        self.waits = [self.waits, other.waits].into_iter().flatten().reduce(|one, other| one + other);
        self
    }
}

pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("bounds that hold")
}

/// Loads `publisher` from now on until the window ends.
pub fn run<P: Publish>(publisher: &P, load: Load, window: Window) -> Calls {
    on_all(load, |producer| {
        producer.produce(publisher, window.from);
        producer.calls = Calls { made: producer.calls.made, ..Calls::new() };
        producer.count(publisher, window.until);
    })
}

/// Has each producer make so many calls.
pub fn run_calls<P: Publish>(publisher: &P, load: Load, each: u64) -> Calls {
    on_all(load, |producer| {
        producer.left = each;
        producer.count(publisher, u64::MAX);
    })
}

fn on_all(load: Load, work: impl Fn(&mut Producer) + Sync) -> Calls {
    let (ready, work) = (Barrier::new(load.producers), &work);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..load.producers)
            .map(|id| {
                let ready = &ready;
                scope.spawn(move || {
                    super::pin::producer();
                    let mut producer = Producer::new(load, id);
                    // Without it a sleep lasts 50 us longer than asked for.
                    prctl::set_timerslack(1).expect("timer slack");
                    ready.wait();
                    producer.start = now();
                    work(&mut producer);
                    producer.calls
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a producer")).reduce(Calls::merge).expect("a producer")
    })
}

struct Producer {
    load: Load,
    id: usize,
    keys: Vec<String>,
    /// A group that tells when its call was made.
    stamped: Vec<u8>,
    start: u64,
    /// Timed calls that may still be made.
    left: u64,
    calls: Calls,
}

impl Producer {
    fn new(load: Load, id: usize) -> Self {
        let mut stamped = GROUP.as_bytes().to_vec();
        stamped[..STAMP.len()].copy_from_slice(STAMP);
        Producer { load, id, keys: keys(load.key), stamped, start: 0, left: u64::MAX, calls: Calls::new() }
    }

    /// Produces, and counts what it took.
    fn count<P: Publish>(&mut self, publisher: &P, until: u64) {
        let (wall, cpu, (waits, _)) = (now(), thread_cpu(), switches());
        self.produce(publisher, until);
        self.calls.cpu = thread_cpu() - cpu;
        self.calls.wall = now() - wall;
        if self.load.rate.is_none() {
            self.calls.waits = Some(switches().0 - waits);
        }
    }

    fn produce<P: Publish>(&mut self, publisher: &P, until: u64) {
        match (self.load.rate, self.load.timed) {
            (_, false) => self.produce_bursts(publisher, until),
            (rate, true) => self.produce_timed(publisher, until, rate.is_some()),
        }
    }

    fn produce_timed<P: Publish>(&mut self, publisher: &P, until: u64, paced: bool) {
        loop {
            let due = if paced { self.due(self.calls.made) } else { 0 };
            if due >= until || self.left == 0 {
                return;
            }
            self.left -= 1;
            if paced {
                sleep_until(due);
            }
            // Flat out, one call in 15 carries its time: not in step with batches of 64, whose first event is looked at.
            let stamp = paced || self.calls.made % 15 == 0;
            let start = now();
            if start >= until {
                return;
            }
            let watched = paced && self.load.watched;
            let before = if watched { switches().0 } else { 0 };
            let object = if stamp { self.stamped(start) } else { self.plain() };
            let start = if stamp { now() } else { start };
            publisher.stored(&object);
            let end = now();
            self.calls.service.saturating_record(end - start);
            if watched {
                *self.calls.waits.get_or_insert(0) += switches().0 - before;
            }
            if paced {
                self.calls.response.saturating_record(end.saturating_sub(due));
            }
            self.calls.made += 1;
            self.calls.count += 1;
        }
    }

    fn produce_bursts<P: Publish>(&mut self, publisher: &P, until: u64) {
        loop {
            let now = now();
            if now >= until {
                return;
            }
            let due = match self.load.rate {
                None => 256,
                Some(rate) => {
                    let per_ns = rate / self.load.producers as f64 / 1e9;
                    ((now.saturating_sub(self.start) as f64 * per_ns) as u64).saturating_sub(self.calls.made)
                }
            };
            for _ in 0..due {
                publisher.stored(&self.plain());
                self.calls.made += 1;
            }
            self.calls.count += due;
            if self.load.rate.is_some() {
                // Together they wake as often as one would: waking is what the harness costs.
                sleep_until(now + 20_000 * self.load.producers as u64);
            }
        }
    }

    /// When the producer's `n`-th call is due; producers take turns.
    fn due(&self, n: u64) -> u64 {
        let Some(rate) = self.load.rate else { return 0 };
        let turn = n as f64 * self.load.producers as f64 + self.id as f64;
        self.start + (turn * 1e9 / rate) as u64
    }

    fn plain(&self) -> Object<'_> {
        object(&self.keys[self.calls.made as usize % self.keys.len()])
    }

    fn stamped(&mut self, now: u64) -> Object<'_> {
        for (at, place) in self.stamped[STAMP.len()..STAMP.len() + 16].iter_mut().enumerate() {
            *place = b"0123456789abcdef"[(now >> (60 - 4 * at)) as usize & 15];
        }
        let group = std::str::from_utf8(&self.stamped).expect("ASCII");
        self.plain().in_group(group)
    }
}
