//! What a publisher, or whoever is there instead, may send over a connection.
#![no_main]

#[allow(dead_code, reason = "the checks of payloads are not for this one")]
mod checks;

use kv_events::internals::zmtp::{Arrival, Broken, Budget, Heard, Limits, Machine};

/// A publisher's greeting and handshake, which chance would hardly find.
const HANDSHAKE: &[u8] = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB";

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [settings, piece, bytes @ ..] = input else { return };
    let limits = Limits { frame: 1 << (settings & 31), topic: 1 << (settings >> 5) };
    let mut stream = if piece & 1 == 0 { HANDSHAKE.to_vec() } else { Vec::new() };
    stream.extend_from_slice(bytes);

    let mut budget = Budget::new(1 << 18);
    let (mut whole, mut in_pieces) = (Machine::new(b"topic"), Machine::new(b"topic"));
    let expected = checks::bounded(stream.len(), || hear(&mut whole, &stream, stream.len(), limits, &mut budget));
    assert_eq!(budget.used(), whole.reserved());
    budget.give_back(whole.reserved());
    let mut again = Budget::new(1 << 18);
    let heard = hear(&mut in_pieces, &stream, 1 + usize::from(piece >> 1), limits, &mut again);
    assert_eq!(heard, expected, "it depends on how the bytes are cut");
    assert_eq!(whole.is_silent(), in_pieces.is_silent());

    // One more beside a connection that holds all there is.
    let mut third = Machine::new(b"topic");
    let held = again.used();
    let (mut said, mut at) = ((Vec::new(), None), 0);
    let has_room = run(&mut third, &stream, &mut at, limits, &mut again, &mut said);
    assert!(has_room || held > 0, "there is no room where nobody holds any");
    again.give_back(in_pieces.reserved());
    if !has_room {
        assert!(run(&mut third, &stream, &mut at, limits, &mut again, &mut said), "room was given back, and not found");
    }
    assert_eq!(said, expected);
    assert_eq!(again.used(), third.reserved());
});

/// What was heard, and what ended it.
type Said = (Vec<Option<Arrival>>, Option<Broken>);

/// Lets a machine hear all of a stream, so many bytes at a time.
fn hear(machine: &mut Machine, stream: &[u8], piece: usize, limits: Limits, budget: &mut Budget) -> Said {
    let mut said = (Vec::new(), None);
    for piece in stream.chunks(piece.max(1)) {
        assert!(run(machine, piece, &mut 0, limits, budget, &mut said), "the first payload is always let in");
        if said.1.is_some() {
            break;
        }
    }
    said
}

/// Lets a machine hear the bytes from `at`; whether it got through, or has no room.
fn run(
    machine: &mut Machine,
    bytes: &[u8],
    at: &mut usize,
    limits: Limits,
    budget: &mut Budget,
    said: &mut Said,
) -> bool {
    let mut out = Vec::new();
    loop {
        match machine.take(&bytes[*at..], &mut out, limits, budget) {
            Err(broken) => {
                assert!(!broken.to_string().is_empty());
                said.1 = Some(broken);
                return true;
            }
            Ok((taken, heard)) => {
                *at += taken;
                assert!(out.len() <= 64 + 4 * *at, "{} bytes of answers to {at}", out.len());
                match heard {
                    Heard::Nothing => {
                        assert_eq!(*at, bytes.len(), "it stopped without a word");
                        return true;
                    }
                    Heard::Ready => said.0.push(None),
                    Heard::Arrival(arrival) => {
                        if let Arrival::Message { topic, payload, .. } = &arrival {
                            assert!(topic.len() as u64 <= limits.topic && payload.len() as u64 <= limits.frame);
                        }
                        said.0.push(Some(arrival));
                    }
                    Heard::NoRoom => return false,
                }
            }
        }
    }
}
