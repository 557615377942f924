//! Decoding beside what one would otherwise decode with: `rmp-serde` into derived structs, and `rmpv`'s values.
//!
//! Every contender reads the same bytes and folds every hash, token id, key and number of every event into a checksum,
//! and the checksums must agree, so nobody wins by not looking. The structs given to `rmp-serde` are the leanest that can
//! hold the case: one shape, text borrowed from the payload.

mod cases;
mod contenders;
mod fold;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn decode(criterion: &mut Criterion) {
    for case in cases::all() {
        let expected = contenders::kv_events(&case.payload);
        assert_eq!(expected, (case.rmp_serde)(&case.payload), "{}: rmp-serde reads something else", case.name);
        assert_eq!(expected, contenders::rmpv(&case.payload), "{}: rmpv reads something else", case.name);
        assert_eq!(expected.events, case.events, "{}: not all events were read", case.name);

        let mut group = criterion.benchmark_group(format!("decode/{}", case.name));
        group.throughput(Throughput::ElementsAndBytes {
            elements: case.events.max(1),
            bytes: case.payload.len() as u64,
        });
        group.bench_function("kv-events", |bencher| bencher.iter(|| contenders::kv_events(black_box(&case.payload))));
        group.bench_function("rmp-serde", |bencher| bencher.iter(|| (case.rmp_serde)(black_box(&case.payload))));
        group.bench_function("rmpv", |bencher| bencher.iter(|| contenders::rmpv(black_box(&case.payload))));
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
