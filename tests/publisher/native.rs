//! What the native transport does that libzmq does not: it bounds and counts what each subscriber misses, and who connects.
#![cfg(all(feature = "native", target_os = "linux"))]

use crate::common::{briefs, read_payload, wait_until};
use kv_events::{Config, MediaSet, Object, Publisher, TransportKind};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use test_support::alone;
use test_support::zmtp::{connect, greet, is_closed_by_peer, reset, shake_hands, subscription};

fn native() -> Config {
    Config::new("tcp://127.0.0.1:0", "b").transport(TransportKind::Native)
}

fn endpoint(publisher: &Publisher) -> String {
    publisher.bound_endpoint().unwrap().to_owned()
}

/// A subscriber over a bare stream, known to the publisher.
fn subscriber(publisher: &Publisher) -> TcpStream {
    let before = publisher.status().peers.len();
    let mut stream = connect(&endpoint(publisher));
    shake_hands(&mut stream).unwrap();
    stream.write_all(&subscription(b"")).unwrap();
    wait_until("it is subscribed", || publisher.status().peers.len() > before);
    stream
}

fn exact<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// The next message: its number and payload.
fn next(stream: &mut TcpStream) -> (u64, Vec<u8>) {
    assert_eq!(exact(stream), [1, 0, 1, 8], "an empty topic, and a number behind it");
    let sequence = u64::from_be_bytes(exact(stream));
    let len = match exact(stream) {
        [0] => exact::<1>(stream)[0].into(),
        [2] => u64::from_be_bytes(exact(stream)) as usize,
        [flags] => panic!("flags {flags}"),
    };
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).unwrap();
    (sequence, payload)
}

/// Publishes so many events, each in a message of its own.
fn publish(publisher: &Publisher, count: u64, key: &str) {
    for _ in 0..count {
        let before = publisher.status().published_events;
        publisher.committed(&Object::new("t", key), MediaSet::CPU);
        wait_until("it is sent", || publisher.status().published_events > before);
    }
}

#[test]
fn peers_of_every_version_get_whole_messages() {
    let publisher = Publisher::start(native()).unwrap();
    let mut old = connect(&endpoint(&publisher));
    // ZMTP 2: type and identity behind the version, and the same of the other side.
    old.write_all(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\0\0\x01\x01").unwrap();
    assert_eq!(exact(&mut old), *b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x01\0\0");
    wait_until("it is subscribed", || publisher.status().peers.len() == 1);
    let mut v3 = subscriber(&publisher);
    let mut v31 = connect(&endpoint(&publisher));
    shake_hands(&mut v31).unwrap();
    v31.write_all(b"\x04\x0a\x09SUBSCRIBE").unwrap();
    wait_until("it is subscribed", || publisher.status().peers.len() == 3);
    for key in ["short", &"long".repeat(200)] {
        publish(&publisher, 1, key);
        for stream in [&mut old, &mut v3, &mut v31] {
            let (sequence, payload) = next(stream);
            assert_eq!(briefs(&[read_payload(sequence, &payload)]), [format!("stored cpu {key}")]);
        }
    }
    // Cancelled, and then the other two alone.
    v31.write_all(b"\x04\x07\x06CANCEL").unwrap();
    wait_until("it is gone from the list", || publisher.status().peers.len() == 2);
    publish(&publisher, 1, "last");
    assert!(next(&mut old).0 == 3 && next(&mut v3).0 == 3);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    assert!(is_closed_by_peer(&mut v31));
}

#[test]
fn a_ping_is_answered_between_messages_and_silence_beyond_its_time_ends_the_connection() {
    let publisher = Publisher::start(native()).unwrap();
    let mut peer = subscriber(&publisher);
    peer.write_all(b"\x04\x0b\x04PING\0\x01none").unwrap();
    assert_eq!(exact(&mut peer), *b"\x04\x09\x04PONGnone");
    // A tenth of a second was what it said.
    assert!(is_closed_by_peer(&mut peer));
    wait_until("it is gone from the list", || publisher.status().peers.is_empty());
}

/// More than the system's buffers hold goes to one that reads and one that does not.
fn one_slow_one_fast(config: Config) {
    let publisher = Publisher::start(config.linger(Duration::ZERO)).unwrap();
    let (mut slow, mut fast) = (subscriber(&publisher), subscriber(&publisher));
    let key = "k".repeat(15_000);
    let mut sent = 0;
    while publisher.status().peer_dropped_messages < 20 {
        publish(&publisher, 10, &key);
        for _ in 0..10 {
            sent += 1;
            assert_eq!(next(&mut fast).0, sent, "the fast one misses nothing");
        }
        assert!(sent < 10_000, "all of it was taken");
    }
    let status = publisher.status();
    assert_eq!(status.dropped_events, 0, "to the publisher they are published");
    let [behind, up] = &status.peers[..] else { panic!("{status:?}") };
    let missed = (behind.dropped_messages, behind.dropped_events);
    assert_eq!(missed, (status.peer_dropped_messages, status.peer_dropped_events));
    assert_eq!((up.dropped_messages, behind.address.clone()), (0, slow.local_addr().unwrap().to_string()));
    assert!(behind.queued_messages > 0 && behind.queued_bytes > 15_000 && behind.since_ms > 1_600_000_000_000);
    // What waits for it is the oldest, without a gap; then comes one gap of what was dropped.
    let (mut expected, mut gap) = (1, 0);
    while gap == 0 {
        let (sequence, _) = next(&mut slow);
        gap = sequence - expected;
        expected = sequence + 1;
        if sequence == sent - missed.0 {
            publish(&publisher, 1, "after");
        }
    }
    assert_eq!(gap, missed.0);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
}

#[test]
fn messages_that_wait_for_a_subscriber_are_bounded_and_what_it_misses_is_counted() {
    one_slow_one_fast(native().send_hwm(20));
}

#[test]
fn so_are_their_bytes() {
    one_slow_one_fast(native().send_hwm(0).peer_queue_bytes(200_000));
}

#[test]
fn and_those_of_all_subscribers_together() {
    one_slow_one_fast(native().send_hwm(0).total_queue_bytes(200_000));
}

#[test]
fn connections_are_counted_and_the_ones_that_are_too_many_are_closed() {
    for config in [native().max_peers(3), native().max_peers_per_address(3)] {
        let publisher = Publisher::start(config).unwrap();
        let mut streams: Vec<TcpStream> = (0..3).map(|_| subscriber(&publisher)).collect();
        assert!(is_closed_by_peer(&mut connect(&endpoint(&publisher))));
        wait_until("it is counted", || publisher.status().refused_connections == 1);
        streams.pop();
        wait_until("it is gone", || publisher.status().peers.len() == 2);
        streams.push(subscriber(&publisher));
        publish(&publisher, 1, "k");
        assert!(streams.iter_mut().all(|stream| next(stream).0 == 1));
        assert!(publisher.stop(Duration::from_secs(60)).closed);
    }
}

#[test]
fn one_in_its_handshake_makes_room_for_another() {
    let publisher = Publisher::start(native().max_peers(2)).unwrap();
    let mut first = subscriber(&publisher);
    let mut silent = connect(&endpoint(&publisher));
    greet(&mut silent).unwrap();
    let mut second = subscriber(&publisher);
    assert!(is_closed_by_peer(&mut silent));
    publish(&publisher, 1, "k");
    assert!(next(&mut first).0 == 1 && next(&mut second).0 == 1);
}

#[test]
fn a_storm_of_connections_leaves_nothing_behind() {
    if !alone!("a_storm_of_connections_leaves_nothing_behind") {
        return;
    }
    let files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = files();
    let publisher = Publisher::start(native()).unwrap();
    let own = files() - before;
    println!("measured: a publisher has {own} descriptors");
    assert!(own <= 6, "{own}");
    let mut stays = subscriber(&publisher);
    let settled = files();
    let endpoint = endpoint(&publisher);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let endpoint = &endpoint;
            scope.spawn(move || {
                for round in 0..100 {
                    let mut stream = connect(endpoint);
                    let _ = shake_hands(&mut stream).and_then(|()| stream.write_all(&subscription(b"")));
                    // By a reset, in the middle of a frame, or in order.
                    match (round + thread) % 3 {
                        0 => reset(stream),
                        1 => _ = stream.write_all(&[0, 200, 1]),
                        _ => {}
                    }
                }
            });
        }
        publish(&publisher, 200, "k");
    });
    for number in 1..=200 {
        assert_eq!(next(&mut stays).0, number);
    }
    wait_until("one is left", || publisher.status().peers.len() == 1 && files() == settled);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    // With it goes what its callers would wake the sender by.
    drop((publisher, stays));
    assert_eq!(files(), before);
}

#[test]
fn stop_waits_for_a_slow_subscriber_until_its_deadline() {
    for (patience, all) in [(Duration::from_secs(60), true), (Duration::from_millis(50), false)] {
        let publisher = Publisher::start(native().linger(patience)).unwrap();
        let mut slow = subscriber(&publisher);
        let key = "k".repeat(15_000);
        // Until something waits here, since the system's buffers are full.
        while publisher.status().peers[0].queued_messages < 20 {
            publish(&publisher, 10, &key);
        }
        let sent = publisher.status().published_batches;
        let read = std::thread::spawn(move || {
            let mut read = 0;
            if all {
                while read < sent {
                    read = next(&mut slow).0;
                }
                assert!(is_closed_by_peer(&mut slow));
            }
            (read, slow)
        });
        let report = publisher.stop(Duration::from_secs(60));
        assert!(report.closed && report.published == sent, "{report:?}");
        assert!(!all || read.join().unwrap().0 == sent);
    }
}
