//! What a subscriber, or whoever is there instead, may send to the native transport.
#![no_main]

use kv_events::internals::native::{Bad, Parser};
use std::time::Duration;

/// A subscriber's greeting and handshake, which chance would hardly find.
const HANDSHAKE: &[u8] = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x01NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
const OLDER: &[u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\0";

/// What is left of a parser.
type Left = (Result<(), Bad>, Vec<u8>, bool, bool, u32, Option<Duration>);

fn hear(allowed: bool, stream: &[u8], piece: usize) -> Left {
    let (mut parser, mut answers) = (Parser::new(allowed), Vec::new());
    let outcome = stream.chunks(piece.max(1)).try_for_each(|piece| parser.take(piece, &mut answers));
    assert!(answers.len() <= 160 + 4 * stream.len(), "{} bytes of answers", answers.len());
    if let Err(bad) = &outcome {
        assert!(!bad.to_string().is_empty());
    }
    (outcome, answers, parser.is_ready(), parser.is_subscribed(), parser.other_subscriptions(), parser.ttl())
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [piece, bytes @ ..] = input else { return };
    let start = match piece & 3 {
        0 => OLDER,
        1 => b"",
        _ => HANDSHAKE,
    };
    let stream = [start, bytes].concat();
    let whole = hear(true, &stream, stream.len());
    assert_eq!(whole, hear(true, &stream, usize::from(piece >> 2)), "it depends on how the bytes are cut");
    assert!(whole.2 || !whole.3, "subscribed before the handshake was over");
    let refused = hear(false, &stream, 64);
    assert!(!refused.2 && !refused.3, "one that may not connect did");
});
