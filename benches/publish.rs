//! A whole publish call on one thread: while the sender runs, into an idle publisher under each wait strategy, and on a full
//! queue whose sender stands still; beside the peer's same cases. `base` is the harness.

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use kv_events::{Publisher, WaitStrategy};
use std::time::{Duration, Instant};
use support::peer::{Peer, Settings};
use support::sinks::Gate;
use support::{CAPACITY, KEY, Nothing, POLL, Publish, config, keys, object};

/// Calls one after another.
fn stream<P: Publish>(publisher: &P, keys: &[String], calls: u64) -> Duration {
    let start = Instant::now();
    for n in 0..calls {
        publisher.stored(&object(&keys[n as usize % keys.len()]));
    }
    start.elapsed()
}

/// Calls with a pause before each, long enough for the sender to have gone idle.
fn spaced<P: Publish>(publisher: &P, keys: &[String], calls: u64) -> Duration {
    let mut time = Duration::ZERO;
    for n in 0..calls {
        std::thread::sleep(Duration::from_micros(500));
        let object = object(&keys[n as usize % keys.len()]);
        let start = Instant::now();
        publisher.stored(&object);
        time += start.elapsed();
    }
    time
}

fn ours(gate: &Gate, burst: usize, wait: WaitStrategy) -> Publisher {
    let config = config(CAPACITY).eviction_burst(burst).wait_strategy(wait);
    Publisher::start_with(config, gate.transport()).expect("a publisher")
}

fn peer(gate: &Gate) -> Peer {
    Peer::start_with(Settings::new(CAPACITY), String::new(), gate.peer_sink())
}

fn fill<P: Publish>(publisher: &P, gate: &Gate) {
    gate.set_open(false);
    publisher.stored(&object("stall"));
    gate.wait_for_sender();
    stream(publisher, &keys(KEY), 2 * CAPACITY as u64);
}

fn publish(c: &mut Criterion) {
    let keys = keys(KEY);
    let mut group = c.benchmark_group("publish");
    group.sample_size(20).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
    group.bench_function("base", |b| b.iter_custom(|calls| stream(&Nothing, &keys, calls)));

    let gate = Gate::new(true);
    let publisher = ours(&gate, 16, WaitStrategy::default());
    group.bench_function("sender runs/ours", |b| b.iter_custom(|calls| stream(&publisher, &keys, calls)));
    let gate = Gate::new(true);
    let other = peer(&gate);
    group.bench_function("sender runs/peer", |b| b.iter_custom(|calls| stream(&other, &keys, calls)));

    for wait in [WaitStrategy::Park, WaitStrategy::default(), POLL] {
        let gate = Gate::new(true);
        let publisher = ours(&gate, 16, wait);
        let id = BenchmarkId::new("sender idle/ours", wait);
        group.bench_function(id, |b| b.iter_custom(|calls| spaced(&publisher, &keys, calls)));
    }
    group.bench_function("sender idle/peer", |b| b.iter_custom(|calls| spaced(&other, &keys, calls)));
    drop(other);

    for burst in [1, 16] {
        let gate = Gate::new(true);
        let publisher = ours(&gate, burst, WaitStrategy::default());
        fill(&publisher, &gate);
        let id = BenchmarkId::new("queue full/ours", format!("burst {burst}"));
        group.bench_function(id, |b| b.iter_custom(|calls| stream(&publisher, &keys, calls)));
        gate.set_open(true);
    }
    let gate = Gate::new(true);
    let other = peer(&gate);
    fill(&other, &gate);
    group.bench_function("queue full/peer", |b| b.iter_custom(|calls| stream(&other, &keys, calls)));
    gate.set_open(true);
    group.finish();
}

criterion_group!(benches, publish);
criterion_main!(benches);
