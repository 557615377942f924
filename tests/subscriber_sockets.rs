//! The subscriber's sockets: limits, connections lost and mended, waiting and ceasing to wait, endpoints.
#![cfg(feature = "zmq")]

#[path = "support/listening.rs"]
mod listening;
#[path = "support/publisher.rs"]
mod publisher;

use kv_events::subscriber::{ConnectError, Delivery, RecvError, Settings, Subscriber};
use kv_events::tracker::{GapCause, Verdict};
use listening::{STARTED, Told, expect_nothing, listen, next, only_source, tell, told};
use publisher::{PATIENCE_MS, Publisher, engine, master};
use std::time::{Duration, Instant};

#[test]
fn receive_hwm_is_applied_and_what_it_costs_is_told() {
    // PC-57: "a configured limit was never applied to the socket"
    let publisher = Publisher::bound_to("tcp://127.0.0.1:*", 2);
    let mut subscriber = listen(&publisher, &Settings { receive_hwm: 2, ..Settings::default() });
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
fn oversized_frame_costs_itself_and_shows_as_a_gap() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings { max_frame_bytes: Some(1000), ..Settings::default() });
    publisher.send(1, &master(1000, 1, &["k"]));
    assert_eq!(tell(&mut subscriber, 2)[1], Told::Message(1));
    publisher.send(2, &master(1000, 2, &[&"k".repeat(1000)]));
    // libzmq hangs up, and would leave it at that.
    publisher.await_resubscription(|| expect_nothing(&mut subscriber));
    publisher.send(3, &master(1000, 3, &["k"]));
    let gap = Verdict::Gap { from: 2, to: 2, cause: GapCause::Lost };
    assert_eq!(tell(&mut subscriber, 2), [Told::Notice(3, gap), Told::Message(3)]);
    let status = only_source(&subscriber);
    assert_eq!((status.connections, status.disconnections), (2, 1));
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
    for _ in 0..5 {
        drop(listener.accept().unwrap());
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
fn given_up_connection_is_mended_while_another_endpoint_is_busy() {
    let (cut_off, busy) = (Publisher::new(), Publisher::new());
    let settings = Settings { max_frame_bytes: Some(1000), ..Settings::default() };
    let mut subscriber = Subscriber::connect([&cut_off.endpoint, &busy.endpoint], &settings).unwrap();
    cut_off.await_subscription();
    busy.await_subscription();
    cut_off.send(1, &master(1000, 1, &[&"k".repeat(1000)]));
    let mut sequence = 0;
    let mut keep_busy = |subscriber: &mut Subscriber| {
        for _ in 0..2 {
            sequence += 1;
            busy.send(sequence, &engine(1.5, &[]));
        }
        next(subscriber);
    };
    (0..100).for_each(|_| keep_busy(&mut subscriber));
    cut_off.await_resubscription(|| keep_busy(&mut subscriber));
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
fn descriptors_tell_when_there_is_something_to_receive() {
    let publishers = [Publisher::new(), Publisher::new()];
    let mut subscriber =
        Subscriber::connect(publishers.each_ref().map(|publisher| &publisher.endpoint), &Settings::default()).unwrap();
    publishers.iter().for_each(Publisher::await_subscription);
    let fds = subscriber.fds().unwrap();
    assert_eq!(fds.len(), 5);
    let wait = || {
        let mut items: Vec<_> = fds.iter().map(|&fd| zmq::PollItem::from_fd(fd, zmq::POLLIN)).collect();
        assert!(zmq::poll(&mut items, PATIENCE_MS.into()).unwrap() > 0, "something becomes readable");
        items.iter().map(zmq::PollItem::is_readable).collect::<Vec<_>>()
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
    assert!(wait()[4]);
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
        ("tcp://::1:5557", "no IPv6 address"),
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
    assert!(matches!(connect(&too_long), Err(ConnectError::System { endpoint, .. }) if endpoint == too_long));
    let none: [&str; 0] = [];
    assert!(matches!(Subscriber::connect(none, &Settings::default()), Err(ConnectError::NoEndpoint)));
    let twice = ["tcp://127.0.0.1:9", "tcp://127.0.0.1:9"];
    assert!(matches!(Subscriber::connect(twice, &Settings::default()), Err(ConnectError::Twice { .. })));
    for settings in
        [Settings { receive_hwm: u32::MAX, ..Settings::default() }, Settings { max_topics: 0, ..Settings::default() }]
    {
        let refused = Subscriber::connect(["tcp://127.0.0.1:9"], &settings);
        assert!(matches!(refused, Err(ConnectError::BadSetting { .. })), "{refused:?}");
    }
    // Nobody has to be there: neither a host, nor a listener.
    for endpoint in ["tcp://127.0.0.1:9", "tcp://[::1]:9", "tcp://no-such-host.invalid:5557", "ipc:///tmp/nobody"] {
        let mut subscriber = connect(endpoint).unwrap();
        assert!(matches!(subscriber.try_recv(), Err(RecvError::Empty)), "{endpoint}");
    }
}
