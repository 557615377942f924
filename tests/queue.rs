//! The queue's own promises, on the real types and real threads.

mod common;

use common::recorder::Recorder;
use kv_events::internals::{Call, EvictingQueue, Limits};
use kv_events::{Config, MediaSet, Object, WaitStrategy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A call of two events.
#[derive(Debug, PartialEq)]
struct Two(usize);

impl Call for Two {
    fn events(&self) -> u64 {
        2
    }

    fn bytes(&self) -> usize {
        1
    }

    fn footprint(&self) -> usize {
        1
    }
}

/// One call at a time.
const ONE: Limits = Limits { events: 2, bytes: usize::MAX };

#[test]
fn nothing_is_evicted_while_there_is_room() {
    // PC-28: 255 calls go round in a queue of 256. Another thread being in the middle of something makes it neither full nor
    // empty.
    let queue = EvictingQueue::new(256, 16);
    (0..255).for_each(|n| queue.push(Two(n), |victim| panic!("{victim:?} was evicted")));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut batch = Vec::with_capacity(2);
                for _ in 0..50_000 {
                    assert_eq!(queue.take(ONE, &mut batch), 0);
                    let call = batch.pop().expect("at least 251 calls are queued");
                    queue.push(call, |victim| panic!("{victim:?} was evicted"));
                }
            });
        }
    });
    assert_eq!((queue.evicted(), queue.len()), (0, 255));
    let mut batch = Vec::with_capacity(1000);
    queue.take(Limits { events: 1000, bytes: usize::MAX }, &mut batch);
    let mut left: Vec<usize> = batch.into_iter().map(|call| call.0).collect();
    left.sort_unstable();
    assert!(left.into_iter().eq(0..255), "none is lost, none is there twice");
}

#[test]
fn a_caller_that_panics_with_a_victim_in_hand_keeps_the_account() {
    let queue = EvictingQueue::new(2, 1);
    (0..2).for_each(|n| queue.push(Two(n), |_| unreachable!()));
    let panicked = catch_unwind(AssertUnwindSafe(|| queue.push(Two(2), |_| panic!("while recycling"))));
    assert!(panicked.is_err());
    queue.push(Two(3), drop);
    let mut batch = Vec::with_capacity(8);
    assert_eq!(queue.take(Limits { events: 8, bytes: usize::MAX }, &mut batch), 4, "both losses are told");
    assert_eq!(batch, [Two(2), Two(3)]);
    assert_eq!(queue.evicted(), 4);
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
