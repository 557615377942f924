//! From the call to a subscriber on a TCP socket, without losing anything: producers hold back when half a queue is under
//! way. Time is per event, from the first call until the last event has arrived. The subscriber counts, and decodes nothing.
//! `base` is the harness.

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kv_events::Object;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::peer::{Peer, Settings};
use support::threads::timed;
use support::{Publish, config, keys, object};

/// Events that have arrived.
struct Arrived {
    events: AtomicU64,
    stop: AtomicBool,
}

fn receive(endpoint: &str, arrived: &Arrived) {
    let socket = zmq::Context::new().socket(zmq::SUB).expect("a SUB socket");
    socket.set_rcvtimeo(50).expect("RCVTIMEO");
    socket.set_subscribe(b"").expect("SUBSCRIBE");
    socket.connect(endpoint).expect("an endpoint");
    let mut frame = zmq::Message::new();
    while !arrived.stop.load(Ordering::Relaxed) {
        if socket.recv(&mut frame, 0).is_ok() && !frame.get_more() {
            arrived.events.fetch_add(events(&frame), Ordering::Release);
        }
    }
}

/// Events in a payload `[timestamp, [event, ...], rank]`.
fn events(mut payload: &[u8]) -> u64 {
    let mut count = || {
        rmp::decode::read_array_len(&mut payload).ok()?;
        rmp::decode::read_int::<u64, _>(&mut payload).ok()?;
        rmp::decode::read_array_len(&mut payload).ok()
    };
    count().expect("a payload").into()
}

/// The harness alone: every call arrives where it is made.
struct Direct<'a>(&'a Arrived);

impl Publish for Direct<'_> {
    fn stored(&self, object: &Object<'_>) {
        black_box(object);
        self.0.events.fetch_add(1, Ordering::Release);
    }

    fn endpoint(&self) -> String {
        String::new()
    }

    fn evicted(&self) -> u64 {
        0
    }

    fn settled(&self) -> u64 {
        self.0.events.load(Ordering::Acquire)
    }

    fn finish(&self) {}
}

/// Runs `bench` with a publisher that a subscriber listens to.
fn connected<P: Publish>(publisher: &P, bench: impl FnOnce(&Arrived)) {
    let arrived = Arrived { events: AtomicU64::new(0), stop: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        scope.spawn(|| receive(&publisher.endpoint(), &arrived));
        let mut probes = 0;
        while arrived.events.load(Ordering::Acquire) == 0 {
            publisher.stored(&object("probe"));
            probes += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        // Probes sent before it joined never arrive; those after it have, by now.
        std::thread::sleep(Duration::from_millis(100));
        assert!(arrived.events.load(Ordering::Acquire) <= probes);
        bench(&arrived);
        arrived.stop.store(true, Ordering::Relaxed);
    });
    publisher.finish();
}

fn send_and_receive<P: Publish>(
    publisher: &P,
    threads: usize,
    keys: &[String],
    window: u64,
    iterations: u64,
    arrived: &Arrived,
) -> Duration {
    let before = arrived.events.load(Ordering::Acquire);
    let made = AtomicU64::new(0);
    let all = iterations.div_ceil(threads as u64) * threads as u64;
    timed(threads, iterations, |_, share| {
        for n in 0..share {
            while made.load(Ordering::Relaxed).saturating_sub(arrived.events.load(Ordering::Relaxed) - before) > window
            {
                std::thread::yield_now();
            }
            publisher.stored(&object(&keys[n as usize % keys.len()]));
            made.fetch_add(1, Ordering::Relaxed);
        }
        while arrived.events.load(Ordering::Acquire) - before < all {
            std::thread::yield_now();
        }
    })
}

fn pipeline(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(2));
    group.warm_up_time(Duration::from_millis(500));
    for (threads, key, capacity) in
        [(1, 100, 65_536), (2, 100, 65_536), (4, 100, 65_536), (1, 20, 65_536), (1, 1000, 65_536), (1, 100, 1024)]
    {
        let keys = keys(key);
        let case = format!("{threads} producers, key {key}, capacity {capacity}");
        let window = capacity as u64 / 2;
        let arrived = Arrived { events: AtomicU64::new(0), stop: AtomicBool::new(false) };
        group.bench_function(BenchmarkId::new("base", &case), |b| {
            b.iter_custom(|calls| send_and_receive(&Direct(&arrived), threads, &keys, window, calls, &arrived));
        });
        let ours = kv_events::Publisher::start(config(capacity)).expect("a publisher");
        connected(&ours, |arrived| {
            group.bench_function(BenchmarkId::new("ours", &case), |b| {
                b.iter_custom(|calls| send_and_receive(&ours, threads, &keys, window, calls, arrived));
            });
        });
        let peer = Peer::start(Settings::new(capacity));
        connected(&peer, |arrived| {
            group.bench_function(BenchmarkId::new("peer", &case), |b| {
                b.iter_custom(|calls| send_and_receive(&peer, threads, &keys, window, calls, arrived));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
