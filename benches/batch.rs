//! The sender's work for a message of 1, 8 and 64 events, without the socket: taking the batch, the payload into memory that
//! is there already, giving the buffers back. `base` is the harness: an empty batch, timed alike.

mod support;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kv_events::MediaSet;
use kv_events::internals::{Context, Encoder, Frame, Limits, PayloadWriter, Pipe};
use std::hint::black_box;
use std::sync::Arc;
use support::peer::{Settings, now_ms};
use support::{KEY, keys, object};

fn batch(c: &mut Criterion) {
    let settings = Settings::new(1);
    let encoder = Arc::new(Encoder::new(&Context {
        model_name: &settings.model_name,
        block_size: settings.block_size,
        additional_salt: &settings.additional_salt,
        lora_name: "",
        backend_id: &settings.backend_id,
        dp_rank: settings.dp_rank,
        legacy: true,
    }));
    let writer = PayloadWriter::new(Arc::clone(&encoder), settings.dp_rank);
    let keys = keys(KEY);
    let mut group = c.benchmark_group("batch");
    group.bench_function("base", |b| b.iter_batched(|| (), black_box, BatchSize::PerIteration));
    for events in [1, 8, 64] {
        // Room for one call of two events is always left, so a batch of 64 single ones needs a limit of 65.
        let limits = Limits { events: events + 1, bytes: 1 << 20 };
        let pipe = Pipe::<Frame>::new(1024, 1, limits, 1, 2048).expect("memory");
        let mut consumer = pipe.consumer();
        let mut held = Vec::with_capacity(events as usize + 1);
        let mut payload = vec![0; 64 << 10];
        let fill = || {
            for key in &keys[..events as usize] {
                let call = encoder.object_call(&object(key), MediaSet::EMPTY, MediaSet::CPU);
                let mut frame = pipe.take_frame(call.room()).expect("memory");
                assert!(call.write(pipe.frame(&mut frame)), "memory");
                pipe.push(frame).expect("a pipe that is open");
            }
        };
        let mut send = |()| {
            let gap = pipe.take(&mut consumer, &mut held);
            assert_eq!((gap, held.len() as u64), (0, events));
            let batch = pipe.batch(&held);
            let header = writer.header(now_ms(), batch.calls());
            writer.write(&header, batch.calls(), 1, black_box(&mut payload[..header.len()]));
            pipe.recycle(&mut consumer, &mut held);
        };
        group.throughput(Throughput::Elements(events));
        group.bench_function(BenchmarkId::from_parameter(events), |b| {
            b.iter_batched(fill, &mut send, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, batch);
criterion_main!(benches);
