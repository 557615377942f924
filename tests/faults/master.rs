//! The process of the real publisher: producers that keep the master's table and publish every change of it.

use crate::reader::{END, PROBE};
use crate::table::{KEYS, Table};
use crate::words::Words;
use kv_events::{Before, MediaSet, Object, Publisher, WaitStrategy};
use std::fmt::Write as _;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub fn main(words: &Words) {
    crate::os::interruptible();
    let config = crate::transport::config(words.text("endpoint"), "faults")
        .queue_capacity(words.number("capacity") as usize)
        .eviction_burst(words.number("burst").max(1) as usize)
        .send_hwm(words.number("hwm") as u32)
        .max_event_bytes(words.number("event_bytes").max(16 << 10) as usize)
        .wait_strategy(WaitStrategy::default());
    let publisher = Publisher::start(config).unwrap();
    // The first of its name: ZeroMQ's own threads, which it starts, inherit it.
    let sender = crate::os::threads().into_iter().filter(|tid| crate::os::thread_name(*tid) == "kv-events").min();
    let table = Table::open(words.text("table").as_ref());
    let producers = words.number("producers") as usize;
    let (going, stopping) = (AtomicBool::new(false), AtomicBool::new(false));
    let tids: Vec<AtomicU32> = (0..producers).map(|_| AtomicU32::new(0)).collect();
    let orders = orders();
    let (counts, last) = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..producers)
            .map(|id| {
                let (publisher, table, going, stopping, tid) = (&publisher, &table, &going, &stopping, &tids[id]);
                let key_bytes = words.number("key_bytes") as usize;
                let pace = Pace::new(words.number("rate") as f64 / producers as f64);
                scope.spawn(move || {
                    tid.store(crate::os::tid(), Ordering::Release);
                    while !going.load(Ordering::Acquire) {
                        std::thread::park_timeout(Duration::from_millis(1));
                    }
                    Producer::new(id, publisher, table, key_bytes).run(pace, stopping)
                })
            })
            .collect();
        while tids.iter().any(|tid| tid.load(Ordering::Acquire) == 0) {
            std::thread::yield_now();
        }
        let tids: Vec<String> = tids.iter().map(|tid| tid.load(Ordering::Acquire).to_string()).collect();
        let endpoint = publisher.bound_endpoint().unwrap();
        println!("ready endpoint={endpoint} sender={} producers={}", sender.unwrap(), tids.join(","));
        let probes = publish_until(&publisher, PROBE, &orders, "go");
        // So that no probe is evicted.
        settle(&publisher, probes);
        going.store(true, Ordering::Release);
        let order = loop {
            match orders.recv().unwrap() {
                order if order == "progress" => tell_progress(&publisher, probes),
                order => break order,
            }
        };
        assert!(["finish", "leave"].contains(&&*order), "{order}");
        stopping.store(true, Ordering::Release);
        let mut counts = Counts { accepted: probes, ..Counts::default() };
        handles.into_iter().for_each(|handle| counts.add(&handle.join().unwrap()));
        (counts, order == "finish")
    });
    finish(&publisher, counts, last.then_some(&orders));
}

/// A publisher that says something only when it is told to.
pub fn idle() {
    let publisher = Publisher::start(crate::transport::config("tcp://127.0.0.1:0", "faults")).unwrap();
    println!("ready endpoint={}", publisher.bound_endpoint().unwrap());
    let (orders, mut accepted) = (orders(), 0);
    while orders.recv().unwrap() == "publish" {
        accepted += u64::from(publisher.cleared(PROBE).is_accepted());
        assert!(settle(&publisher, accepted));
        println!("published");
    }
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    println!("stopped");
}

/// What has become of the producers' events so far.
fn tell_progress(publisher: &Publisher, probes: u64) {
    let status = publisher.status();
    let settled = status.published_events + status.evicted_events + status.failed_events;
    println!("progress settled={} evicted={}", settled.saturating_sub(probes), status.evicted_events);
}

/// Waits until every accepted event is accounted for; says whether that came to pass.
fn settle(publisher: &Publisher, accepted: u64) -> bool {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let status = publisher.status();
        if accepted == status.published_events + status.evicted_events + status.failed_events {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until all is told, stops, and reports; the last publisher of a run first publishes the end until it was seen.
fn finish(publisher: &Publisher, mut counts: Counts, last: Option<&Receiver<String>>) {
    let idle = settle(publisher, counts.accepted);
    println!("idle");
    if let Some(orders) = last {
        counts.accepted += publish_until(publisher, END, orders, "quit");
    }
    let report = publisher.stop(Duration::from_secs(20));
    let status = publisher.status();
    println!(
        "report accepted={} published={} evicted={} failed={} abandoned={} messages={} last={} high_water={} \
         calls={} worst_us={} over_1ms={} refused={} made={} rss_kb={} idle={} closed={} healthy={}",
        counts.accepted,
        status.published_events,
        status.evicted_events,
        status.failed_events,
        status.abandoned_events,
        status.published_batches,
        status.last_sequence,
        status.queue_high_water,
        counts.calls,
        counts.worst.as_micros(),
        counts.over_1ms,
        counts.refused,
        counts.made,
        crate::os::rss_kb(std::process::id()),
        u8::from(idle),
        u8::from(report.closed),
        u8::from(status.healthy),
    );
}

/// The lines of standard input; the process ends with it.
fn orders() -> Receiver<String> {
    let (tell, orders) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if tell.send(line.unwrap_or_default()).is_err() {
                return;
            }
        }
        std::process::exit(3);
    });
    orders
}

/// Publishes `cleared` now and then until the order comes; returns the number published.
fn publish_until(publisher: &Publisher, tenant: &str, orders: &Receiver<String>, order: &str) -> u64 {
    let mut published = 0;
    loop {
        match orders.recv_timeout(Duration::from_millis(10)) {
            Err(RecvTimeoutError::Timeout) => published += u64::from(publisher.cleared(tenant).is_accepted()),
            Ok(line) if line == order => return published,
            other => panic!("waited for {order}, got {other:?}"),
        }
    }
}

#[derive(Default)]
struct Counts {
    accepted: u64,
    /// Of these, the producers'.
    made: u64,
    refused: u64,
    calls: u64,
    worst: Duration,
    over_1ms: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.accepted += other.accepted;
        self.made += other.made;
        self.refused += other.refused;
        self.calls += other.calls;
        self.over_1ms += other.over_1ms;
        self.worst = self.worst.max(other.worst);
    }
}

struct Pace {
    began: Instant,
    per_second: f64,
    calls: u64,
}

impl Pace {
    fn new(per_second: f64) -> Pace {
        Pace { began: Instant::now(), per_second, calls: 0 }
    }

    /// Sleeps whenever the calls are ahead of their time; never for a rate of 0.
    fn keep(&mut self) {
        if self.calls == 0 {
            self.began = Instant::now();
        }
        self.calls += 1;
        if self.per_second > 0.0 && self.calls % 16 == 0 {
            let due = self.began + Duration::from_secs_f64(self.calls as f64 / self.per_second);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

struct Producer<'a> {
    id: usize,
    publisher: &'a Publisher,
    table: &'a Table,
    key_bytes: usize,
    random: u64,
    next: u64,
    counts: Counts,
    key: String,
    group: String,
}

impl<'a> Producer<'a> {
    fn new(id: usize, publisher: &'a Publisher, table: &'a Table, key_bytes: usize) -> Self {
        let random = 0x9e37_79b9_7f4a_7c15 ^ (id as u64 + 1);
        let (key, group) = (String::new(), String::new());
        Producer { id, publisher, table, key_bytes, random, next: 1, counts: Counts::default(), key, group }
    }

    fn run(mut self, mut pace: Pace, stopping: &AtomicBool) -> Counts {
        while !stopping.load(Ordering::Acquire) {
            self.call();
            pace.keep();
        }
        self.counts
    }

    /// Changes one object, and says so.
    fn call(&mut self) {
        let random = self.random();
        let slot = self.id * KEYS + random as usize % KEYS;
        let before = MediaSet::from_bits(self.table.get(slot)).unwrap();
        let after = MediaSet::from_bits((random >> 32) as u8 & 3).unwrap();
        let events =
            if before.is_empty() { after.len() } else { before.minus(after).len() + after.minus(before).len() };
        if events == 0 {
            return;
        }
        self.key.clear();
        self.group.clear();
        let _ = write!(self.key, "{:x>1$}/{slot}", "", self.key_bytes);
        let _ = write!(self.group, "{}:{}:{events}", self.id, self.next);
        let object = Object::new("tenant", &self.key).in_group(&self.group);
        self.table.set(slot, after.bits());
        let began = Instant::now();
        let outcome = if before.is_empty() {
            self.publisher.committed(&object, after)
        } else {
            self.publisher.changed(&object, Before::mutation(before), after)
        };
        let took = began.elapsed();
        self.counts.calls += 1;
        self.counts.worst = self.counts.worst.max(took);
        self.counts.over_1ms += u64::from(took > Duration::from_millis(1));
        if outcome.is_accepted() {
            self.counts.accepted += events as u64;
            self.counts.made += events as u64;
            self.next += events as u64;
        } else {
            self.counts.refused += 1;
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
