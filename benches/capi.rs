//! What a call through the C ABI costs, against the same call from Rust, in one run.
//!
//! `cargo bench --features capi --bench capi` times both. With the arguments `count rust` (or `count c`) it
//! makes calls and nothing else, to be counted by callgrind: `.ci/capi-cost` does that.

use criterion::{Criterion, Throughput};
use kv_events::internals::capi::Code;
use kv_events::internals::capi::calls::{KV_EVENTS_CPU, RawObject, kv_events_committed};
use kv_events::internals::capi::config::{RawConfig, kv_events_config_init};
use kv_events::internals::capi::publisher::{PublisherHandle, kv_events_free, kv_events_start};
use kv_events::internals::capi::status::{RawStatus, kv_events_status};
use kv_events::internals::capi::text::Text;
use kv_events::{Config, MediaSet, Object, Publisher, WaitStrategy};
use std::hint::black_box;
use std::mem::{MaybeUninit, size_of};
use std::time::{Duration, Instant};

const ENDPOINT: &str = "tcp://127.0.0.1:*";
const MODEL: &str = "meta-llama/Llama-3.1-70B-Instruct";
const TENANT: &str = "tenant-a";
const KEY: &str =
    "model/meta-llama/Llama-3.1-70B-Instruct/tp4/layer-all/prefix-block/0123456789abcdef0123456789abcdef0";
const GROUP: &str = "batch-put/worker-07/2026-01-01T00:00:00.000Z/group-0000000000000042/segment-0001";
/// Calls between two waits for the sender: the queue never fills, and every call finds a buffer in the pool.
const ROUND: u64 = 256;

const _: () = assert!(KEY.len() == 100 && GROUP.len() == 80);

/// One way to publish.
trait Way {
    /// [`ROUND`] calls.
    fn round(&self);
    fn published(&self) -> u64;
}

impl Way for Publisher {
    fn round(&self) {
        round_rust(self);
    }

    fn published(&self) -> u64 {
        self.status().published_events
    }
}

#[inline(never)]
fn round_rust(publisher: &Publisher) {
    for _ in 0..ROUND {
        let object = Object::new(TENANT, KEY).in_group(GROUP);
        black_box(publisher.committed(black_box(&object), black_box(MediaSet::CPU)));
    }
}

/// A publisher as C holds it.
struct FromC(*mut PublisherHandle);

impl FromC {
    fn start() -> FromC {
        let mut config = MaybeUninit::<RawConfig>::uninit();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointers are those of live variables of the right types, the sizes theirs, the texts static.
        unsafe {
            assert_eq!(kv_events_config_init(config.as_mut_ptr(), size_of::<RawConfig>()), Code::Ok);
            let config = config.assume_init_mut();
            config.enable_kv_events = 1;
            config.kv_events_bind_endpoint = text(ENDPOINT);
            config.kv_events_backend_id = text("master-0");
            config.kv_events_model_name = text(MODEL);
            config.kv_events_block_size = 16;
            config.kv_events_wait_strategy = text("poll:50us");
            assert_eq!(kv_events_start(config, &mut handle, std::ptr::null_mut()), Code::Ok);
        }
        FromC(handle)
    }
}

fn text(text: &str) -> Text {
    Text { data: text.as_ptr().cast(), len: text.len() }
}

impl Way for FromC {
    fn round(&self) {
        round_c(self.0);
    }

    fn published(&self) -> u64 {
        let mut status = RawStatus { size: size_of::<RawStatus>(), ..RawStatus::default() };
        // SAFETY: a live handle, and a status that says its size.
        assert_eq!(unsafe { kv_events_status(self.0, &mut status) }, Code::Ok);
        status.published_events
    }
}

#[inline(never)]
fn round_c(publisher: *const PublisherHandle) {
    for _ in 0..ROUND {
        let object = RawObject { tenant: text(TENANT), key: text(KEY), group: text(GROUP) };
        // SAFETY: a live handle and a live object with static texts.
        black_box(unsafe { kv_events_committed(publisher, black_box(&object), black_box(KV_EVENTS_CPU)) });
    }
}

impl Drop for FromC {
    fn drop(&mut self) {
        // SAFETY: a live handle that nobody uses any more.
        assert_eq!(unsafe { kv_events_free(self.0) }, Code::Ok);
    }
}

fn rust() -> Publisher {
    let config = Config::new(ENDPOINT, "master-0").model_name(MODEL).block_size(16);
    Publisher::start(config.wait_strategy(WaitStrategy::Poll(Duration::from_micros(50)))).expect("a publisher starts")
}

/// The time of so many rounds, without the waits for the sender between them.
fn rounds(way: &impl Way, rounds: u64) -> Duration {
    let mut sent = way.published();
    let mut time = Duration::ZERO;
    for _ in 0..rounds {
        let start = Instant::now();
        way.round();
        time += start.elapsed();
        sent += ROUND;
        while way.published() < sent {
            std::thread::yield_now();
        }
    }
    time
}

/// Enough rounds for the pool to be warm in nearly all of them.
const COUNTED_ROUNDS: u64 = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "count") {
        let time = match arguments.get(1).map(String::as_str) {
            Some("rust") => rounds(&rust(), COUNTED_ROUNDS),
            _ => rounds(&FromC::start(), COUNTED_ROUNDS),
        };
        println!("{} calls in {time:?}", COUNTED_ROUNDS * ROUND);
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("256 calls, 100-byte key, 80-byte group");
    group.throughput(Throughput::Elements(ROUND));
    let publisher = rust();
    group.bench_function("Rust", |bencher| bencher.iter_custom(|n| rounds(&publisher, n)));
    let publisher = FromC::start();
    group.bench_function("C ABI", |bencher| bencher.iter_custom(|n| rounds(&publisher, n)));
    group.finish();
    criterion.final_summary();
}
