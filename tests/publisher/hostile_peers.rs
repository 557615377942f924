//! Peers on the port that are no good subscribers: what they can do to the publisher's memory and to its sender.
#![cfg(all(feature = "zmq", target_os = "linux", target_env = "gnu"))]

use crate::common::sub::{Sub, loopback};
use crate::common::wait_until;
use kv_events::{MediaSet, Object, Publisher};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use test_support::alone;
use test_support::alone::bytes_in_use;
use test_support::zmtp::{connect, greet, is_closed_by_peer, reset, shake_hands, subscription};

/// Half-open connections of a test, both ends of which are this process's.
fn crowd() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the call to write to.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    (limit.rlim_cur as usize / 4).min(3000)
}

fn start() -> (Publisher, Sub, String) {
    let publisher = Publisher::start(loopback().send_hwm(0)).unwrap();
    let sub = Sub::of(&publisher);
    let endpoint = publisher.bound_endpoint().unwrap().to_owned();
    (publisher, sub, endpoint)
}

/// The good subscriber gets everything, in order, without a gap.
fn all_is_well(publisher: &Publisher, sub: &Sub) {
    for _ in 0..500 {
        publisher.committed(&Object::new("t", "k"), MediaSet::BOTH);
    }
    let messages = sub.events(1000);
    assert!(messages.windows(2).all(|pair| pair[1].sequence == pair[0].sequence + 1));
}

#[test]
fn garbage_is_hung_up_on() {
    let (publisher, sub, endpoint) = start();
    let noise = [b'x'; 100_000];
    let mut streams: Vec<_> = (0..200).map(|_| connect(&endpoint)).collect();
    for (n, stream) in streams.iter_mut().enumerate() {
        // Noise, which is let go on for as long as a handshake may take, since it could be an old peer's; a greeting and then
        // noise; a handshake and then noise.
        let _ = match n % 3 {
            0 => stream.write_all(&noise),
            1 => greet(stream).and_then(|()| stream.write_all(&noise)),
            _ => shake_hands(stream).and_then(|()| stream.write_all(&[0xff; 1000])),
        };
    }
    all_is_well(&publisher, &sub);
    assert!(streams.iter_mut().all(is_closed_by_peer));
    all_is_well(&publisher, &sub);
}

#[test]
fn a_huge_message_is_refused_before_it_is_stored() {
    if !alone!("a_huge_message_is_refused_before_it_is_stored") {
        return;
    }
    let (publisher, sub, endpoint) = start();
    let before = bytes_in_use();
    for len in [2000_u64, 1 << 30, 1 << 62, u64::MAX] {
        let mut stream = connect(&endpoint);
        shake_hands(&mut stream).unwrap();
        stream.write_all(&[2]).unwrap(); // a long frame
        stream.write_all(&len.to_be_bytes()).unwrap();
        let _ = stream.write_all(&[1; 1000]);
        assert!(is_closed_by_peer(&mut stream), "a message of {len} bytes");
    }
    all_is_well(&publisher, &sub);
    assert!(bytes_in_use() < before + (1 << 20));
}

#[test]
fn peers_that_never_shake_hands_cost_little_and_are_hung_up_on() {
    if !alone!("peers_that_never_shake_hands_cost_little_and_are_hung_up_on") {
        return;
    }
    let (publisher, sub, endpoint) = start();
    let before = bytes_in_use();
    let mut silent: Vec<_> = (0..crowd()).map(|_| connect(&endpoint)).collect();
    all_is_well(&publisher, &sub);
    let each = bytes_in_use().saturating_sub(before) / silent.len();
    println!("measured: {} half-open connections, {each} bytes each", silent.len());
    assert!(each < 64 << 10, "{each} bytes each");
    // Late ones get in all the same.
    let late = Sub::connect(&endpoint);
    wait_until("a late subscriber gets in", || {
        publisher.cleared("t");
        late.try_next(10).is_some()
    });
    assert!(silent.iter_mut().all(is_closed_by_peer));
    wait_until("their memory has come back", || bytes_in_use() < before + (4 << 20));
}

#[test]
fn peers_that_come_and_go_leave_nothing_behind_at_an_idle_publisher() {
    if !alone!("peers_that_come_and_go_leave_nothing_behind_at_an_idle_publisher") {
        return;
    }
    let publisher = Publisher::start(loopback()).unwrap();
    let endpoint = publisher.bound_endpoint().unwrap();
    let come_and_go = |times| {
        for _ in 0..times {
            let mut stream = connect(endpoint);
            shake_hands(&mut stream).unwrap();
            stream.write_all(&subscription(b"")).unwrap();
        }
    };
    come_and_go(100);
    let before = bytes_in_use();
    come_and_go(2000);
    println!("measured: {} KiB held for 2000 peers that are gone", bytes_in_use().saturating_sub(before) >> 10);
    // Nothing is published meanwhile: the sender sees to it all the same.
    wait_until("their memory has come back", || bytes_in_use() < before + (2 << 20));
}

#[test]
fn a_peer_that_subscribes_without_end_stalls_nobody() {
    if !alone!("a_peer_that_subscribes_without_end_stalls_nobody") {
        return;
    }
    let (publisher, sub, endpoint) = start();
    let before = bytes_in_use();
    let over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let hostile = scope.spawn(|| subscribe_until(&endpoint, &over));
        let began = Instant::now();
        for _ in 0..40 {
            all_is_well(&publisher, &sub);
        }
        println!("measured: 20,000 calls one round of 500 at a time took {:?}", began.elapsed());
        over.store(true, Ordering::Release);
        hostile.join().unwrap()
    });
    let held = bytes_in_use().saturating_sub(before);
    println!("measured: {} KiB of subscriptions sent, {} KiB held for them", sent >> 10, held >> 10);
    // libzmq keeps every topic, a node for each of its bytes: how much a flood costs is the peer's choice, and the docs say so.
    // What one subscription costs is not.
    assert!(sent > 0 && held < 64 * sent + (8 << 20), "{held} bytes held for {sent} bytes of subscriptions");
    // What the peer had sent before it went is still read.
    all_is_well(&publisher, &sub);
    drop(publisher);
    wait_until("their memory has come back", || bytes_in_use() < before + (8 << 20));
}

/// What libzmq ends the process for, if the sender has not read the subscriptions: some of them, a PING behind, a reset.
#[test]
fn peers_that_ping_and_vanish_end_nothing() {
    if !alone!("peers_that_ping_and_vanish_end_nothing") {
        return;
    }
    let (publisher, sub, endpoint) = start();
    for round in 0..60_u16 {
        let mut stream = connect(&endpoint);
        shake_hands(&mut stream).unwrap();
        let count = [6, 30, 90][usize::from(round) % 3];
        let mut frames: Vec<u8> = (0..count).flat_map(|topic: u16| subscription(&topic.to_be_bytes())).collect();
        frames.extend_from_slice(b"\x04\x07\x04PING\0\x0a");
        stream.write_all(&frames).unwrap();
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        reset(stream);
        if round % 4 == 3 {
            all_is_well(&publisher, &sub);
        }
    }
    all_is_well(&publisher, &sub);
}

/// What the flood sends at most, since the memory it takes is some forty times that.
const FLOOD: usize = 8 << 20;

/// Subscribes to one long topic after another, no two alike, and stays; returns the bytes sent.
fn subscribe_until(endpoint: &str, over: &AtomicBool) -> usize {
    let mut stream = connect(endpoint);
    shake_hands(&mut stream).unwrap();
    stream.set_nonblocking(true).unwrap();
    let (mut sent, mut random) = (0, 1_u64);
    while !over.load(Ordering::Acquire) && sent < FLOOD {
        let mut topic = [0; 240];
        for part in topic.chunks_exact_mut(8) {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            part.copy_from_slice(&random.to_be_bytes());
        }
        let frame = subscription(&topic);
        let mut rest = &frame[..];
        while !rest.is_empty() && !over.load(Ordering::Acquire) {
            match stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        sent += frame.len() - rest.len();
    }
    while !over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
    sent
}
