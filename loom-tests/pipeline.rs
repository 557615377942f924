//! Everything together: two producers, the real sender, stop in mid-stream; I1 to I8 at once, by the oracle, the counters
//! and the pool at rest.

use crate::rig::{Act, Rig, Script, Size};
use crate::support::{Model, RING, RING_POOL, SPEC, SPEC_POOL, Seen, at_most};
use loom::thread;
use std::sync::Arc;

const SIZE: Size = Size { queue: SPEC, pool: SPEC_POOL, capacity: 1, burst: 1, watched: false };

#[derive(Clone, Copy)]
struct Run {
    size: Size,
    producers: u8,
    /// Calls of each producer.
    calls: u32,
    /// Events of each call.
    events: u64,
    /// Whether stop comes from a thread of its own; if not, the last producer stops when it has made its calls.
    stopper: bool,
    script: Script,
}

const RUN: Run = Run { size: SIZE, producers: 2, calls: 1, events: 1, stopper: false, script: &[] };

impl Run {
    fn check(self, name: &'static str, bound: usize, floor: u64, must_see: &'static [Seen]) {
        Model { name, bound: Some(bound), floor, must_see }.check(move |counts| {
            let rig = Rig::new(self.size);
            let start = |role: fn(&Run, &Rig, u8), producer: u8| {
                let rig = Arc::clone(&rig);
                thread::spawn(move || role(&self, &rig, producer))
            };
            let mut threads: Vec<_> = (1..=self.producers).map(|producer| start(Run::produce, producer)).collect();
            threads.push(start(|run, rig, _| rig.send(at_most(4), run.script), 0));
            if self.stopper {
                threads.push(start(|_, rig, _| assert!(rig.stop(None)), 0));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let dies = self.script.iter().any(|act| matches!(act, Act::Break | Act::Panic));
            rig.judge(counts, !dies);
        });
    }

    fn produce(&self, rig: &Rig, producer: u8) {
        (0..self.calls).for_each(|n| rig.publish((producer, n), self.events));
        if !self.stopper && producer == self.producers {
            assert!(rig.stop(None));
        }
    }
}

/// Two producers against a queue of one, and stop from a fourth thread whenever it likes. With so many threads a bound of
/// 1 is what can be explored to the end; the next one goes deeper with a thread less.
#[test]
fn two_producers_and_stopper() {
    let run = Run { stopper: true, ..RUN };
    let must_see = &[Seen::Evicted, Seen::Parked, Seen::Refused, Seen::Special];
    run.check("pipeline_two_producers_and_stopper", 1, 1000, must_see);
}

/// Stop comes in the midst of the other producer's call.
#[test]
fn two_producers_of_whom_one_stops() {
    let must_see = &[Seen::Evicted, Seen::Parked, Seen::Refused];
    RUN.check("pipeline_two_producers_of_whom_one_stops", 2, 1000, must_see);
}

/// One producer with more calls, of two events each.
#[test]
fn calls_of_two_events() {
    let run = Run { producers: 1, calls: 2, events: 2, stopper: true, ..RUN };
    run.check("pipeline_calls_of_two_events", 2, 1000, &[Seen::Evicted, Seen::Parked, Seen::Refused]);
}

/// The first message fails: the next tells of it, or an empty one does.
#[test]
fn a_message_fails() {
    let run = Run { stopper: true, script: &[Act::Fail], ..RUN };
    run.check("pipeline_a_message_fails", 1, 1000, &[Seen::Evicted, Seen::Parked, Seen::Refused]);
}

/// The socket breaks in the first message: what the sender held has failed, what is queued is abandoned, calls are
/// refused, and whoever is refused finds out why.
#[test]
fn the_socket_breaks() {
    let run = Run { stopper: true, script: &[Act::Break], ..RUN };
    run.check("pipeline_the_socket_breaks", 1, 500, &[Seen::Evicted, Seen::Parked, Seen::Refused, Seen::Special]);
}

/// The sender panics in its second message.
#[test]
fn the_sender_panics() {
    let run = Run { producers: 1, calls: 3, script: &[Act::Send, Act::Panic], ..RUN };
    run.check("pipeline_the_sender_panics", 2, 500, &[Seen::Evicted, Seen::Parked, Seen::Special]);
}

/// On the ported ring, for queue and pool, with contents that loom watches.
#[test]
fn ring() {
    let size = Size { queue: RING, pool: RING_POOL, watched: true, ..SIZE };
    Run { size, stopper: true, ..RUN }.check("pipeline_ring", 1, 1000, &[Seen::Evicted, Seen::Parked, Seen::Refused]);
}
