//! Whom a subscriber talks to: publishers that connect, endpoints that come and go, and strangers on the port.

use test_support::publisher;

use crate::listening::{STARTED, Told, expect_nothing, listen, next, next_soon, only_source, tell, told};
use kv_events::subscriber::{ConnectError, Delivery, Malformed, RecvError, Settings, Subscriber, TopicFilter};
use kv_events::tracker::{GapCause, Numbering, Verdict};
use publisher::{PATIENCE_MS, Publisher, engine, master};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A publisher that connects, and has seen the subscription.
fn dial_in(endpoint: &str, subscriber: &mut Subscriber, told: &mut Vec<Told>) -> (zmq::Context, zmq::Socket) {
    let context = zmq::Context::new();
    let socket = context.socket(zmq::XPUB).unwrap();
    socket.set_linger(0).unwrap();
    socket.connect(endpoint).unwrap();
    let begun = Instant::now();
    while socket.recv_bytes(zmq::DONTWAIT).is_err() {
        assert!(begun.elapsed().as_millis() < PATIENCE_MS as u128, "no subscription arrives");
        told.extend(next_soon(subscriber));
    }
    (context, socket)
}

fn send(socket: &zmq::Socket, sequence: u64, payload: &[u8]) {
    socket.send_multipart([&b""[..], &sequence.to_be_bytes(), payload], 0).unwrap();
}

#[test]
fn publishers_that_connect_are_told_apart_and_known_again() {
    let mut subscriber = Subscriber::bind(["tcp://127.0.0.1:*"], &Settings::default()).unwrap();
    let endpoint = subscriber.endpoints().next().unwrap().to_owned();
    let mut meanwhile = Vec::new();
    let first = dial_in(&endpoint, &mut subscriber, &mut meanwhile);
    let second = dial_in(&endpoint, &mut subscriber, &mut meanwhile);
    assert_eq!(meanwhile, []);
    let mut names = Vec::new();
    for (peer, number) in [(&first, 0), (&second, 0), (&first, 1), (&second, 1)] {
        send(&peer.1, number, &engine(1.5 + number as f64, &[7]));
        loop {
            if let Delivery::Message(message) = next(&mut subscriber) {
                names.push(message.source().peer().unwrap().to_owned());
                assert_eq!(message.sequence(), number);
                break;
            }
        }
    }
    assert_eq!(names, ["127.0.0.1", "127.0.0.1#2", "127.0.0.1", "127.0.0.1#2"]);
    // One goes, and comes again with its clock behind: it is the same one, in another life.
    drop(second);
    let gone =
        |subscriber: &Subscriber| subscriber.status_handle().sources().iter().any(|peer| peer.disconnections == 1);
    while !gone(&subscriber) {
        meanwhile.extend(next_soon(&mut subscriber));
    }
    let second = dial_in(&endpoint, &mut subscriber, &mut meanwhile);
    send(&second.1, 0, &engine(0.5, &[7]));
    while meanwhile.len() < 3 {
        meanwhile.push(told(&next(&mut subscriber)));
    }
    let restarted = Verdict::Restarted { previous: 1, missed: Some(0) };
    assert_eq!(meanwhile, [Told::Reconnected, Told::Notice(0, restarted), Told::Message(0)]);
    assert_eq!(subscriber.status_handle().sources().len(), 2);
}

#[test]
fn endpoint_of_ours_is_taken_once_and_named_if_it_cannot_be() {
    let settings = Settings::default();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", taken.local_addr().unwrap());
    let refused = Subscriber::bind([&endpoint], &settings);
    assert!(matches!(&refused, Err(ConnectError::System { endpoint: named, .. }) if *named == endpoint), "{refused:?}");
    for (endpoint, reason) in [
        ("tcp://localhost:0", "no address"),
        ("tcp://lo:0", "no address"),
        ("tcp://127.0.0.1:x", "no port from 0"),
        ("udp://127.0.0.1:0", "not supported"),
    ] {
        let error = Subscriber::bind([endpoint], &settings).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(endpoint), "{error}");
    }
    let path = std::env::temp_dir().join(format!("kv-events-bind-{}", std::process::id()));
    let endpoint = format!("ipc://{}", path.display());
    for _ in 0..2 {
        let mut subscriber = Subscriber::bind([&endpoint], &settings).unwrap();
        let twice = Subscriber::bind([&endpoint], &settings);
        assert!(matches!(twice, Err(ConnectError::System { .. })), "somebody is there: {twice:?}");
        let peer = dial_in(&endpoint, &mut subscriber, &mut Vec::new());
        send(&peer.1, 0, &engine(1.5, &[7]));
        assert_eq!(tell(&mut subscriber, 2), [Told::Notice(0, STARTED), Told::Message(0)]);
    }
    assert!(!path.exists());
    // What a process that was killed leaves behind is no obstacle.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(Subscriber::bind([&endpoint], &settings).unwrap());
    assert!(!path.exists());
}

#[test]
fn endpoints_come_and_go_while_it_runs() {
    let publishers = [Publisher::new(), Publisher::new()];
    let mut subscriber = listen(&publishers[0], &Settings::default());
    subscriber.add(&publishers[1].endpoint).unwrap();
    publishers[1].await_resubscription(|| expect_nothing(&mut subscriber));
    assert!(matches!(subscriber.add(&publishers[1].endpoint), Err(ConnectError::Twice { .. })));
    assert!(matches!(subscriber.add("tcp://nowhere"), Err(ConnectError::BadEndpoint { .. })));
    publishers[1].send(1, &master(1000, 1, &["k"]));
    assert_eq!(tell(&mut subscriber, 2), [Told::Notice(1, STARTED), Told::Message(1)]);
    assert!(subscriber.remove(&publishers[1].endpoint));
    assert!(!subscriber.remove(&publishers[1].endpoint));
    publishers[1].send(2, &master(1000, 2, &["k"]));
    publishers[0].send(1, &master(1000, 1, &["k"]));
    assert_eq!(tell(&mut subscriber, 2), [Told::Notice(1, STARTED), Told::Message(1)]);
    assert_eq!(only_source(&subscriber).endpoint, publishers[0].endpoint);
    subscriber.add_bound("tcp://127.0.0.1:0").unwrap();
    assert_eq!(subscriber.endpoints().count(), 2);
}

#[test]
fn four_hundred_endpoints_are_no_matter() {
    let publisher = Publisher::new();
    let endpoints = (1..400).map(|n| format!("ipc:///nonexistent/{n}")).chain([publisher.endpoint.clone()]);
    let mut subscriber = Subscriber::connect(endpoints, &Settings::default()).unwrap();
    publisher.await_resubscription(|| expect_nothing(&mut subscriber));
    publisher.send(1, &master(1000, 1, &["k"]));
    assert_eq!(tell(&mut subscriber, 2), [Told::Notice(1, STARTED), Told::Message(1)]);
    assert_eq!(subscriber.status_handle().sources().len(), 400);
}

#[test]
fn one_counter_over_thirty_topics_shows_no_gap_and_one_for_each_neither() {
    for shared in [true, false] {
        let publisher = Publisher::new();
        let mut subscriber = listen(&publisher, &Settings::default());
        for n in 0..300u64 {
            let number = if shared { n } else { n / 30 };
            publisher.send_to(format!("t{}", n % 30).as_bytes(), number, &engine(1.5 + n as f64, &[n]));
        }
        let mut messages = 0;
        while messages < 300 {
            match next(&mut subscriber) {
                Delivery::Message(_) => messages += 1,
                Delivery::Notice { verdict: Verdict::Started { .. }, .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let publisher = Publisher::new();
    let settings = Settings { numbering: Numbering::Endpoint, ..Settings::default() };
    let mut subscriber = listen(&publisher, &settings);
    for (topic, number) in [(b"a", 0), (b"b", 1), (b"a", 4)] {
        publisher.send_to(topic, number, &engine(1.5 + number as f64, &[7]));
    }
    let gap = Verdict::Gap { from: 2, to: 3, cause: GapCause::Unknown };
    let expected =
        [Told::Notice(0, STARTED), Told::Message(0), Told::Message(1), Told::Notice(4, gap), Told::Message(4)];
    assert_eq!(tell(&mut subscriber, 5), expected);
}

#[test]
fn topics_long_silent_make_room() {
    let publisher = Publisher::new();
    let settings = Settings { max_topics: 3, topic_idle: Duration::ZERO, ..Settings::default() };
    let mut subscriber = listen(&publisher, &settings);
    for topic in 0..300u32 {
        publisher.send_to(&topic.to_be_bytes(), 0, &engine(1.5, &[7]));
        assert_eq!(tell(&mut subscriber, 2), [Told::Notice(0, STARTED), Told::Message(0)]);
        assert!(subscriber.status_handle().sources().len() <= 3);
    }
}

#[test]
fn call_does_a_bounded_amount_of_work_and_says_that_there_is_more() {
    let publisher = Publisher::new();
    let mut subscriber =
        listen(&publisher, &Settings { topic: TopicFilter::Exact(b"a".to_vec()), ..Settings::default() });
    for n in 0..20_000 {
        publisher.send_to(b"ab", n, &engine(1.5, &[7]));
    }
    publisher.send_to(b"a", 0, &engine(1.5, &[7]));
    // Each call ends, and what is left is told by the descriptor.
    let mut calls = 0;
    loop {
        match subscriber.try_recv() {
            Ok(delivery) => {
                assert_eq!(told(&delivery), Told::Notice(0, STARTED));
                break;
            }
            Err(error) => assert!(matches!(error, RecvError::Empty), "{error}"),
        }
        calls += 1;
        use std::os::fd::AsRawFd;
        let mut items = [zmq::PollItem::from_fd(subscriber.as_raw_fd(), zmq::POLLIN)];
        assert!(zmq::poll(&mut items, PATIENCE_MS.into()).unwrap() > 0, "after {calls} calls");
    }
    assert!(calls >= 10, "{calls}");
}

/// Answers whoever connects with `words`, and reports what a subscriber makes of it.
fn stranger(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
    std::thread::spawn(move || {
        let mut there = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(words);
            there.push(stream);
        }
    });
    trouble(&mut subscriber)
}

fn trouble(subscriber: &mut Subscriber) -> String {
    let begun = Instant::now();
    loop {
        expect_nothing(subscriber);
        let status = only_source(subscriber);
        if let Some(trouble) = status.trouble.filter(|_| status.is_stranger) {
            assert_eq!((status.connections, status.disconnections), (0, 0));
            return trouble;
        }
        assert!(begun.elapsed().as_millis() < PATIENCE_MS as u128, "nothing is told");
    }
}

#[test]
fn what_is_there_instead_of_a_publisher_is_told() {
    for (kind, name) in [(zmq::ROUTER, "ROUTER"), (zmq::SUB, "SUB"), (zmq::REP, "REP"), (zmq::PUSH, "PUSH")] {
        let context = zmq::Context::new();
        let socket = context.socket(kind).unwrap();
        socket.set_linger(0).unwrap();
        socket.bind("tcp://127.0.0.1:*").unwrap();
        let endpoint = socket.get_last_endpoint().unwrap().unwrap();
        let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
        let trouble = trouble(&mut subscriber);
        // Some hang up before they have said what they are.
        assert!(trouble.contains(name) || trouble.contains("in the handshake"), "{name}: {trouble}");
    }
    const CURVE: [u8; 64] = {
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        (greeting[12], greeting[13], greeting[14], greeting[15], greeting[16]) = (b'C', b'U', b'R', b'V', b'E');
        greeting
    };
    const OLD: [u8; 64] = {
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 1);
        greeting
    };
    for (words, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak ZeroMQ"),
        (b"220 mail ESMTP\r\n", "does not speak ZeroMQ"),
        (&CURVE, "security mechanism CURVE"),
        (&OLD, "older than ZMTP 3"),
        (b"", "not at all"),
    ] {
        let trouble = stranger(words);
        assert!(trouble.contains(expected), "{trouble}");
    }
}

/// A PUB socket by hand, from the moment it has seen the subscription.
fn by_hand(subscriber: &mut Subscriber, listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let mut stream = loop {
        expect_nothing(subscriber);
        if let Ok((stream, _)) = listener.accept() {
            break stream;
        }
    };
    stream.set_nonblocking(true).unwrap();
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).unwrap();
    stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB").unwrap();
    let heard = hear(subscriber, &mut stream, 64 + 27 + 3);
    assert_eq!(heard[64..], *b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB\0\x01\x01");
    stream
}

fn hear(subscriber: &mut Subscriber, stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    while heard.len() < bytes {
        expect_nothing(subscriber);
        let mut some = [0; 256];
        if let Ok(read) = stream.read(&mut some) {
            heard.extend_from_slice(&some[..read]);
        }
    }
    heard
}

#[test]
fn heartbeats_are_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
    let mut stream = by_hand(&mut subscriber, &listener);
    stream.write_all(b"\x04\x0a\x04PING\0\x0aabc").unwrap();
    assert_eq!(hear(&mut subscriber, &mut stream, 10), b"\x04\x08\x04PONGabc");
}

#[test]
fn message_of_endless_frames_is_told_and_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
    let mut stream = by_hand(&mut subscriber, &listener);
    let frame = [1, 1, b'x'];
    for _ in 0..1024 {
        stream.write_all(&frame).unwrap();
    }
    expect_nothing(&mut subscriber);
    stream.write_all(&frame).unwrap();
    assert_eq!(told(&next(&mut subscriber)), Told::Malformed(None, Malformed::Frames(1025)));
    assert_eq!(only_source(&subscriber).disconnections, 1);
    // And it is tried again.
    drop(by_hand(&mut subscriber, &listener));
}

#[test]
fn frame_beyond_all_measure_is_told_and_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
    let mut stream = by_hand(&mut subscriber, &listener);
    stream.write_all(b"\x01\0\x01\x08\0\0\0\0\0\0\0\x01\x02\x7f\xff\xff\xff\xff\xff\xff\xff").unwrap();
    let reason = Malformed::TooLarge { bytes: i64::MAX as u64, limit: 16 << 20 };
    assert_eq!(told(&next(&mut subscriber)), Told::Malformed(None, reason));
    assert_eq!(only_source(&subscriber).disconnections, 1);
}
