//! The queue alone, with its pool: producers against a consumer that drains, and on a queue that is always full. Beside it
//! stand what it replaced (crossbeam's `ArrayQueue`, whose removals had to happen in turn under a mutex so that losses could
//! be placed), a mutex around a deque that drops its oldest, and a bounded crossbeam channel that drops its newest. `base` is
//! the harness.
//!
//! Items of the others come from and go back to an `ArrayQueue` of idle ones, as they did in what was replaced. Ours also
//! looks whether the sender wants to be woken; theirs do not.
//!
//! A thread's share of the iterations is timed from a barrier to a barrier, so figures are wall time per push *of all
//! producers together*: with fewer cores than threads that is throughput, not the latency of one push. How long single calls
//! take is what `compare -- tails` shows.

mod support;

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use crossbeam_channel::{Receiver, Sender, bounded};
use crossbeam_queue::ArrayQueue;
use kv_events::internals::{Call, Consumer, Held, Limits, Pipe, RUN};
use kv_events::recommended_eviction_burst;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::threads::timed;

/// Items that are taken together.
const BATCH: usize = 64;

/// One event, as large as a frame.
#[derive(Clone, Copy, Default)]
struct Item {
    number: u64,
    _rest: [u64; 5],
}

impl Call for Item {
    fn run(_: usize) -> Option<[Self; RUN]> {
        Some([Item::default(); RUN])
    }

    fn events(&self) -> u64 {
        1
    }

    fn bytes(&self) -> usize {
        self.number as usize & 511
    }

    fn footprint(&self) -> usize {
        512
    }

    fn trim(&mut self) {}
}

trait Queue: Sync {
    /// Queues an item, at the cost of the oldest, or of this one, if there is no room.
    fn push(&self, number: u64);
    /// Takes items out until it is told to stop.
    fn consume(&self, stop: &AtomicBool);
}

/// Takes a batch at a time; `take` says whether there was anything.
fn until(stop: &AtomicBool, mut take: impl FnMut() -> bool) {
    while !stop.load(Ordering::Relaxed) {
        if !take() {
            std::thread::yield_now();
        }
    }
}

struct Ours {
    pipe: Pipe<Item>,
    sender: Mutex<(Consumer, Vec<Held>)>,
}

impl Ours {
    fn new(capacity: usize, burst: usize) -> Ours {
        let limits = Limits { events: BATCH as u64, bytes: 1 << 20 };
        let pipe = Pipe::new(capacity, burst, limits, BATCH, 2048).expect("memory");
        let sender = Mutex::new((pipe.consumer(), Vec::with_capacity(BATCH)));
        Ours { pipe, sender }
    }
}

impl Queue for Ours {
    fn push(&self, number: u64) {
        let mut held = self.pipe.take_frame(0).expect("memory");
        self.pipe.frame(&mut held).number = number;
        self.pipe.push(held).expect("a pipe that is open");
    }

    fn consume(&self, stop: &AtomicBool) {
        let (consumer, batch) = &mut *self.sender.lock().expect("one consumer at a time");
        until(stop, || {
            black_box(self.pipe.take(consumer, batch));
            self.pipe.batch(batch).calls().for_each(|item| {
                black_box(item.number);
            });
            let any = !batch.is_empty();
            self.pipe.recycle(consumer, batch);
            any
        });
    }
}

/// Items that are not queued.
struct Idle(ArrayQueue<Box<Item>>);

impl Idle {
    fn new(capacity: usize) -> Idle {
        Idle(ArrayQueue::new(capacity + 2 * BATCH))
    }

    fn take(&self, number: u64) -> Box<Item> {
        let mut item = self.0.pop().unwrap_or_default();
        item.number = number;
        item
    }

    fn give(&self, item: Box<Item>) {
        // One too many is freed.
        let _ = self.0.push(item);
    }

    /// Whether there were any.
    fn give_all(&self, batch: impl Iterator<Item = Box<Item>>) -> bool {
        let mut any = false;
        for item in batch {
            black_box(item.number);
            self.give(item);
            any = true;
        }
        any
    }
}

/// What was there before: an insertion into a queue with room is crossbeam's alone, a removal is counted under a mutex.
struct Crossbeam {
    queue: ArrayQueue<Box<Item>>,
    idle: Idle,
    gap: Mutex<u64>,
}

impl Crossbeam {
    fn new(capacity: usize) -> Crossbeam {
        Crossbeam { queue: ArrayQueue::new(capacity), idle: Idle::new(capacity), gap: Mutex::new(0) }
    }
}

impl Queue for Crossbeam {
    fn push(&self, number: u64) {
        let Err(item) = self.queue.push(self.idle.take(number)) else { return };
        let mut gap = self.gap.lock().expect("the lock");
        let victim = self.queue.force_push(item);
        *gap += u64::from(victim.is_some());
        drop(gap);
        victim.into_iter().for_each(|victim| self.idle.give(victim));
    }

    fn consume(&self, stop: &AtomicBool) {
        let mut batch = Vec::with_capacity(BATCH);
        until(stop, || {
            let mut gap = self.gap.lock().expect("the lock");
            batch.extend(std::iter::from_fn(|| self.queue.pop()).take(BATCH));
            black_box(std::mem::take(&mut *gap));
            drop(gap);
            self.idle.give_all(batch.drain(..))
        });
    }
}

/// A deque and the events that it lost.
type Guarded = (VecDeque<Box<Item>>, u64);

struct Deque {
    queue: Mutex<Guarded>,
    capacity: usize,
    idle: Idle,
}

impl Deque {
    fn new(capacity: usize) -> Deque {
        Deque { queue: Mutex::new((VecDeque::with_capacity(capacity), 0)), capacity, idle: Idle::new(capacity) }
    }
}

impl Queue for Deque {
    fn push(&self, number: u64) {
        let item = self.idle.take(number);
        let mut guarded = self.queue.lock().expect("the lock");
        let (queue, gap) = &mut *guarded;
        let victim = if queue.len() == self.capacity { queue.pop_front() } else { None };
        *gap += u64::from(victim.is_some());
        queue.push_back(item);
        drop(guarded);
        victim.into_iter().for_each(|victim| self.idle.give(victim));
    }

    fn consume(&self, stop: &AtomicBool) {
        let mut batch = Vec::with_capacity(BATCH);
        until(stop, || {
            let mut guarded = self.queue.lock().expect("the lock");
            let (queue, gap) = &mut *guarded;
            batch.extend(queue.drain(..queue.len().min(BATCH)));
            black_box(std::mem::take(gap));
            drop(guarded);
            self.idle.give_all(batch.drain(..))
        });
    }
}

struct Channel {
    sender: Sender<Box<Item>>,
    receiver: Receiver<Box<Item>>,
    idle: Idle,
}

impl Channel {
    fn new(capacity: usize) -> Channel {
        let (sender, receiver) = bounded(capacity);
        Channel { sender, receiver, idle: Idle::new(capacity) }
    }
}

impl Queue for Channel {
    fn push(&self, number: u64) {
        if let Err(error) = self.sender.try_send(self.idle.take(number)) {
            self.idle.give(error.into_inner());
        }
    }

    fn consume(&self, stop: &AtomicBool) {
        let mut batch = Vec::with_capacity(BATCH);
        until(stop, || {
            batch.extend(self.receiver.try_iter().take(BATCH));
            self.idle.give_all(batch.drain(..))
        });
    }
}

/// Takes nothing.
struct Base;

impl Queue for Base {
    fn push(&self, number: u64) {
        black_box(number);
    }

    fn consume(&self, _: &AtomicBool) {}
}

fn produce(queue: &impl Queue, items: u64) {
    (0..items).for_each(|number| queue.push(number));
}

fn always_full(queue: &impl Queue, threads: usize, iterations: u64) -> Duration {
    timed(threads, iterations, |_, share| produce(queue, share))
}

fn drained(queue: &impl Queue, threads: usize, iterations: u64) -> Duration {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| queue.consume(&stop));
        let time = timed(threads, iterations, |_, share| produce(queue, share));
        stop.store(true, Ordering::Relaxed);
        time
    })
}

fn compare(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, threads: usize, capacity: usize, queue: &impl Queue) {
    let case = format!("{capacity}/{threads} producers");
    if name != "base" {
        group.bench_function(BenchmarkId::new(format!("{name}/drained"), &case), |b| {
            b.iter_custom(|iterations| drained(queue, threads, iterations));
        });
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
            for burst in [1, recommended_eviction_burst(capacity)] {
                let name = format!("ours, burst {burst}");
                compare(&mut group, &name, threads, capacity, &Ours::new(capacity, burst));
            }
            compare(&mut group, "crossbeam and a mutex", threads, capacity, &Crossbeam::new(capacity));
            compare(&mut group, "deque under a mutex", threads, capacity, &Deque::new(capacity));
            compare(&mut group, "channel", threads, capacity, &Channel::new(capacity));
        }
    }
    group.finish();
}

criterion_group!(benches, queue);
criterion_main!(benches);
