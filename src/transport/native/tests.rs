//! The parser against vectors, cuts and chance, and the queue of a peer.

use super::parser::{Bad, Parser, opening};
use super::queue::{Messages, Outbox};
use crate::transport::Message;
use crate::zmtp::{self, COMMAND, LONG, MORE};
use proptest::prelude::*;
use std::io::IoSlice;
use std::time::Duration;

/// What a peer of version 3 says first.
fn greeting(minor: u8) -> Vec<u8> {
    let mut greeting = zmtp::greeting();
    greeting[11] = minor;
    greeting.to_vec()
}

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    match u8::try_from(body.len()) {
        Ok(size) => [&[flags, size][..], body].concat(),
        Err(_) => [&[flags | LONG][..], &(body.len() as u64).to_be_bytes(), body].concat(),
    }
}

fn command(name: &str, body: &[u8]) -> Vec<u8> {
    frame(COMMAND, &[&[name.len() as u8][..], name.as_bytes(), body].concat())
}

/// A subscriber that has done its handshake.
fn subscriber(minor: u8, then: &[&[u8]]) -> Vec<u8> {
    [&greeting(minor)[..], &zmtp::ready(b"SUB"), &then.concat()].concat()
}

/// What is left of a parser that has heard all of it.
#[derive(Debug, PartialEq)]
struct Left {
    outcome: Result<(), Bad>,
    answers: Vec<u8>,
    ready: bool,
    subscribed: bool,
    others: u32,
    ttl: Option<Duration>,
}

fn hear_in(pieces: &[&[u8]]) -> Left {
    let (mut parser, mut answers) = (Parser::new(true), opening().to_vec());
    let outcome = pieces.iter().try_for_each(|piece| parser.take(piece, &mut answers));
    Left {
        outcome,
        answers,
        ready: parser.is_ready(),
        subscribed: parser.is_subscribed(),
        others: parser.other_subscriptions(),
        ttl: parser.ttl(),
    }
}

fn hear(bytes: &[u8]) -> Left {
    hear_in(&[bytes])
}

#[test]
fn subscribers_of_every_version_are_served() {
    let v3 = [greeting(1), zmtp::ready(b"PUB").to_vec()].concat();
    for (said, answers) in [
        (subscriber(0, &[&frame(0, b"\x01")]), &v3[..]),
        (subscriber(1, &[&command("SUBSCRIBE", b"")]), &v3),
        // Version 2, of libzmq 3: its type is behind the version, and an identity follows.
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\0\0\x01\x01".to_vec(), b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x01\0\0"),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x0a\0\x03abc\0\x01\x01".to_vec(), b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x01\0\0"),
    ] {
        let left = hear(&said);
        assert_eq!((&left.outcome, left.ready, left.subscribed, left.others), (&Ok(()), true, true, 0), "{said:?}");
        assert_eq!(left.answers, answers, "{said:?}");
    }
}

#[test]
fn only_the_empty_prefix_asks_for_anything() {
    for (then, subscribed, others) in [
        (&[frame(0, b"\x01kv@")][..], false, 1),
        (&[frame(0, b"\x01a"), frame(0, b"\x01"), command("SUBSCRIBE", b"b")], true, 2),
        (&[frame(0, b"\x01"), frame(0, b"\x01"), frame(0, b"\0")], false, 0),
        (&[frame(0, b"\x01"), command("CANCEL", b"")], false, 0),
        (&[frame(0, b"\x01"), frame(0, b"\0a")], true, 0),
        (&[frame(MORE, b"\x01"), frame(0, b"\x01")], false, 0),
        (&[frame(0, b""), frame(0, b"\x02hello"), command("LATER", b"?")], false, 0),
    ] {
        let left = hear(&subscriber(1, &then.iter().map(|bytes| &bytes[..]).collect::<Vec<_>>()));
        assert_eq!((left.outcome, left.subscribed, left.others), (Ok(()), subscribed, others), "{then:?}");
    }
}

#[test]
fn a_ping_is_answered_with_its_context_and_its_time_is_kept() {
    let left = hear(&subscriber(1, &[&command("PING", b"\0\x1econtext")]));
    assert!(left.answers.ends_with(b"\x04\x0c\x04PONGcontext"), "{left:?}");
    assert_eq!(left.ttl, Some(Duration::from_secs(3)));
    let long = hear(&subscriber(1, &[&command("PING", &[0; 100])]));
    assert!(long.answers.ends_with(&[&b"\x04\x15\x04PONG"[..], &[0; 16]].concat()), "no more than 16 bytes of it");
    assert_eq!(long.ttl, None);
}

#[test]
fn whoever_is_no_subscriber_is_hung_up_on() {
    let with = |at: usize, byte: u8| {
        let mut greeting = greeting(1);
        greeting[at] = byte;
        greeting
    };
    for (said, bad) in [
        (b"GET / HTTP/1.1".to_vec(), Bad::NotZmtp),
        (b"\x01\0\x01".to_vec(), Bad::TooOld),
        (with(9, 0), Bad::TooOld),
        (with(10, 0), Bad::TooOld),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x01".to_vec(), Bad::SocketType("1".to_owned())),
        (with(12, b'C'), Bad::Mechanism("CULL".to_owned())),
        ([greeting(1), zmtp::ready(b"PUB").to_vec()].concat(), Bad::SocketType("PUB".to_owned())),
        ([greeting(1), command("ERROR", b"\x02no")].concat(), Bad::Refuses("no".to_owned())),
        ([greeting(1), command("READY", b"")].concat(), Bad::Protocol("a handshake without a socket type")),
        ([greeting(1), command("PING", b"\0\0")].concat(), Bad::Protocol("a command before the handshake")),
        ([greeting(1), frame(0, b"\x01")].concat(), Bad::Protocol("a message before the handshake")),
        (subscriber(1, &[&[8, 1, 0]]), Bad::Protocol("a frame with unknown flags")),
        (subscriber(1, &[&[COMMAND | MORE, 0]]), Bad::Protocol("a frame with unknown flags")),
        (subscriber(1, &[&[COMMAND, 0]]), Bad::Protocol("a command without a name")),
        (subscriber(1, &[&command("PING", b"\0")]), Bad::Protocol("a PING without a time")),
        (subscriber(1, &[&frame(0, &[1; 257])]), Bad::Protocol("a frame that is longer than any subscription")),
        (subscriber(1, &[&[LONG], &[0xff; 8]]), Bad::Protocol("a frame that is longer than any subscription")),
    ] {
        let left = hear(&said);
        assert_eq!(left.outcome, Err(bad), "{said:?}");
        assert!(!left.subscribed);
    }
}

#[test]
fn one_that_may_not_connect_is_told_so_where_it_can_hear_it() {
    let (mut parser, mut answers) = (Parser::new(false), Vec::new());
    assert_eq!(parser.take(&greeting(1), &mut answers), Err(Bad::NotAllowed));
    assert!(String::from_utf8_lossy(&answers).contains("\u{5}ERROR0kv_events_allow_peers"), "{answers:?}");
    let (mut old, mut answers) = (Parser::new(false), Vec::new());
    assert_eq!(old.take(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01", &mut answers), Err(Bad::NotAllowed));
    assert!(answers.is_empty());
}

proptest! {
    /// What a peer comes to depends on its bytes and not on how they are cut.
    #[test]
    fn cuts_change_nothing(
        minor in 0..3_u8,
        frames in prop::collection::vec((prop::num::u8::ANY, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(0..400_usize, 0..12),
        is_greeted in any::<bool>(),
    ) {
        let frames: Vec<u8> = frames.iter().flat_map(|(flags, body)| match flags & 7 {
            0..=2 => frame(flags & MORE, &[&[1][..], body].concat()),
            3 => command("PING", &[&[0, 9][..], body].concat()),
            4 => command("SUBSCRIBE", body),
            5 => command("CANCEL", body),
            _ => frame(*flags, body),
        }).collect();
        let said = if is_greeted { subscriber(minor, &[&frames, &noise]) } else { [frames, noise].concat() };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(said.len())).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([said.len()]);
        let mut start = 0;
        let pieces: Vec<&[u8]> = ends.map(|end| { let piece = &said[start..end]; start = end; piece }).collect();
        prop_assert_eq!(hear_in(&pieces), hear(&said));
        let bytes: Vec<&[u8]> = said.chunks(1).collect();
        prop_assert_eq!(hear_in(&bytes), hear(&said));
    }

    /// Whatever the system takes at a time, a peer gets every message whole, in order, and no answer within one.
    #[test]
    fn a_queue_writes_whole_messages(
        lens in prop::collection::vec(prop::option::of(0..600_usize), 1..30),
        takes in prop::collection::vec(1..900_usize, 1..40),
    ) {
        let (mut messages, mut outbox, mut written, mut expected) = (Messages::default(), Outbox::default(), Vec::new(), 0);
        let mut takes = takes.iter().cycle();
        let mut take = |outbox: &mut Outbox, messages: &mut Messages, written: &mut Vec<u8>| {
            let mut left = *takes.next().unwrap();
            let mut slices: [IoSlice<'_>; 4] = std::array::from_fn(|_| IoSlice::new(&[]));
            let count = outbox.slices(&mut slices);
            let before = written.len();
            for slice in &slices[..count] {
                let taken = left.min(slice.len());
                written.extend_from_slice(&slice[..taken]);
                left -= taken;
            }
            let taken = written.len() - before;
            outbox.written(taken, messages);
        };
        for (number, len) in (1_u64..).zip(&lens) {
            match len {
                Some(len) => {
                    let fill = |place: &mut [u8]| place.fill(number as u8);
                    let shared = messages.make(&Message::new(number, 1, *len, &fill)).unwrap();
                    prop_assert!(outbox.push(&shared));
                    messages.give_back(shared);
                    expected += 1;
                }
                None => outbox.answers().extend_from_slice(b"\x04\x05\x04PONG"),
            }
            take(&mut outbox, &mut messages, &mut written);
        }
        while !outbox.is_empty() {
            take(&mut outbox, &mut messages, &mut written);
        }
        prop_assert_eq!((messages.held(), outbox.bytes(), outbox.messages()), (0, 0, 0));
        let (mut rest, mut last) = (&written[..], 0);
        while let Some((&flags, behind)) = rest.split_first() {
            if flags == COMMAND {
                // An answer has 7 bytes in this test.
                rest = &rest[7..];
                continue;
            }
            prop_assert_eq!((flags, &behind[..3]), (MORE, &[0, MORE, 8][..]));
            let number = u64::from_be_bytes(behind[3..11].try_into().unwrap());
            prop_assert!(number > last);
            last = number;
            let (head, len) = match behind[11] {
                LONG => (20, u64::from_be_bytes(behind[12..20].try_into().unwrap()) as usize),
                _ => (13, behind[12].into()),
            };
            prop_assert!(behind[head..head + len].iter().all(|byte| *byte == number as u8));
            rest = &behind[head + len..];
            expected -= 1;
        }
        prop_assert_eq!(expected, 0);
    }
}
