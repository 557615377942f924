//! What encoding costs: the caller's part (into a frame), the sender's part (into the message), beside `rmp-serde` writing an
//! equal struct and, as a floor, a `memcpy` of the bytes that the event has in the message. Caches are hot.

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kv_events::internals::{CallLayout, Context, Encoder, Frame, PayloadWriter};
use kv_events::{MediaSet, Object};
use std::hint::black_box;
use std::sync::Arc;
use support::peer::{Settings, Stored, now_ms};

/// The kinds of calls, by what they remove and what they store.
const CALLS: [(&str, MediaSet, MediaSet); 4] = [
    ("stored", MediaSet::EMPTY, MediaSet::CPU),
    ("removed", MediaSet::CPU, MediaSet::EMPTY),
    ("stored on both", MediaSet::EMPTY, MediaSet::BOTH),
    ("offloaded", MediaSet::CPU, MediaSet::DISK),
];

fn encoder(settings: &Settings, legacy: bool) -> Arc<Encoder> {
    Arc::new(Encoder::new(&Context {
        model_name: &settings.model_name,
        block_size: settings.block_size,
        additional_salt: &settings.additional_salt,
        lora_name: "",
        backend_id: &settings.backend_id,
        dp_rank: settings.dp_rank,
        legacy,
    }))
}

fn frame(call: &CallLayout<'_>) -> Frame {
    let mut frame = Frame::with_room(call.room()).expect("memory");
    assert!(call.write(&mut frame), "memory");
    frame
}

fn message(writer: &PayloadWriter, frames: &[Frame]) -> Vec<u8> {
    let header = writer.header(now_ms(), frames.iter());
    let mut payload = vec![0; header.len()];
    writer.write(&header, frames.iter(), 1, &mut payload);
    payload
}

fn kinds(c: &mut Criterion) {
    let settings = Settings::new(1);
    let mut group = c.benchmark_group("encode/kinds");
    let key = support::key(support::KEY, 7);
    for legacy in [true, false] {
        let encoder = encoder(&settings, legacy);
        let name = |kind: &str| BenchmarkId::new(kind, if legacy { "legacy" } else { "plain" });
        for (kind, removed, stored) in CALLS {
            let mut frame = Frame::with_room(512).expect("memory");
            group.bench_function(name(kind), |b| {
                b.iter(|| encoder.object_call(black_box(&support::object(&key)), removed, stored).write(&mut frame));
            });
        }
        let mut frame = Frame::with_room(512).expect("memory");
        group.bench_function(name("cleared"), |b| {
            b.iter(|| encoder.cleared_call(black_box("tenant-a")).write(&mut frame))
        });
    }
    group.finish();
}

fn stored(c: &mut Criterion) {
    let settings = Settings::new(1);
    let mut group = c.benchmark_group("encode/stored");
    for len in [20, 100, 1000] {
        let key = support::key(len, 7);
        let object = support::object(&key);
        let encoder = encoder(&settings, true);
        let call = |object: &Object<'_>| encoder.object_call(object, MediaSet::EMPTY, MediaSet::CPU).largest_event();
        let size = call(&object);
        group.throughput(Throughput::Bytes(size as u64));

        let source = message(
            &PayloadWriter::new(Arc::clone(&encoder), 0),
            &[frame(&encoder.object_call(&object, MediaSet::EMPTY, MediaSet::CPU))],
        );
        let (event, mut place) = (&source[source.len() - 1 - size..source.len() - 1], vec![0; size]);
        group.bench_function(BenchmarkId::new("memcpy", len), |b| {
            b.iter(|| {
                place.copy_from_slice(black_box(event));
                black_box(&mut place);
            });
        });
        let mut into = frame(&encoder.object_call(&object, MediaSet::EMPTY, MediaSet::CPU));
        group.bench_function(BenchmarkId::new("call to frame", len), |b| {
            b.iter(|| {
                encoder.object_call(black_box(&object), MediaSet::EMPTY, MediaSet::CPU).write(black_box(&mut into))
            });
        });
        let writer = PayloadWriter::new(Arc::clone(&encoder), 0);
        let mut frames = [into];
        let mut payload = message(&writer, &frames);
        let now = now_ms();
        group.bench_function(BenchmarkId::new("call to frame to message", len), |b| {
            b.iter(|| {
                encoder.object_call(black_box(&object), MediaSet::EMPTY, MediaSet::CPU).write(&mut frames[0]);
                let header = writer.header(now, frames.iter());
                writer.write(&header, frames.iter(), 1, black_box(&mut payload));
            });
        });
        let mut out = Vec::with_capacity(2 * size);
        group.bench_function(BenchmarkId::new("rmp-serde", len), |b| {
            b.iter(|| {
                out.clear();
                Stored::new(&settings, black_box(object), 1, now).encode(black_box(&mut out));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, kinds, stored);
criterion_main!(benches);
