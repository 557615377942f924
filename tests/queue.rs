//! The queue's own promises, on the real types and real threads.

mod common;

use common::alone::{alone, resident};
use common::recorder::Recorder;
use kv_events::internals::{Call, Consumer, Held, Limits, Pipe, RUN};
use kv_events::{Config, MediaSet, Object, Outcome, Refusal, StartError, WaitStrategy};
use std::time::Duration;

/// A call of two events.
#[derive(Debug, PartialEq)]
struct Two(usize);

impl Call for Two {
    fn run(_: usize) -> Option<[Self; RUN]> {
        Some(std::array::from_fn(|_| Two(0)))
    }

    fn events(&self) -> u64 {
        2
    }

    fn bytes(&self) -> usize {
        1
    }

    fn footprint(&self) -> usize {
        1
    }

    fn trim(&mut self) {}
}

fn pipe(capacity: usize, burst: usize, events: u64) -> Pipe<Two> {
    Pipe::new(capacity, burst, Limits { events, bytes: usize::MAX }, 64, 1).unwrap()
}

fn push(pipe: &Pipe<Two>, n: usize) {
    let mut held = pipe.take_frame(1).unwrap();
    pipe.frame(&mut held).0 = n;
    pipe.push(held).unwrap();
}

/// The calls of the next batch, and the gap before it.
fn take(pipe: &Pipe<Two>, consumer: &mut Consumer, batch: &mut Vec<Held>) -> (Vec<usize>, u64) {
    let gap = pipe.take(consumer, batch);
    let calls = pipe.batch(batch).calls().map(|call| call.0).collect();
    pipe.recycle(consumer, batch);
    (calls, gap)
}

#[test]
fn nothing_is_evicted_while_there_is_room() {
    // PC-28: another thread being in the middle of something makes the queue neither full nor empty.
    for burst in [1, 16, 17, 64] {
        let pipe = pipe(256, burst, 2);
        (0..124).for_each(|n| push(&pipe, n));
        let taken = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..10_000 {
                        // At most 4 more than there were, so there is room for all of them.
                        while pipe.ring().len() > 248 {
                            std::thread::yield_now();
                        }
                        push(&pipe, n);
                    }
                });
            }
            let (mut consumer, mut batch, mut taken) = (pipe.consumer(), Vec::new(), 0);
            while taken < 124 + 40_000 {
                let (calls, gap) = take(&pipe, &mut consumer, &mut batch);
                assert_eq!(gap, 0, "burst {burst}");
                taken += calls.len();
            }
            taken
        });
        assert_eq!((taken, pipe.ring().evicted(), pipe.ring().len()), (40_124, 0, 0), "burst {burst}");
    }
}

#[test]
fn a_burst_evicts_once_the_queue_is_full_and_not_before() {
    for burst in [1, 2, 15, 16, 17, 40] {
        let pipe = pipe(128, burst, 128);
        (0..64).for_each(|n| push(&pipe, n));
        assert_eq!(pipe.ring().evicted(), 0, "burst {burst}");
        push(&pipe, 64);
        assert_eq!(pipe.ring().evicted(), 2 * burst as u64, "burst {burst}");
        let (calls, gap) = take(&pipe, &mut pipe.consumer(), &mut Vec::new());
        assert_eq!(gap, 2 * burst as u64);
        assert!(calls.into_iter().eq(burst..65), "burst {burst}");
    }
}

#[test]
fn no_wake_up_is_lost() {
    // PC-30: each event is waited for before the next, so one lost wake-up would be waited for in vain. (A sender on a real
    // socket looks up once a second; this one does not.)
    for strategy in [WaitStrategy::Park, WaitStrategy::Nap(Duration::from_micros(20))] {
        let (publisher, recorder) = Recorder::start(Config::new("memory", "b").wait_strategy(strategy));
        for n in 1..=2000 {
            publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
            assert_eq!(recorder.wait_for(n), n);
            // Sometimes at once, sometimes when it sleeps, mostly in between.
            std::thread::sleep(Duration::from_micros(n as u64 % 8 * 15));
        }
        assert!(publisher.stop(Duration::from_secs(20)).closed);
    }
}

/// Leaves the process so many bytes of address space more than it has.
#[cfg(target_os = "linux")]
fn leave(bytes: u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let has = statm.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 4096;
    let limit = libc::rlimit { rlim_cur: has + bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid and only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_cannot_be_had_refuses_the_call() {
    if !alone("memory_that_cannot_be_had_refuses_the_call") {
        return;
    }
    let config = Config::new("memory", "b").queue_capacity(1 << 20);
    let (publisher, recorder) = Recorder::start(config);
    recorder.pause(|| _ = publisher.cleared("bait"));
    let key = "k".repeat(100);
    leave(16 << 20);
    let mut accepted = 1;
    let outcome = loop {
        let outcome = publisher.committed(&Object::new("t", &key), MediaSet::CPU);
        if !outcome.is_accepted() {
            break outcome;
        }
        accepted += 1;
        assert!(accepted < 1 << 20, "16 MiB are not enough for a full queue");
    };
    assert_eq!(outcome, Outcome::Refused(Refusal::OutOfMemory));
    let status = publisher.status();
    assert!(status.healthy && status.refused_events == 1, "{status:?}");
    // With memory again all is as it was.
    leave(1 << 30);
    assert!(publisher.committed(&Object::new("t", &key), MediaSet::CPU).is_accepted());
    recorder.resume();
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    let status = publisher.status();
    assert_eq!((status.published_events, status.dropped_events), (accepted + 1, 0), "{status:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_queue_costs_what_was_in_it_and_one_that_cannot_be_had_does_not_start() {
    if !alone("a_queue_costs_what_was_in_it_and_one_that_cannot_be_had_does_not_start") {
        return;
    }
    let config = || Config::new("memory", "b").queue_capacity(1 << 24);
    let before = resident();
    let (publisher, _recorder) = Recorder::start(config());
    publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
    let cost = resident() - before;
    println!("measured: a queue of 2^24 events with one in it: {} KiB", cost >> 10);
    assert!(cost < 8 << 20, "{cost} bytes");
    drop(publisher);
    leave(100 << 20);
    let error = kv_events::Publisher::start_with(config(), || unreachable!("the queue comes first")).unwrap_err();
    assert!(matches!(error, StartError::QueueMemory { queue_capacity: 16_777_216 }), "{error}");
}

#[test]
fn what_a_stop_without_time_calls_abandoned_is_final() {
    for round in 0..20 {
        let (publisher, recorder) = Recorder::start(Config::new("memory", "b").wait_strategy(WaitStrategy::Park));
        recorder.pause(|| _ = publisher.cleared("bait"));
        let calls = 1000 * round + 1;
        for _ in 0..calls {
            publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
        }
        let report = publisher.stop(Duration::ZERO);
        assert_eq!((report.abandoned, report.closed), (calls, false));
        recorder.resume();
        let last = publisher.stop(Duration::from_secs(60));
        assert_eq!((last.abandoned, last.published, last.closed), (calls, 1, true));
    }
}
