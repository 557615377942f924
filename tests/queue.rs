//! The queue's own promises, on the real types and real threads.

mod common;

use common::recorder::Recorder;
use kv_events::internals::{Call, Consumer, Held, Limits, Pipe, RUN};
use kv_events::{Config, MediaSet, Object, WaitStrategy};
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
                    for n in 0..50_000 {
                        // At most 4 more than there were, so there is room for all of them.
                        while pipe.ring().len() > 248 {
                            std::thread::yield_now();
                        }
                        push(&pipe, n);
                    }
                });
            }
            let (mut consumer, mut batch, mut taken) = (pipe.consumer(), Vec::new(), 0);
            while taken < 124 + 200_000 {
                let (calls, gap) = take(&pipe, &mut consumer, &mut batch);
                assert_eq!(gap, 0, "burst {burst}");
                taken += calls.len();
            }
            taken
        });
        assert_eq!((taken, pipe.ring().evicted(), pipe.ring().len()), (200_124, 0, 0), "burst {burst}");
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
