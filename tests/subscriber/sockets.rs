//! The subscriber's sockets: limits, connections lost and mended, waiting and ceasing to wait, endpoints.

use test_support::publisher;

use crate::listening::{STARTED, Told, expect_nothing, listen, next, only_source, tell, told};
use kv_events::subscriber::{ConnectError, Delivery, Malformed, RecvError, Settings, Subscriber, TopicFilter};
use kv_events::tracker::{GapCause, Verdict};
use publisher::{PATIENCE_MS, Publisher, engine, master};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

#[test]
fn what_waits_too_long_is_dropped_by_the_publisher_and_told() {
    // A fault seen elsewhere: "a configured limit was never applied to the socket"
    let publisher = Publisher::bound_to("tcp://127.0.0.1:*", 2);
    let settings = Settings { receive_buffer_bytes: Some(64 << 10), ..Settings::default() };
    let mut subscriber = listen(&publisher, &settings);
    let big = "k".repeat(64 << 10);
    let mut sequence = 0;
    let mut publish = || {
        sequence += 1;
        publisher.send(sequence, &master(1000, sequence, &[&big]));
    };
    // Far more than both queues and the kernel's buffers hold.
    (0..4000).for_each(|_| publish());
    let begun = Instant::now();
    let gap = loop {
        match subscriber.try_recv() {
            Ok(Delivery::Notice { verdict: gap @ Verdict::Gap { .. }, .. }) => break gap,
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, RecvError::Empty) && begun.elapsed().as_millis() < PATIENCE_MS as u128);
                publish();
            }
        }
    };
    assert!(matches!(gap, Verdict::Gap { cause: GapCause::Lost, .. }), "{gap:?}");
}

#[test]
fn oversized_frame_is_told_with_its_size_and_costs_nothing_else() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings { max_frame_bytes: 1000, ..Settings::default() });
    let big = master(1000, 2, &[&"k".repeat(1000)]);
    let reason = Malformed::TooLarge { bytes: big.len() as u64, limit: 1000 };
    publisher.send(1, &master(1000, 1, &["k"]));
    publisher.send(2, &big);
    publisher.send(3, &master(1000, 3, &["k"]));
    let expected = [Told::Notice(1, STARTED), Told::Message(1), Told::Malformed(Some(2), reason), Told::Message(3)];
    assert_eq!(tell(&mut subscriber, 4), expected);
    assert_eq!(
        reason.to_string(),
        format!("a frame of {} bytes, where the limit is 1000 (max_frame_bytes)", big.len())
    );
    // As a topic or a number it is as much of a message.
    publisher.send_frames(&[&big, &4u64.to_be_bytes(), b""]);
    publisher.send_frames(&[b"", &big, b""]);
    publisher.send_frames(&[b"", &4u64.to_be_bytes(), &master(1000, 4, &["k"]), &big]);
    let told = tell(&mut subscriber, 3);
    assert_eq!(told, [Told::Malformed(None, reason); 3]);
    publisher.send(4, &master(1000, 4, &["k"]));
    assert_eq!(tell(&mut subscriber, 1), [Told::Message(4)]);
    let status = only_source(&subscriber);
    assert_eq!((status.connections, status.disconnections, status.malformed_size, status.counters.gaps), (1, 0, 4, 0));
}

#[test]
fn topic_that_is_too_long_is_told() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings { max_topic_bytes: 10, ..Settings::default() });
    publisher.send_to(b"0123456789", 1, &master(1000, 1, &["k"]));
    publisher.send_to(b"0123456789a", 1, &master(1000, 1, &["k"]));
    let expected = [Told::Notice(1, STARTED), Told::Message(1), Told::Malformed(None, Malformed::TopicLength(11))];
    assert_eq!(tell(&mut subscriber, 3), expected);
    assert_eq!(subscriber.status_handle().sources().len(), 2);
}

#[test]
fn a_handshake_that_fails_is_no_connection() {
    let folder = std::env::temp_dir().join(format!("kv-events-handshake-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    let endpoint = format!("ipc://{}", path.display());
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default()).unwrap();
    // Somebody is there, and hangs up: a tunnel whose other end is down, say.
    listener.set_nonblocking(true).unwrap();
    let mut hung_up = 0;
    while hung_up < 5 {
        hung_up += usize::from(listener.accept().is_ok());
        expect_nothing(&mut subscriber);
    }
    let status = only_source(&subscriber);
    assert_eq!((status.connections, status.disconnections), (0, 0));
    drop(listener);
    std::fs::remove_file(&path).unwrap();
    let publisher = Publisher::bound_to(&endpoint, 0);
    publisher.await_resubscription(|| expect_nothing(&mut subscriber));
    let status = only_source(&subscriber);
    assert_eq!((status.connections, status.disconnections), (1, 0));
    drop((publisher, subscriber));
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn lost_connection_is_made_again_while_another_endpoint_is_busy() {
    let (cut_off, busy) = (Publisher::new(), Publisher::new());
    let endpoint = cut_off.endpoint.clone();
    let mut subscriber = Subscriber::connect([&endpoint, &busy.endpoint], &Settings::default()).unwrap();
    cut_off.await_resubscription(|| expect_nothing(&mut subscriber));
    busy.await_resubscription(|| expect_nothing(&mut subscriber));
    drop(cut_off);
    let mut sequence = 0;
    let mut keep_busy = |subscriber: &mut Subscriber| {
        for _ in 0..2 {
            sequence += 1;
            busy.send(sequence, &engine(1.5, &[]));
        }
        next(subscriber);
    };
    (0..100).for_each(|_| keep_busy(&mut subscriber));
    let cut_off = Publisher::bound_to(&endpoint, 0);
    cut_off.await_resubscription(|| keep_busy(&mut subscriber));
}

#[test]
fn quiet_endpoints_are_heard_beside_a_busy_one() {
    let publishers = [Publisher::new(), Publisher::new(), Publisher::new()];
    let endpoints = publishers.iter().map(|publisher| &publisher.endpoint);
    let mut subscriber = Subscriber::connect(endpoints, &Settings::default()).unwrap();
    publishers.iter().for_each(|publisher| publisher.await_resubscription(|| expect_nothing(&mut subscriber)));
    let [busy, quiet @ ..] = &publishers;
    let batch = engine(1.5, &[]);
    (1..=500).for_each(|sequence| busy.send(sequence, &batch));
    quiet.iter().for_each(|publisher| publisher.send(1, &batch));
    let mut unheard: Vec<_> = quiet.iter().map(|publisher| publisher.endpoint.as_str()).collect();
    let begun = Instant::now();
    // Never fewer than 500 wait at the busy one.
    for sequence in 501.. {
        if unheard.is_empty() {
            break;
        }
        assert!(begun.elapsed().as_millis() < PATIENCE_MS as u128, "{unheard:?} is not heard");
        busy.send(sequence, &batch);
        if let Delivery::Message(message) = next(&mut subscriber) {
            unheard.retain(|endpoint| *endpoint != message.source().endpoint());
        }
    }
}

#[test]
fn stop_ends_a_wait_and_every_later_call() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    let stop = subscriber.stop_handle();
    assert!(!stop.is_stopped());
    publisher.send(1, &master(1000, 1, &["k"]));
    let (received, first) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        received.send(told(&subscriber.recv().unwrap())).unwrap();
        assert!(matches!(subscriber.recv(), Ok(Delivery::Message(_)) | Err(RecvError::Stopped)));
        assert!(matches!(subscriber.recv(), Err(RecvError::Stopped)));
        subscriber
    });
    assert_eq!(first.recv().unwrap(), Told::Notice(1, STARTED));
    stop.clone().stop();
    stop.stop();
    let mut subscriber = waiter.join().unwrap();
    // What has arrived since is not handed over any more.
    publisher.send(2, &master(1000, 2, &["k"]));
    assert!(stop.is_stopped());
    assert!(matches!(subscriber.try_recv(), Err(RecvError::Stopped)));
    assert!(matches!(subscriber.recv_timeout(Duration::MAX), Err(RecvError::Stopped)));
}

#[test]
fn empty_is_said_at_once_or_when_the_time_is_over() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    assert!(matches!(subscriber.try_recv(), Err(RecvError::Empty)));
    let (begun, timeout) = (Instant::now(), Duration::from_millis(20));
    assert!(matches!(subscriber.recv_timeout(timeout), Err(RecvError::Empty)));
    assert!(begun.elapsed() >= timeout);
}

#[test]
fn descriptor_tells_when_there_is_something_to_receive() {
    let publishers = [Publisher::new(), Publisher::new()];
    let mut subscriber =
        Subscriber::connect(publishers.each_ref().map(|publisher| &publisher.endpoint), &Settings::default()).unwrap();
    for publisher in &publishers {
        publisher.await_resubscription(|| expect_nothing(&mut subscriber));
    }
    let fd = subscriber.as_raw_fd();
    let wait = || {
        let mut items = [zmq::PollItem::from_fd(fd, zmq::POLLIN)];
        assert!(zmq::poll(&mut items, PATIENCE_MS.into()).unwrap() > 0, "it becomes readable");
    };
    // As the rule has it: receive until empty, then wait.
    let drain = |subscriber: &mut Subscriber| {
        let mut messages = 0;
        loop {
            match subscriber.try_recv() {
                Ok(Delivery::Message(_)) => messages += 1,
                Ok(_) => {}
                Err(RecvError::Empty) => return messages,
                Err(error) => panic!("{error}"),
            }
        }
    };
    drain(&mut subscriber);
    for round in 0..200 {
        publishers[0].send(round + 1, &engine(1.5, &[]));
        publishers[1].send(2 * round + 1, &engine(1.5, &[]));
        publishers[1].send(2 * round + 2, &engine(1.5, &[]));
        let mut left = 3;
        while left > 0 {
            wait();
            left -= drain(&mut subscriber);
        }
    }
    subscriber.stop_handle().stop();
    wait();
    assert!(matches!(subscriber.try_recv(), Err(RecvError::Stopped)));
}

#[test]
fn signals_do_not_end_a_wait() {
    extern "C" fn nothing(_: libc::c_int) {}
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    // SAFETY: the action is zeroed but for a handler that does nothing; without SA_RESTART it interrupts what waits.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    let (send, thread) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            // SAFETY: asks for the calling thread's own id.
            send.send(unsafe { libc::pthread_self() } as usize).unwrap();
            told(&next(&mut subscriber))
        });
        let thread = thread.recv().unwrap();
        for _ in 0..1000 {
            // SAFETY: the thread is not joined yet, so its id is valid.
            assert_eq!(unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) }, 0);
            std::thread::yield_now();
        }
        publisher.send(1, &master(1000, 1, &["k"]));
        assert_eq!(waiter.join().unwrap(), Told::Notice(1, STARTED));
    });
}

#[test]
fn bad_endpoints_and_settings_are_named() {
    let connect = |endpoint: &str| Subscriber::connect([endpoint], &Settings::default());
    for (endpoint, reason) in [
        ("", "names no transport"),
        ("127.0.0.1:5557", "names no transport"),
        ("tcp://127.0.0.1:5557\0", "NUL"),
        ("\0", "NUL"),
        ("udp://127.0.0.1:5557", "not supported"),
        ("inproc://here", "not supported"),
        ("tcp://127.0.0.1", "names no port"),
        ("tcp://127.0.0.1:", "no port from 1"),
        ("tcp://127.0.0.1:0", "no port from 1"),
        ("tcp://127.0.0.1:+1", "no port from 1"),
        ("tcp://127.0.0.1:65536", "no port from 1"),
        ("tcp://127.0.0.1:5557x", "no port from 1"),
        ("tcp://:5557", "names no host"),
        ("tcp://*:5557", "names no host"),
        ("tcp://[::1:5557", "no IPv6 address"),
        ("tcp://[::g]:5557", "no IPv6 address"),
        ("tcp://127.0.0.1;:5557", "is no address"),
        ("tcp://a b:5557", "is no address"),
        ("ipc://", "names no path"),
    ] {
        match connect(endpoint) {
            Err(error @ ConnectError::BadEndpoint { .. }) => {
                let text = error.to_string();
                assert!(text.contains(reason) && text.contains(&format!("{endpoint:?}")), "{text}");
            }
            other => panic!("{endpoint:?}: {other:?}"),
        }
    }
    let too_long = format!("ipc:///{}", "x".repeat(500));
    assert!(matches!(connect(&too_long), Err(ConnectError::BadEndpoint { endpoint, .. }) if endpoint == too_long));
    let none: [&str; 0] = [];
    assert!(matches!(Subscriber::connect(none, &Settings::default()), Err(ConnectError::NoEndpoint)));
    let twice = ["tcp://127.0.0.1:9", "tcp://127.0.0.1:9"];
    assert!(matches!(Subscriber::connect(twice, &Settings::default()), Err(ConnectError::Twice { .. })));
    for settings in [
        Settings { max_topics: 0, ..Settings::default() },
        Settings { max_peers: 0, ..Settings::default() },
        Settings { keepalive: Some(Duration::ZERO), ..Settings::default() },
        Settings { max_topic_bytes: 1, topic: TopicFilter::Exact(b"ab".to_vec()), ..Settings::default() },
    ] {
        let refused = Subscriber::connect(["tcp://127.0.0.1:9"], &settings);
        assert!(matches!(refused, Err(ConnectError::BadSetting { .. })), "{refused:?}");
    }
    // Nobody has to be there: neither a host, nor a listener.
    for endpoint in [
        "tcp://127.0.0.1:9",
        "tcp://[::1]:9",
        "tcp://::1:9",
        "tcp://fe80::1%lo:9",
        "tcp://no-such-host.invalid:5557",
        "ipc:///tmp/nobody",
    ] {
        let mut subscriber = connect(endpoint).unwrap();
        assert!(matches!(subscriber.try_recv(), Err(RecvError::Empty)), "{endpoint}");
    }
}
