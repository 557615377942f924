//! The evicting queue alone: producers against a consumer that drains, and on a queue that is always full; beside a mutex
//! around a deque that drops its oldest, and a bounded crossbeam channel that drops its newest. `base` is the harness.
//!
//! A thread's share of the iterations is timed from a barrier to a barrier, so figures are wall time per push *of all
//! producers together*: with fewer cores than threads that is throughput, not the latency of one push.

mod support;

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use crossbeam_channel::{Receiver, Sender, bounded};
use kv_events::internals::{Call, EvictingQueue, Limits};
use kv_events::recommended_eviction_burst;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::threads::timed;

/// As large as a frame.
struct Item(Box<u64>, u64);

impl Item {
    fn new(n: u64) -> Self {
        Item(Box::new(n), n)
    }
}

impl Call for Item {
    fn events(&self) -> u64 {
        1
    }

    fn bytes(&self) -> usize {
        self.1 as usize & 511
    }

    fn footprint(&self) -> usize {
        *self.0 as usize
    }
}

trait Queue: Sync {
    /// Takes the item, and gives one back that it had no room for.
    fn push(&self, item: Item) -> Option<Item>;
    /// Takes up to a batch out.
    fn drain(&self, batch: &mut Vec<Item>);
}

struct Ours(EvictingQueue<Item>);

impl Queue for Ours {
    fn push(&self, item: Item) -> Option<Item> {
        let mut last = None;
        self.0.push(item, |victim| last = Some(victim));
        last
    }

    fn drain(&self, batch: &mut Vec<Item>) {
        self.0.take(Limits { events: 64, bytes: 1 << 20 }, batch);
    }
}

struct Deque(Mutex<(VecDeque<Item>, u64)>, usize);

impl Queue for Deque {
    fn push(&self, item: Item) -> Option<Item> {
        let mut queue = self.0.lock().expect("the lock");
        let victim = if queue.0.len() == self.1 { queue.0.pop_front() } else { None };
        queue.1 += u64::from(victim.is_some());
        queue.0.push_back(item);
        victim
    }

    fn drain(&self, batch: &mut Vec<Item>) {
        let mut queue = self.0.lock().expect("the lock");
        let count = queue.0.len().min(64);
        batch.extend(queue.0.drain(..count));
    }
}

struct Channel(Sender<Item>, Receiver<Item>);

impl Queue for Channel {
    fn push(&self, item: Item) -> Option<Item> {
        self.0.try_send(item).err().map(|error| error.into_inner())
    }

    fn drain(&self, batch: &mut Vec<Item>) {
        batch.extend(self.1.try_iter().take(64));
    }
}

/// Takes nothing.
struct Base;

impl Queue for Base {
    fn push(&self, item: Item) -> Option<Item> {
        Some(black_box(item))
    }

    fn drain(&self, _: &mut Vec<Item>) {}
}

/// Pushes; an item that comes back is pushed again, so that nothing is allocated while the queue is full.
fn produce(queue: &impl Queue, items: u64) {
    let mut spare = None;
    for n in 0..items {
        spare = queue.push(spare.take().unwrap_or_else(|| Item::new(n)));
    }
}

fn always_full(queue: &impl Queue, threads: usize, iterations: u64) -> Duration {
    timed(threads, iterations, |_, share| produce(queue, share))
}

fn drained(queue: &impl Queue, threads: usize, iterations: u64) -> Duration {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut batch = Vec::with_capacity(64);
            while !stop.load(Ordering::Relaxed) {
                queue.drain(&mut batch);
                if batch.is_empty() {
                    std::thread::yield_now();
                }
                batch.clear();
            }
        });
        let time = timed(threads, iterations, |_, share| produce(queue, share));
        stop.store(true, Ordering::Relaxed);
        time
    })
}

fn compare(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, threads: usize, capacity: usize, queue: &impl Queue) {
    let case = format!("{capacity}/{threads} producers");
    if name != "base" {
        let mut batch = Vec::with_capacity(64);
        group.bench_function(BenchmarkId::new(format!("{name}/drained"), &case), |b| {
            b.iter_custom(|iterations| drained(queue, threads, iterations));
        });
        queue.drain(&mut batch);
        produce(queue, 2 * capacity as u64);
    }
    group.bench_function(BenchmarkId::new(format!("{name}/full"), &case), |b| {
        b.iter_custom(|iterations| always_full(queue, threads, iterations));
    });
}

fn queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue");
    group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_millis(500));
    group.warm_up_time(Duration::from_millis(200));
    for threads in [1, 2, 4, 8] {
        compare(&mut group, "base", threads, 0, &Base);
        for capacity in [1024, support::CAPACITY] {
            let bursts = [1, recommended_eviction_burst(capacity), capacity / 16];
            for burst in if bursts[1] == bursts[2] { &bursts[..2] } else { &bursts[..] } {
                let queue = Ours(EvictingQueue::new(capacity, *burst));
                compare(&mut group, &format!("evicting, burst {burst}"), threads, capacity, &queue);
            }
            compare(&mut group, "mutex", threads, capacity, &Deque(Mutex::new((VecDeque::new(), 0)), capacity));
            let (sender, receiver) = bounded(capacity);
            compare(&mut group, "channel", threads, capacity, &Channel(sender, receiver));
        }
    }
    group.finish();
}

criterion_group!(benches, queue);
criterion_main!(benches);
