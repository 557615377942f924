//! Everything together: producers, the real sender, stop in mid-stream; I1 to I8 at once, by the oracle, the counters
//! and the pool at rest.

use crate::rig::{Act, Rig, Script};
use crate::support::{Model, Seen, at_most};
use kv_events::internals::Limits;
use std::time::Duration;

#[derive(Clone, Copy)]
struct Run {
    capacity: usize,
    prefilled: u32,
    producers: u8,
    /// Calls of each producer.
    calls: u32,
    /// Events of each call.
    events: u64,
    /// Whether stop comes from a thread of its own; if not, the last producer stops when it has made its calls.
    stopper: bool,
    script: Script,
}

const RUN: Run = Run { capacity: 2, prefilled: 2, producers: 2, calls: 1, events: 1, stopper: false, script: &[] };

impl Run {
    fn check(self, name: &'static str, bound: usize, floor: u64, must_see: &'static [Seen]) {
        Model { name, bound: Some(bound), floor, must_see }.check(move |counts| {
            let rig = Rig::new(self.capacity, 1, at_most(4));
            (0..self.prefilled).for_each(|n| rig.publish((0, n), 1));
            let mut threads: Vec<_> = (1..=self.producers)
                .map(|producer| rig.spawn(producer as usize - 1, move |rig| self.produce(rig, producer)))
                .collect();
            threads.push(rig.spawn(2, move |rig| rig.send(self.script)));
            if self.stopper {
                threads.push(rig.spawn(2, |rig| assert!(rig.stop(None))));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let fails = self.script.iter().any(|act| matches!(act, Act::Break | Act::Panic));
            rig.judge(counts, !fails);
        });
    }

    fn produce(&self, rig: &Rig, producer: u8) {
        (0..self.calls).for_each(|n| rig.publish((producer, n), self.events));
        if !self.stopper && producer == self.producers {
            assert!(rig.stop(None));
        }
    }
}

/// Stop comes in the midst of the other producer's call.
#[test]
fn two_producers_of_whom_one_stops() {
    let run = Run { prefilled: 0, events: 2, ..RUN };
    run.check("pipeline_two_producers_of_whom_one_stops", 1, 1000, &[Seen::Evicted, Seen::Refused]);
}

/// One producer with more calls, of two events each.
#[test]
fn calls_of_two_events() {
    let run = Run { producers: 1, calls: 2, events: 2, stopper: true, ..RUN };
    run.check("pipeline_calls_of_two_events", 1, 1000, &[Seen::Evicted, Seen::Parked, Seen::Refused]);
}

/// The first message fails: the next tells of it, or an empty one does.
#[test]
fn a_message_fails() {
    let run = Run { producers: 1, stopper: true, script: &[Act::Fail], ..RUN };
    run.check("pipeline_a_message_fails", 1, 500, &[Seen::Evicted, Seen::Parked, Seen::Refused]);
}

/// The socket breaks in the first message: what the sender held has failed, what is queued is abandoned, calls are
/// refused, and whoever is refused finds out why.
#[test]
fn the_socket_breaks() {
    let run = Run { stopper: true, script: &[Act::Break], ..RUN };
    run.check("pipeline_the_socket_breaks", 1, 500, &[Seen::Evicted, Seen::Refused, Seen::Special]);
}

/// The sender panics in its second message.
#[test]
fn the_sender_panics() {
    let run = Run { prefilled: 0, producers: 1, calls: 3, script: &[Act::Send, Act::Panic], ..RUN };
    run.check("pipeline_the_sender_panics", 1, 200, &[Seen::Parked, Seen::Special]);
}

/// Threads without a lane share the spare frames.
#[test]
fn without_lanes() {
    Model { name: "pipeline_without_lanes", bound: Some(1), floor: 500, must_see: &[Seen::Evicted] }.check(|counts| {
        let rig = Rig::new(2, 1, at_most(4));
        (0..2).for_each(|n| rig.publish((0, n), 1));
        let producers: Vec<_> =
            (1..=2).map(|producer| rig.spawn(2, move |rig| rig.publish((producer, 0), 1))).collect();
        let sender = rig.spawn(2, |rig| {
            rig.stop(None);
            rig.send(&[]);
        });
        producers.into_iter().chain([sender]).for_each(|thread| thread.join().unwrap());
        rig.judge(counts, true);
    });
}

/// Calls that are not light: the sender takes them one by one, joins them to a batch only if nothing was lost between, and
/// ends the batch once it holds as much as it may.
#[test]
fn heavy_calls() {
    let must_see = &[Seen::Evicted, Seen::Parked];
    Model { name: "pipeline_heavy_calls", bound: Some(1), floor: 200, must_see }.check(|counts| {
        let rig = Rig::new(2, 1, Limits { events: 8, bytes: 24 });
        (0..2).for_each(|n| rig.publish_of((0, n), 1, 10));
        let producer = rig.spawn(0, |rig| (0..2).for_each(|n| rig.publish_of((1, n), 1, 10)));
        let sender = rig.spawn(2, |rig| rig.send(&[]));
        producer.join().unwrap();
        assert!(rig.stop(None));
        sender.join().unwrap();
        let longest = rig.world.log().messages.iter().map(|message| message.calls.len()).max();
        assert!(longest <= Some(3), "a batch of 24 bytes takes a third call of 10 and no fourth");
        rig.judge(counts, true);
    });
}

/// A batch fails, and so does the empty message that would tell of it. While that is left alone no heartbeat takes its
/// place; the one at the end tells.
#[test]
fn heartbeat_during_a_retry() {
    let model =
        Model { name: "pipeline_heartbeat_during_a_retry", bound: Some(2), floor: 5, must_see: &[Seen::Parked] };
    model.check(|counts| {
        let rig = Rig::new(2, 1, at_most(4));
        (0..2).for_each(|n| rig.publish((0, n), 1));
        let sender = rig.spawn(2, |rig| rig.send_with(&[Act::Fail, Act::Fail], Duration::from_nanos(1)));
        let stopper = rig.spawn(2, |rig| assert!(rig.stop(None)));
        [sender, stopper].into_iter().for_each(|thread| thread.join().unwrap());
        let empty = rig.world.log().messages.iter().filter(|message| message.calls.is_empty()).count();
        assert!(empty <= 2, "the one that failed, and the one that told: {empty}");
        rig.judge(counts, true);
    });
}
