//! Stop against calls: I7, and that I1 holds across it.

use crate::rig::{Act, Rig, Size};
use crate::support::{Model, RING, SPEC, SPEC_POOL, Seen, at_most};
use kv_events::internals::Wake;
use loom::thread;
use std::sync::Arc;
use std::time::Instant;

const SIZE: Size = Size { queue: SPEC, pool: SPEC_POOL, capacity: 2, burst: 1, watched: false };

/// One producer, and stop with or without time to drain.
fn check(model: Model, size: Size, overdue: bool) {
    model.check(move |counts| {
        let rig = Rig::new(size);
        let producer = thread::spawn({
            let rig = Arc::clone(&rig);
            move || (0..2).for_each(|n| rig.publish((1, n), 1))
        });
        let sender = thread::spawn({
            let rig = Arc::clone(&rig);
            move || rig.send(at_most(4), &[])
        });
        let stopper = thread::spawn({
            let rig = Arc::clone(&rig);
            // A deadline that has passed, whatever the clock says.
            move || assert!(rig.stop(overdue.then(Instant::now)))
        });
        [producer, sender, stopper].into_iter().for_each(|thread| thread.join().unwrap());
        rig.judge(counts, !overdue);
    });
}

/// With all the time in the world: what was accepted before is published, what races is accounted for.
#[test]
fn drains() {
    let must_see = &[Seen::Parked, Seen::Refused, Seen::Special];
    check(Model { name: "stop_drains", bound: Some(2), floor: 1000, must_see }, SIZE, false);
}

/// The same on the ported ring, with contents that loom watches.
#[test]
fn drains_ring() {
    let must_see = &[Seen::Parked, Seen::Refused, Seen::Special];
    let size = Size { queue: RING, watched: true, ..SIZE };
    check(Model { name: "stop_drains_ring", bound: Some(2), floor: 1000, must_see }, size, false);
}

/// With no time at all: the sender takes nothing more, and the rest is abandoned, evictions with their numbers.
#[test]
fn overdue() {
    let must_see = &[Seen::Evicted, Seen::Parked, Seen::Refused, Seen::Special];
    let size = Size { capacity: 1, ..SIZE };
    check(Model { name: "stop_overdue", bound: Some(2), floor: 1000, must_see }, size, true);
}

/// The sender dies while it drains.
#[test]
fn dies_while_draining() {
    let model = Model { name: "stop_dies_while_draining", bound: Some(3), floor: 100, must_see: &[Seen::Special] };
    model.check(|counts| {
        let rig = Rig::new(SIZE);
        let producer = thread::spawn({
            let rig = Arc::clone(&rig);
            move || (0..2).for_each(|n| rig.publish((1, n), 1))
        });
        let sender = thread::spawn({
            let rig = Arc::clone(&rig);
            move || {
                rig.stop(None);
                rig.send(at_most(2), &[Act::Break]);
            }
        });
        [producer, sender].into_iter().for_each(|thread| thread.join().unwrap());
        rig.judge(counts, false);
    });
}

/// Of two stops one is the first, and whoever sees that stop has begun sees its deadline.
#[test]
fn one_is_first() {
    Model { name: "stop_one_is_first", bound: None, floor: 10, must_see: &[Seen::Special] }.check(|counts| {
        let wake = loom::sync::Arc::new(Wake::new());
        let deadline = Some(Instant::now());
        let close = |wake: &loom::sync::Arc<Wake>| {
            let wake = loom::sync::Arc::clone(wake);
            thread::spawn(move || wake.close(deadline))
        };
        let (one, other) = (close(&wake), close(&wake));
        let looker = thread::spawn({
            let wake = loom::sync::Arc::clone(&wake);
            move || {
                let closing = wake.is_closing();
                assert!(!closing || wake.deadline() == deadline, "I7: stop is seen with its deadline");
                closing
            }
        });
        assert!(one.join().unwrap() ^ other.join().unwrap(), "one of two stops is the first");
        counts.note(Seen::Special, looker.join().unwrap());
    });
}
