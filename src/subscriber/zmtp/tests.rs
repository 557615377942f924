//! That what is heard depends on the bytes alone, and that what is held stays within the budget.

use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits { frame: 1 << 20, topic: 64 };

/// Greeting and handshake of a publisher.
fn publisher() -> Vec<u8> {
    [&zmtp::greeting()[..], &zmtp::ready(b"PUB")].concat()
}

/// A frame: flags, size, bytes.
fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    match u8::try_from(body.len()) {
        Ok(size) => [&[flags, size][..], body].concat(),
        Err(_) => [&[flags | LONG][..], &(body.len() as u64).to_be_bytes(), body].concat(),
    }
}

fn message(topic: &[u8], sequence: u64, payload: &[u8]) -> Vec<u8> {
    [frame(MORE, topic), frame(MORE, &sequence.to_be_bytes()), frame(0, payload)].concat()
}

/// What a machine says to these bytes, until it ends or has no room; how many it took.
fn hear(machine: &mut Machine, bytes: &[u8], budget: &mut Budget) -> (usize, Vec<Heard>, Option<Broken>) {
    let (mut at, mut said) = (0, Vec::new());
    loop {
        match machine.take(&bytes[at..], &mut Vec::new(), LIMITS, budget) {
            Err(broken) => return (at, said, Some(broken)),
            Ok((taken, heard)) => {
                at += taken;
                match heard {
                    Heard::Nothing => return (at, said, None),
                    Heard::NoRoom => {
                        said.push(heard);
                        return (at, said, None);
                    }
                    _ => said.push(heard),
                }
            }
        }
    }
}

/// A machine whose handshake is over.
fn ready(budget: &mut Budget) -> Machine {
    let mut machine = Machine::new(b"");
    assert!(matches!(hear(&mut machine, &publisher(), budget).1[..], [Heard::Ready]));
    machine
}

#[test]
fn payloads_on_their_way_share_the_budget() {
    let mut budget = Budget::new(300_000);
    let whole = message(b"t", 1, &[7; 200_000]);
    let (mut first, mut second) = (ready(&mut budget), ready(&mut budget));
    // The size is believed as far as the budget goes, before a byte of it has come.
    let (_, said, _) = hear(&mut first, &whole[..40], &mut budget);
    assert!(said.is_empty());
    assert_eq!((budget.used(), first.reserved()), (200_000, 200_000));
    let (taken, said, _) = hear(&mut second, &whole, &mut budget);
    assert!(matches!(said[..], [Heard::NoRoom]) && taken < 40, "{said:?} after {taken} bytes");
    assert_eq!((budget.used(), second.reserved()), (200_000, 0));
    // Small ones need no room, and go on.
    let mut third = ready(&mut budget);
    let (_, said, _) = hear(&mut third, &message(b"t", 1, &[7; 60_000]), &mut budget);
    assert!(matches!(said[..], [Heard::Arrival(Arrival::Message { .. })]), "{said:?}");
    // The first is through; now there is room for the second.
    let (_, said, _) = hear(&mut first, &whole[40..], &mut budget);
    assert!(matches!(said[..], [Heard::Arrival(Arrival::Message { .. })]), "{said:?}");
    assert_eq!((budget.used(), first.reserved()), (0, 0));
    let (_, said, _) = hear(&mut second, &whole[taken..], &mut budget);
    assert!(matches!(&said[..], [Heard::Arrival(Arrival::Message { payload, .. })] if payload.len() == 200_000));
    assert_eq!(budget.used(), 0);
}

#[test]
fn one_payload_larger_than_the_budget_is_let_in_alone() {
    let mut budget = Budget::new(100_000);
    let whole = message(b"t", 1, &[7; 200_000]);
    let (mut first, mut second) = (ready(&mut budget), ready(&mut budget));
    assert!(hear(&mut first, &whole[..40], &mut budget).1.is_empty());
    assert!(matches!(hear(&mut second, &whole, &mut budget).1[..], [Heard::NoRoom]));
    assert!(matches!(hear(&mut first, &whole[40..], &mut budget).1[..], [Heard::Arrival(_)]));
    assert_eq!(budget.used(), 0);
}

#[test]
fn no_memory_on_the_word_of_a_size() {
    let mut budget = Budget::new(1 << 20);
    let mut machine = ready(&mut budget);
    let whole = message(b"t", 1, &[7; 1 << 20]);
    hear(&mut machine, &whole[..1000], &mut budget);
    assert!(machine.message.payload.capacity() <= 1000, "{} bytes", machine.message.payload.capacity());
}

fn part() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        4 => (bytes(), any::<u64>(), bytes()).prop_map(|(topic, sequence, payload)| message(&topic, sequence, &payload)),
        1 => (any::<u8>(), bytes()).prop_map(|(flags, body)| frame(flags & 7, &body)),
        1 => bytes().prop_map(|context| frame(COMMAND, &[b"\x04PING\0\0", &context[..]].concat())),
        1 => Just(message(b"t", 1, &[7; 70_000])),
        1 => Just([MORE | LONG, 0, 0, 0, 0, 0, 0x20, 0, 0].to_vec()),
        1 => bytes(),
    ]
}

proptest! {
    #[test]
    fn it_makes_no_difference_how_the_bytes_are_cut(
        parts in prop::collection::vec(part(), 0..8), piece in 1_usize..200, greets in any::<bool>(),
    ) {
        let start = if greets { publisher() } else { Vec::new() };
        let stream = [start, parts.concat()].concat();
        let mut budget = Budget::new(1 << 20);
        let (_, expected, ended) = hear(&mut Machine::new(b"t"), &stream, &mut budget);
        let (mut budget, mut machine, mut said) = (Budget::new(1 << 20), Machine::new(b"t"), Vec::new());
        let mut broken = None;
        for piece in stream.chunks(piece) {
            let (_, more, end) = hear(&mut machine, piece, &mut budget);
            said.extend(more);
            broken = end;
            if broken.is_some() {
                break;
            }
        }
        prop_assert_eq!(said, expected);
        prop_assert_eq!(broken, ended);
        prop_assert_eq!(budget.used(), machine.reserved());
    }
}
