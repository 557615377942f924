//! The subscriber on real TCP sockets: what it tells, and in what order. The publishers send what a test wants. No test
//! sleeps: a message is sent once its subscription has arrived, and what is waited for comes or the test fails.

use test_support::publisher;

use crate::listening::{STARTED, Told, expect_nothing, listen, next, next_soon, only_source, tell};
use kv_events::subscriber::{Delivery, Malformed, RecvError, Settings, Subscriber, TopicFilter};
use kv_events::tracker::{Base, GapCause, Verdict};
use kv_events::{Config, MediaSet, Object};
use publisher::{Publisher, engine, master};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};
use std::time::Duration;

#[test]
fn gap_is_told_before_the_message_that_shows_it() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    for (sequence, id) in [(1, 1), (2, 2), (5, 3)] {
        publisher.send(sequence, &master(1000, id, &["k"]));
    }
    let gap = Verdict::Gap { from: 3, to: 4, cause: GapCause::Evicted };
    let expected =
        [Told::Notice(1, STARTED), Told::Message(1), Told::Message(2), Told::Notice(5, gap), Told::Message(5)];
    assert_eq!(tell(&mut subscriber, 5), expected);
}

#[test]
fn message_can_be_kept_and_is_decoded_already() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    publisher.send(1, &master(1000, 1, &["a", "b"]));
    publisher.send(2, &engine(1.5, &[7]));
    let kept: Vec<_> = (0..3)
        .filter_map(|_| match next(&mut subscriber) {
            Delivery::Message(message) => Some(message),
            _ => None,
        })
        .collect();
    drop(subscriber);
    drop(publisher);
    let [first, second] = kept.as_slice() else { panic!("{kept:?}") };
    let keys: Vec<_> = first.batch().events().map(|event| event.unwrap().envelope().unwrap().object_key).collect();
    assert_eq!(keys, [Some("a"), Some("b")]);
    assert_eq!((second.sequence(), second.batch().len()), (2, 1));
    assert_eq!(second.payload(), engine(1.5, &[7]));
}

#[test]
fn malformed_messages_are_counted_and_make_no_gap() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    let (number, payload) = (2u64.to_be_bytes(), master(1000, 1, &["k"]));
    let (number, payload) = (number.as_slice(), payload.as_slice());
    publisher.send(1, &master(1000, 1, &["k"]));
    assert_eq!(tell(&mut subscriber, 2), [Told::Notice(1, STARTED), Told::Message(1)]);
    let long = [0; 16];
    let wrong: Vec<(Vec<&[u8]>, Malformed)> = vec![
        (vec![b""], Malformed::Frames(1)),
        (vec![b"", number], Malformed::Frames(2)),
        (vec![number, payload], Malformed::Frames(2)),
        (vec![b"", number, payload, b""], Malformed::Frames(4)),
        (vec![b"", number, payload, payload, payload], Malformed::Frames(5)),
        (vec![b"", b"", payload], Malformed::SequenceLength(0)),
        (vec![b"", &long[..3], payload], Malformed::SequenceLength(3)),
        (vec![b"", &long[..7], payload], Malformed::SequenceLength(7)),
        (vec![b"", &long[..9], payload], Malformed::SequenceLength(9)),
        (vec![b"", &long[..16], payload], Malformed::SequenceLength(16)),
    ];
    for (frames, reason) in &wrong {
        publisher.send_frames(frames);
        assert_eq!(tell(&mut subscriber, 1), [Told::Malformed(None, *reason)], "{frames:?}");
    }
    publisher.send(2, &master(1000, 2, &["k"]));
    assert_eq!(tell(&mut subscriber, 1), [Told::Message(2)]);
    // An unreadable payload takes its number, an empty one too.
    publisher.send(3, b"");
    publisher.send(4, &[payload, &[0xc0]].concat());
    publisher.send(5, &master(1000, 4, &["k"]));
    let [empty, trailing] = ["empty", "trailing_bytes"];
    let all: Vec<_> = (0..3).map(|_| next(&mut subscriber)).collect();
    match all.as_slice() {
        [
            Delivery::Malformed { sequence: Some(3), reason: first, .. },
            Delivery::Malformed { sequence: Some(4), reason: second, .. },
            Delivery::Message(message),
        ] => assert_eq!((first.as_str(), second.as_str(), message.sequence()), (empty, trailing, 5)),
        other => panic!("{other:?}"),
    }
    let status = only_source(&subscriber);
    assert_eq!((status.malformed_frames, status.malformed_sequence, status.malformed_payload), (5, 5, 2));
    assert_eq!((status.malformed(), status.received, status.counters.gaps, status.counters.messages), (12, 15, 0, 5));
}

#[test]
fn prefix_takes_longer_topics_and_exact_does_not() {
    let topics = ["", "kv", "kv-events", "kv-events-2"];
    let cases = [
        (TopicFilter::Prefix(b"kv-events".to_vec()), vec!["kv-events", "kv-events-2"]),
        (TopicFilter::Exact(b"kv-events".to_vec()), vec!["kv-events"]),
        (TopicFilter::default(), topics.to_vec()),
        (TopicFilter::Exact(Vec::new()), vec![""]),
    ];
    for (topic, expected) in cases {
        let publisher = Publisher::new();
        let mut subscriber = listen(&publisher, &Settings { topic: topic.clone(), ..Settings::default() });
        for topic in topics {
            publisher.send_to(topic.as_bytes(), 1, &master(1000, 1, &["k"]));
        }
        // Each topic is a source, and starts for itself. What the filter keeps out is neither told nor counted.
        let mut seen = Vec::new();
        for _ in 0..expected.len() {
            let Delivery::Notice { source, verdict: STARTED, .. } = next(&mut subscriber) else { panic!() };
            let Delivery::Message(message) = next(&mut subscriber) else { panic!() };
            assert_eq!(message.source(), &source);
            seen.push(String::from_utf8(source.topic().to_vec()).unwrap());
        }
        assert_eq!(seen, expected, "{topic:?}");
        assert!(matches!(subscriber.try_recv(), Err(RecvError::Empty)));
        // What is no message is told all the same: a publisher without a topic frame would be silent otherwise.
        publisher.send_frames(&[topic.subscription(), b"no number"]);
        assert_eq!(tell(&mut subscriber, 1), [Told::Malformed(None, Malformed::Frames(2))]);
        let received: u64 = subscriber.status_handle().sources().iter().map(|source| source.received).sum();
        assert_eq!(received, expected.len() as u64 + 1);
    }
}

#[test]
fn topics_beyond_the_limit_are_refused_and_told() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings { base: Base::MASTER, max_topics: 3, ..Settings::default() });
    // The subscription's own topic is one of the three.
    for topic in ["a", "b", "c", "b"] {
        publisher.send_to(topic.as_bytes(), 1, &engine(1.5, &[]));
    }
    let expected = [
        Told::Notice(1, STARTED),
        Told::Message(1),
        Told::Notice(1, STARTED),
        Told::Message(1),
        Told::Malformed(Some(1), Malformed::TooManyTopics),
        Told::Notice(1, Verdict::Duplicate),
    ];
    assert_eq!(tell(&mut subscriber, 6), expected);
    assert_eq!(subscriber.status_handle().sources().len(), 3);
}

#[test]
fn late_subscriber_is_told_what_it_missed() {
    for (base, missed) in
        [(Base::MASTER, Some(100)), (Base::ENGINE, Some(101)), (Base::Auto, Some(100)), (Base::Unknown, None)]
    {
        let publisher = Publisher::new();
        for sequence in 1..=100 {
            publisher.send(sequence, &master(1000, sequence, &["k"]));
        }
        let mut subscriber = listen(&publisher, &Settings { base, ..Settings::default() });
        publisher.send(101, &master(1000, 101, &["k"]));
        let expected = [Told::Notice(101, Verdict::Started { missed }), Told::Message(101)];
        assert_eq!(tell(&mut subscriber, 2), expected, "{base:?}");
    }
}

#[test]
fn duplicates_are_told_and_delivered_only_when_asked_for() {
    for deliver_duplicates in [false, true] {
        let publisher = Publisher::new();
        let mut subscriber = listen(&publisher, &Settings { deliver_duplicates, ..Settings::default() });
        for sequence in [1, 2, 3, 4, 4, 5, 5, 6, 7, 8] {
            publisher.send(sequence, &master(1000 + sequence, sequence, &["k"]));
        }
        let all = tell(&mut subscriber, if deliver_duplicates { 13 } else { 11 });
        let repeated = all.iter().filter(|told| matches!(told, Told::Repeated(_))).count();
        assert_eq!(repeated, if deliver_duplicates { 2 } else { 0 });
        let delivered: Vec<_> = all.iter().filter(|told| matches!(told, Told::Message(_))).copied().collect();
        assert_eq!(delivered, [1, 2, 3, 4, 5, 6, 7, 8].map(Told::Message));
        let notices: Vec<_> = all.iter().filter(|told| matches!(told, Told::Notice(..))).copied().collect();
        let expected = [(1, STARTED), (4, Verdict::Duplicate), (5, Verdict::Duplicate)];
        assert_eq!(notices, expected.map(|(sequence, verdict)| Told::Notice(sequence, verdict)));
        assert_eq!(only_source(&subscriber).counters.duplicates, 2);
    }
}

#[test]
fn publishers_are_numbered_apart() {
    let publishers = [Publisher::new(), Publisher::new()];
    let mut subscriber =
        Subscriber::connect(publishers.each_ref().map(|publisher| &publisher.endpoint), &Settings::default()).unwrap();
    for publisher in &publishers {
        publisher.await_resubscription(|| expect_nothing(&mut subscriber));
    }
    for sequence in 1..=1000 {
        for publisher in &publishers {
            publisher.send(sequence, &master(1000, sequence, &["k"]));
        }
    }
    for delivery in tell(&mut subscriber, 2002) {
        assert!(matches!(delivery, Told::Message(_) | Told::Notice(1, STARTED)), "{delivery:?}");
    }
    for status in subscriber.status_handle().sources() {
        assert_eq!(
            (status.counters.messages, status.counters.gaps, status.counters.last_sequence),
            (1000, 0, Some(1000))
        );
    }
}

#[test]
fn restarted_publisher_is_told_as_such() {
    let publisher = Publisher::new();
    let endpoint = publisher.endpoint.clone();
    let mut subscriber = listen(&publisher, &Settings::default());
    publisher.send(1, &master(1000, 1, &["k"]));
    publisher.send(2, &master(1001, 2, &["k"]));
    assert_eq!(tell(&mut subscriber, 3)[2], Told::Message(2));
    drop(publisher);
    let publisher = Publisher::bound_to(&endpoint, 0);
    let mut told_meanwhile = Vec::new();
    publisher.await_resubscription(|| told_meanwhile.extend(next_soon(&mut subscriber)));
    publisher.send(1, &master(2000, 1, &["k"]));
    publisher.send(2, &master(2001, 2, &["k"]));
    let restarted = Verdict::Restarted { previous: 2, missed: Some(0) };
    told_meanwhile.extend(tell(&mut subscriber, 4 - told_meanwhile.len()));
    let expected = [Told::Reconnected, Told::Notice(1, restarted), Told::Message(1), Told::Message(2)];
    assert_eq!(told_meanwhile, expected);
}

/// What this process has logged.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LOGGED.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

fn record_the_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Logger).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
}

#[test]
fn flood_of_garbage_ends_no_connection_and_fills_no_log() {
    record_the_log();
    let publisher = Publisher::new();
    publisher.socket.monitor("inproc://events", zmq::SocketEvent::ALL.to_raw().into()).unwrap();
    let monitor = publisher.context.socket(zmq::PAIR).unwrap();
    monitor.connect("inproc://events").unwrap();
    let mut subscriber = listen(&publisher, &Settings::default());
    for sequence in 1..=10_000 {
        publisher.send(sequence, b"\xc1");
    }
    for sequence in 10_001..=10_010 {
        publisher.send(sequence, &master(1000, sequence, &["k"]));
    }
    let all = tell(&mut subscriber, 10_011);
    let good: Vec<_> = all.iter().filter(|told| matches!(told, Told::Message(_))).copied().collect();
    assert_eq!(good, (10_001..=10_010).map(Told::Message).collect::<Vec<_>>());
    let status = only_source(&subscriber);
    assert_eq!((status.malformed_payload, status.counters.gaps, status.counters.messages), (10_000, 0, 10_010));

    let (mut accepted, mut closed) = (0, 0);
    while let Ok(frames) = monitor.recv_multipart(zmq::DONTWAIT) {
        match zmq::SocketEvent::from_raw(u16::from_ne_bytes([frames[0][0], frames[0][1]])) {
            zmq::SocketEvent::ACCEPTED => accepted += 1,
            zmq::SocketEvent::DISCONNECTED | zmq::SocketEvent::CLOSED => closed += 1,
            _ => {}
        }
    }
    assert_eq!((accepted, closed), (1, 0), "connected once and for all");
    let logged = LOGGED.lock().unwrap().iter().filter(|line| line.contains(&publisher.endpoint)).count();
    assert_eq!(logged, 5, "the 1st, 10th, 100th, 1000th and 10000th");
}

#[test]
fn figures_are_read_from_another_thread_and_match_the_script() {
    let publisher = Publisher::new();
    let mut subscriber = listen(&publisher, &Settings::default());
    let status = subscriber.status_handle();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = (0, 0, 0, 0);
            loop {
                let is_last = done.load(Ordering::Acquire);
                let sources = status.sources();
                let now =
                    (sources[0].received, sources[0].bytes, sources[0].counters.messages, sources[0].counters.missed);
                assert!(now.0 >= last.0 && now.1 >= last.1 && now.2 >= last.2 && now.3 >= last.3, "{last:?} {now:?}");
                last = now;
                if is_last {
                    return last;
                }
            }
        });
        // 20 messages: 1..=8, a gap of 3 evicted, 12..=14, 13 again, a gap of 1 lost, 16, two that are malformed, a
        // heartbeat 17, a restart at 1, and 2 to 3 unreadable, 4.
        let one = |ms, id| master(ms, id, &["k"]);
        for sequence in 1..=8 {
            publisher.send(sequence, &one(1000, sequence));
        }
        for (sequence, id) in [(12, 9), (13, 10), (14, 11), (13, 10), (16, 13)] {
            publisher.send(sequence, &one(1000, id));
        }
        publisher.send_frames(&[b"", b"1"]);
        publisher.send_frames(&[b"", b"1", b"2"]);
        publisher.send(17, &master(1001, 14, &[]));
        publisher.send(1, &master(1002, 1, &["a", "b"]));
        publisher.send(2, b"\xc1");
        publisher.send(3, b"\x93");
        publisher.send(4, &one(1003, 9));
        // 20 messages, less the repeated one, and a start, two gaps, a duplicate and a restart.
        tell(&mut subscriber, 20 - 1 + 5);
        done.store(true, Ordering::Release);
        let (received, _, messages, missed) = reader.join().unwrap();
        assert_eq!((received, messages, missed), (20, 17, 4));
    });
    let source = only_source(&subscriber);
    assert_eq!((source.received, source.decoded, source.events), (20, 16, 16));
    assert_eq!((source.malformed_frames, source.malformed_sequence, source.malformed_payload), (1, 1, 2));
    assert_eq!((source.counters.messages, source.counters.gaps, source.counters.missed), (17, 2, 4));
    assert_eq!((source.counters.missed_evicted, source.counters.missed_lost), (3, 1));
    assert_eq!((source.counters.duplicates, source.counters.restarts), (1, 1));
    assert_eq!((source.counters.first_sequence, source.counters.last_sequence), (Some(1), Some(4)));
    assert_eq!((source.endpoint.as_str(), source.topic.as_str()), (publisher.endpoint.as_str(), ""));
}

#[test]
fn own_publisher_is_read_with_every_loss_in_its_place() {
    let config = Config::new("tcp://127.0.0.1:0", "backend").queue_capacity(16).send_hwm(0);
    let publisher = kv_events::Publisher::start(config.linger(Duration::from_secs(60))).unwrap();
    let endpoint = publisher.bound_endpoint().unwrap();
    let mut subscriber = Subscriber::connect([endpoint], &Settings::default()).unwrap();
    // The path is proven by a message that comes through.
    let mut before = None;
    while before.is_none() {
        assert!(publisher.cleared("probe").is_accepted());
        match subscriber.recv_timeout(Duration::from_millis(10)) {
            Ok(Delivery::Notice { verdict: Verdict::Started { missed: Some(missed) }, .. }) => before = Some(missed),
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(matches!(error, RecvError::Empty)),
        }
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let publisher = &publisher;
            scope.spawn(move || {
                for n in 0..20_000 {
                    let key = format!("{thread}-{n}");
                    assert!(publisher.committed(&Object::new("t", &key), MediaSet::CPU).is_accepted());
                }
            });
        }
    });
    let (mut last, mut missed, mut messages) = (0, before.unwrap(), 0);
    // What the sockets do not hold goes on while the publisher lingers.
    let status = std::thread::scope(|scope| {
        let stop = scope.spawn(|| {
            assert!(publisher.stop(Duration::from_secs(60)).closed);
            publisher.status()
        });
        while !stop.is_finished() || last < publisher.status().last_sequence {
            match subscriber.recv_timeout(Duration::from_millis(10)) {
                Ok(Delivery::Message(message)) => (last, messages) = (message.sequence(), messages + 1),
                Ok(Delivery::Notice { verdict: verdict @ Verdict::Gap { from, cause, .. }, .. }) => {
                    assert_eq!(from, last + 1);
                    assert_ne!(cause, GapCause::Lost, "nothing is lost on the way");
                    missed += verdict.gap_size();
                }
                // The publisher has gone, or is quiet for a moment.
                Err(RecvError::Empty) => {}
                other => panic!("{other:?}"),
            }
        }
        stop.join().unwrap()
    });
    assert!(status.evicted_events > 0, "the queue is small enough to overflow: {status:?}");
    assert_eq!(missed + messages, status.last_sequence);
    let unseen = status.published_batches - messages;
    assert_eq!(missed, status.evicted_events + status.failed_events + unseen);
    assert!(matches!(subscriber.try_recv(), Err(RecvError::Empty)));
    let source = only_source(&subscriber);
    assert_eq!(
        (source.connections, source.counters.restarts, source.counters.duplicates, source.malformed()),
        (1, 0, 0, 0)
    );
}
