//! The figures: what they say, that every setting can be seen, and who loses what when a subscriber is slow.
#![cfg(all(feature = "zmq", target_os = "linux"))]

use crate::common::sub::{Sub, counted, loopback};
use kv_events::{Config, MediaSet, Object, Outcome, Publisher, Status};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use test_support::alone;

const OBJECT: Object<'static> = Object::new("t", "k");
const LONG: Duration = Duration::from_secs(30);

/// The figures that never fall.
fn rising(status: &Status) -> [u64; 13] {
    [
        status.published_batches,
        status.published_events,
        status.published_bytes,
        status.dropped_events,
        status.evicted_events,
        status.failed_events,
        status.abandoned_events,
        status.skipped_keyless_events,
        status.refused_events,
        status.last_sequence,
        status.queue_high_water,
        status.pool_misses,
        status.pool_freed,
    ]
}

#[test]
fn figures_read_under_load_never_fall_and_add_up_in_the_end() {
    let publisher = Publisher::start(loopback().queue_capacity(64)).unwrap();
    let over = AtomicBool::new(false);
    let calls = 200_000_u64;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = publisher.status();
            while !over.load(Ordering::Acquire) {
                let status = publisher.status();
                assert!(
                    rising(&last).iter().zip(rising(&status)).all(|(before, now)| now >= *before),
                    "{last:?} {status:?}"
                );
                assert!(status.queue_length <= 64 && status.healthy);
                last = status;
            }
        });
        let producers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    (0..calls / 2).for_each(|_| assert!(publisher.committed(&OBJECT, MediaSet::BOTH).is_accepted()))
                })
            })
            .collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        over.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert!(!publisher.status().stopped);
    let report = publisher.stop(LONG);
    let status = publisher.status();
    assert!(status.stopped && status.healthy);
    assert_eq!(2 * calls, status.published_events + status.dropped_events, "{status:?}");
    assert_eq!(status.last_sequence, status.published_batches + status.evicted_events + status.failed_events);
    assert_eq!((report.published, report.abandoned), (status.published_events, status.abandoned_events));
    assert!(status.queue_high_water <= 64, "the queue holds no more");
}

#[test]
fn a_script_of_twenty_messages_is_counted_to_the_byte() {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    let before = publisher.status();
    for n in 0..20 {
        let media = if n % 2 == 0 { MediaSet::BOTH } else { MediaSet::CPU };
        assert!(publisher.committed(&OBJECT, media).is_accepted());
        assert_eq!(sub.next().events.len(), media.len());
    }
    assert_eq!(publisher.committed(&OBJECT, MediaSet::EMPTY), Outcome::Nothing);
    assert!(publisher.stop(LONG).closed);
    let after = publisher.status();
    assert_eq!(after.published_batches - before.published_batches, 20);
    assert_eq!(after.published_events - before.published_events, 30);
    assert_eq!(after.last_sequence - before.last_sequence, 20);
    assert_eq!((after.dropped_events, after.refused_events, after.skipped_keyless_events), (0, 0, 0));
    assert_eq!((after.queue_length, after.queue_capacity, after.send_hwm), (0, 65_536, 10_000));
}

#[test]
fn a_slow_subscriber_loses_and_sees_it_and_nobody_else_does() {
    // (A mark of 7 would do for the sleeper, but ZeroMQ counts what was read with a delay of up to a millisecond,
    // and would drop for the reader as well.)
    let publisher = Publisher::start(loopback().send_hwm(200)).unwrap();
    let endpoint = publisher.bound_endpoint().unwrap();
    assert_eq!(publisher.status().send_hwm, 200);
    let reading = Sub::of(&publisher);
    let sleeper = zmq::Context::new().socket(zmq::SUB).unwrap();
    sleeper.set_rcvhwm(7).unwrap();
    sleeper.set_rcvtimeo(60_000).unwrap();
    sleeper.set_subscribe(b"").unwrap();
    sleeper.connect(endpoint).unwrap();
    while sleeper.poll(zmq::POLLIN, 10).unwrap() == 0 {
        publisher.cleared("probe");
        reading.next();
    }
    // More than all buffers of the kernel, 15 KB at a time, each one read by the reader before the next.
    let key = "k".repeat(15_000);
    let calls = 3000;
    let mut last = 0;
    for _ in 0..calls {
        assert!(publisher.committed(&Object::new("t", &key), MediaSet::CPU).is_accepted());
        last = reading.next().events[0].number("event_id");
    }
    counted(&publisher, last);
    // The reader has all. The sleeper has what fitted, then a hole in the numbers that it can see.
    let status = publisher.status();
    assert_eq!(
        (status.dropped_events, status.last_sequence),
        (0, status.published_batches),
        "published is not delivered"
    );
    let mut numbers = Vec::new();
    while numbers.last() != Some(&publisher.status().last_sequence) {
        if sleeper.poll(zmq::POLLIN, 50).unwrap() == 0 {
            publisher.cleared("end");
            reading.next();
            continue;
        }
        let frames = sleeper.recv_multipart(0).unwrap();
        numbers.push(u64::from_be_bytes(frames[1][..].try_into().unwrap()));
    }
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(numbers.len() < calls, "{} of {calls}", numbers.len());
    assert!(numbers.windows(2).any(|pair| pair[1] - pair[0] > 1), "the loss shows in the numbers");
}

#[test]
fn an_idle_sender_sleeps() {
    // It wakes for its upkeep, once a second, and for nothing else.
    if !alone!("an_idle_sender_sleeps") {
        return;
    }
    let publisher = Publisher::start(loopback()).unwrap();
    let _sub = Sub::of(&publisher);
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |id: &u32| std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
    // ZeroMQ's threads, which the sender starts, inherit its name: it is the oldest.
    let ids = tasks.filter_map(|task| task.unwrap().file_name().to_str()?.parse().ok());
    let sender = ids.filter(|id| name(id).trim() == "kv-events").min().unwrap();
    let ran = || {
        let schedstat = std::fs::read_to_string(format!("/proc/self/task/{sender}/schedstat")).unwrap();
        Duration::from_nanos(schedstat.split_whitespace().next().unwrap().parse().unwrap())
    };
    let before = ran();
    std::thread::sleep(Duration::from_secs(2));
    let ran = ran() - before;
    // One that spins has a good part of a processor, however busy the machine is.
    assert!(ran < Duration::from_millis(50), "the idle sender ran for {ran:?} in 2 s");
}

/// One key of the first event, as the wire has it.
fn first_event(config: Config, key: &str) -> Option<String> {
    let publisher = Publisher::start(config).unwrap();
    let sub = Sub::of(&publisher);
    publisher.committed(&OBJECT, MediaSet::CPU);
    publisher.cleared("end");
    let message = sub.next();
    message.events[0].get(key).map(ToString::to_string)
}

#[test]
fn every_setting_of_the_design_can_be_seen() {
    // Each of the eleven, changed from its default.
    let default = |key| first_event(loopback(), key);
    for (key, config, value) in [
        ("backend_id", Config::new("tcp://127.0.0.1:0", "other"), "\"other\""),
        ("model_name", loopback().model_name("m"), "\"m\""),
        ("block_size", loopback().block_size(16), "16"),
        ("additional_salt", loopback().additional_salt("s"), "\"s\""),
        ("lora_name", loopback().lora_name("l"), "\"l\""),
        ("dp_rank", loopback().dp_rank(3), "3"),
        ("event_type", loopback().emit_object_key(false), "\"cleared\""),
    ] {
        assert_ne!(default(key).as_deref(), Some(value));
        assert_eq!(first_event(config, key).as_deref(), Some(value), "{key}");
    }
    assert!(default("type").is_some());
    assert_eq!(first_event(loopback().emit_legacy_compat(false), "type"), None);
    let status = |config| Publisher::start(config).unwrap().status();
    assert_eq!(status(loopback().queue_capacity(1000)).queue_capacity, 1000);
    assert!(!status(loopback().enabled(false)).enabled);
    assert!(
        status(loopback().bind_endpoint("tcp://127.0.0.2:0")).bound_endpoint.unwrap().starts_with("tcp://127.0.0.2:")
    );
}
