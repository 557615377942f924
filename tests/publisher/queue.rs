//! The queue's own promises, on the real types and real threads.

use crate::common::recorder::Recorder;
use kv_events::internals::{CHUNK, Call, Consumer, Held, Limits, Pipe, RUN};
use kv_events::{Config, MediaSet, Object, Outcome, Refusal, StartError, WaitStrategy};
use std::sync::Barrier;
use std::time::Duration;
use test_support::alone;
use test_support::alone::resident;

/// A call of two events, or as its fields say.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Job {
    number: usize,
    events: u64,
    bytes: usize,
}

impl Call for Job {
    fn run(_: usize) -> Option<[Self; RUN]> {
        Some([Job { number: 0, events: 2, bytes: 1 }; RUN])
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn footprint(&self) -> usize {
        1
    }

    fn trim(&mut self) {}
}

fn pipe(capacity: usize, burst: usize, events: u64) -> Pipe<Job> {
    Pipe::new(capacity, burst, Limits { events, bytes: usize::MAX }, 64, 1).unwrap()
}

fn push(pipe: &Pipe<Job>, number: usize) {
    push_job(pipe, Job { number, events: 2, bytes: 1 });
}

fn push_job(pipe: &Pipe<Job>, job: Job) {
    let mut held = pipe.take_frame(1).unwrap();
    *pipe.frame(&mut held) = job;
    pipe.push(held).unwrap();
}

/// The calls of the next batch, and the gap before it.
fn take(pipe: &Pipe<Job>, consumer: &mut Consumer, batch: &mut Vec<Held>) -> (Vec<usize>, u64) {
    let gap = pipe.take(consumer, batch);
    let calls = pipe.batch(batch).calls().map(|job| job.number).collect();
    pipe.recycle(consumer, batch);
    (calls, gap)
}

/// How many calls there are in each batch of what is queued, which are numbered from 0.
fn batches(pipe: &Pipe<Job>) -> Vec<usize> {
    let (mut consumer, mut batch, mut sizes) = (pipe.consumer(), Vec::new(), Vec::new());
    loop {
        let (calls, gap) = take(pipe, &mut consumer, &mut batch);
        assert_eq!(gap, 0);
        if calls.is_empty() {
            return sizes;
        }
        let first: usize = sizes.iter().sum();
        assert!(calls.iter().copied().eq(first..first + calls.len()), "{calls:?} behind {sizes:?}");
        sizes.push(calls.len());
    }
}

/// Ends a pipe at rest, and finds every frame that was made in the pool, once.
fn assert_frames_home(mut pipe: Pipe<Job>, mut consumer: Consumer) {
    pipe.close(None);
    assert_eq!(pipe.end(&mut consumer), 0);
    let made = pipe.pool().made();
    assert_eq!(pipe.pool().idle(), made);
    let mut numbers: Vec<_> = pipe.pool_mut().drain().iter().map(Held::number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len() as u64, made);
}

#[test]
fn nothing_is_evicted_while_there_is_room() {
    // Another thread being in the middle of something makes the queue neither full nor empty.
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
fn a_batch_ends_exactly_at_its_events() {
    for limit in [2, 3, RUN - 1, RUN, RUN + 1, CHUNK - 1, CHUNK, CHUNK + 1, 64, 65] {
        for calls in [limit - 1, limit, limit + 1, 2 * limit] {
            let pipe = pipe(256, 1, limit as u64);
            (0..calls).for_each(|number| push_job(&pipe, Job { number, events: 1, bytes: 1 }));
            let expected: Vec<_> = match calls.checked_sub(limit) {
                None | Some(0) => vec![calls],
                Some(rest) => vec![limit, rest],
            };
            assert_eq!(batches(&pipe), expected, "{calls} calls, {limit} events at most");
        }
    }
    // Calls are not torn: five events have room for two calls of two, and for a single one behind them.
    let pipe = pipe(256, 1, 5);
    (0..3).for_each(|number| push(&pipe, number));
    assert_eq!(batches(&pipe), [2, 1]);
    let pipe = self::pipe(256, 1, 5);
    [2, 2, 1, 1].into_iter().enumerate().for_each(|(number, events)| push_job(&pipe, Job { number, events, bytes: 1 }));
    assert_eq!(batches(&pipe), [3, 1]);
}

#[test]
fn a_batch_ends_exactly_at_its_bytes() {
    let check = |events, bytes: &[usize], expected: &[usize]| {
        let pipe = Pipe::new(256, 1, Limits { events, bytes: 100 }, 64, 1).unwrap();
        bytes.iter().enumerate().for_each(|(number, &bytes)| push_job(&pipe, Job { number, events: 1, bytes }));
        assert_eq!(batches(&pipe), expected, "{bytes:?}, {events} events at most");
    };
    // All but those of one byte are counted one by one.
    check(64, &[50, 49, 1, 7], &[3, 1]);
    check(64, &[50, 49, 7, 7], &[3, 1]);
    check(64, &[50, 50, 7], &[2, 1]);
    check(64, &[99, 1, 1], &[2, 1]);
    check(64, &[100, 1, 1], &[1, 2]);
    check(64, &[101, 1, 1], &[1, 2]);
    check(64, &[1, 1, 98, 1], &[3, 1]);
    check(64, &[1, 1, 97, 1, 1], &[4, 1]);
    // Those of up to 10 bytes are counted only beside greater ones.
    check(10, &[10; 11], &[10, 1]);
    check(10, &[80, 10, 10, 10], &[3, 1]);
    check(10, &[81, 10, 10, 10], &[3, 1]);
    check(10, &[79, 10, 10, 10, 10], &[4, 1]);
    check(10, &[95, 1, 1, 1, 1, 1, 1], &[6, 1]);
    check(10, &[94, 1, 1, 1, 1, 1, 1, 1], &[7, 1]);
    // A batch that has been counted goes on only while there is room for any call.
    check(10, &[11, 11, 11, 11, 11, 11, 11, 11, 11, 1], &[9, 1]);
}

#[test]
fn frames_of_any_batch_come_home() {
    for calls in [1, RUN - 1, RUN, RUN + 1, CHUNK, 2 * RUN, 2 * RUN + 1, 64] {
        let pipe = pipe(256, 1, 128);
        let (mut consumer, mut batch) = (pipe.consumer(), Vec::new());
        for _ in 0..20 {
            (0..calls).for_each(|number| push(&pipe, number));
            let (taken, gap) = take(&pipe, &mut consumer, &mut batch);
            assert_eq!((taken.len(), gap), (calls, 0));
        }
        // The caller's lane and what the sender gathers before it gives it back; then frames are used again.
        let bound = calls + 4 * RUN;
        assert!(pipe.pool().made() <= bound as u64, "{} frames for {calls} calls at once", pipe.pool().made());
        assert_frames_home(pipe, consumer);
    }
}

#[test]
fn threads_without_a_lane_of_their_own_lose_nothing() {
    // More at once than the 128 that have one.
    const THREADS: usize = 200;
    const CALLS: usize = 50;
    for capacity in [16, THREADS * CALLS * 2] {
        let pipe = pipe(capacity, 4, 128);
        let (all_here, done) = (Barrier::new(THREADS), Barrier::new(THREADS + 1));
        let (mut consumer, mut batch) = (pipe.consumer(), Vec::new());
        let (mut taken, mut lost) = (0, 0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    all_here.wait();
                    (0..CALLS).for_each(|number| push(&pipe, number));
                    done.wait();
                });
            }
            done.wait();
            loop {
                let (calls, gap) = take(&pipe, &mut consumer, &mut batch);
                if calls.is_empty() {
                    break;
                }
                taken += calls.len() as u64 * 2;
                lost += gap;
            }
        });
        assert_eq!(taken + lost, (THREADS * CALLS * 2) as u64);
        assert_eq!(lost, pipe.ring().evicted());
        assert_eq!(lost > 0, capacity == 16);
        // Once more, with the frames that have come back: hardly any new one is needed.
        let made = pipe.pool().made();
        if capacity > 16 {
            (0..1000).for_each(|number| push(&pipe, number));
            while !take(&pipe, &mut consumer, &mut batch).0.is_empty() {}
            assert_eq!(pipe.pool().made(), made);
        }
        assert_frames_home(pipe, consumer);
    }
}

#[test]
fn no_wake_up_is_lost() {
    // Each event is waited for before the next, so one lost wake-up would be waited for in vain. (A sender on a real
    // socket looks up once a second; this one does not.)
    for strategy in [WaitStrategy::Park, WaitStrategy::Nap(Duration::from_micros(20))] {
        let (publisher, recorder) = Recorder::start(Config::new("memory", "b").wait_strategy(strategy));
        for n in 1..=2000 {
            publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
            assert_eq!(recorder.wait_for(n), n);
            // Sometimes at once, sometimes when it sleeps, mostly in between.
            std::thread::sleep(Duration::from_micros(n as u64 % 8 * 15));
        }
        assert!(publisher.stop(Duration::from_secs(60)).closed);
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
    if !alone!("memory_that_cannot_be_had_refuses_the_call") {
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
    if !alone!("a_queue_costs_what_was_in_it_and_one_that_cannot_be_had_does_not_start") {
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
    let transport = kv_events::transport::memory::Recorder::new().transport();
    let error = kv_events::Publisher::start_with(config(), transport).unwrap_err();
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
