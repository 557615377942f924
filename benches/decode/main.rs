//! Decoding beside what one would otherwise decode with: `rmp-serde` into derived structs, and `rmpv`'s values.
//!
//! Every contender reads the same bytes and folds every hash, token id, key and number of every event into a checksum,
//! and the checksums must agree, so nobody wins by not looking. The structs given to `rmp-serde` hold one shape each, the
//! leanest that can: with `String`s, as one writes them, and, as `rmp-serde-borrowed`, with text borrowed from the payload.
//!
//! With `KV_EVENTS_BENCH_FASTEST=1` each contender's fastest of many short rounds is printed instead: what it takes while
//! nobody else has the processor, on a machine that has other work.
//!
//! With `KV_EVENTS_BENCH_DUMP=FOLDER` the payloads are written there, for `benches/decode_msgspec.py`, and nothing is timed.

mod cases;
mod contenders;
mod fold;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

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
    let fastest_alone = std::env::var_os("KV_EVENTS_BENCH_FASTEST").is_some();
    for case in &cases {
        let contenders: [(&str, Contender); 4] = [
            ("kv-events", contenders::kv_events),
            ("rmp-serde", case.rmp_serde),
            ("rmp-serde-borrowed", case.rmp_serde_borrowed),
            ("rmpv", contenders::rmpv),
        ];
        if fastest_alone {
            for (id, contender) in contenders {
                println!("{:24} {id:20} {:8.2} us", case.name, fastest_us(&case.payloads, contender));
            }
            continue;
        }
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

/// Time for one payload in the fastest of many rounds, each short enough to be left alone now and then.
fn fastest_us(payloads: &[Vec<u8>], contender: Contender) -> f64 {
    const ROUNDS: u32 = 200;
    const PAYLOADS_A_ROUND: usize = 56;
    let round = |_| {
        let begun = Instant::now();
        for payload in payloads.iter().cycle().take(PAYLOADS_A_ROUND) {
            black_box(contender(black_box(payload)));
        }
        begun.elapsed().as_secs_f64() * 1e6 / PAYLOADS_A_ROUND as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

criterion_group!(benches, decode);
criterion_main!(benches);
