//! Decoding beside what one would otherwise decode with: `rmp-serde` into derived structs, and `rmpv`'s values.
//!
//! Every contender reads the same bytes and folds every hash, token id, key and number of every event into a checksum,
//! and the checksums must agree, so nobody wins by not looking. The structs given to `rmp-serde` hold one shape each, the
//! leanest that can: with `String`s, as one writes them, and, as `rmp-serde-borrowed`, with text borrowed from the payload.
//!
//! With `KV_EVENTS_BENCH_DUMP=FOLDER` the payloads are written there, for `benches/decode_msgspec.py`, and nothing is timed.

mod cases;
mod contenders;
mod fold;

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Reads a payload and folds every token, hash and key of it.
type Contender = fn(&[u8]) -> fold::Fold;

fn decode(criterion: &mut Criterion) {
    let cases = cases::all();
    if let Some(folder) = std::env::var_os("KV_EVENTS_BENCH_DUMP") {
        for case in &cases {
            for (number, payload) in case.payloads.iter().enumerate() {
                let path = Path::new(&folder).join(format!("{}.{number:02}.msgpack", case.name));
                std::fs::write(&path, payload)
                    .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
            }
        }
        return;
    }
    for case in &cases {
        let contenders: [(&str, Contender); 4] = [
            ("kv-events", contenders::kv_events),
            ("rmp-serde", case.rmp_serde),
            ("rmp-serde-borrowed", case.rmp_serde_borrowed),
            ("rmpv", contenders::rmpv),
        ];
        let mut group = criterion.benchmark_group(format!("decode/{}", case.name));
        group.throughput(Throughput::ElementsAndBytes {
            elements: case.events.max(1),
            bytes: case.payloads[0].len() as u64,
        });
        for (id, contender) in contenders {
            for payload in &case.payloads {
                let expected = contenders::kv_events(payload);
                assert_eq!(expected.events, case.events, "{}: not all events were read", case.name);
                assert_eq!(expected, contender(payload), "{}: {id} reads something else", case.name);
            }
            let mut payloads = case.payloads.iter().cycle();
            group.bench_function(id, |bencher| {
                bencher.iter(|| contender(black_box(payloads.next().map_or(&[], Vec::as_slice))));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
