//! Stop against calls: I7, and that I1 holds across it.

use crate::rig::{Act, Rig, Script};
use crate::support::{Model, Seen, at_most};
use kv_events::internals::Wake;
use loom::thread;
use std::time::Instant;

/// One producer of two calls, and stop with all the time in the world: whatever was accepted is published.
#[test]
fn drains() {
    let must_see = &[Seen::Parked, Seen::Refused];
    Model { name: "stop_drains", bound: Some(2), floor: 1000, must_see }.check(|counts| {
        let rig = Rig::new(2, 1, at_most(4));
        let producer = rig.spawn(0, |rig| (0..2).for_each(|n| rig.publish((1, n), 1)));
        let sender = rig.spawn(2, |rig| rig.send(&[]));
        let stopper = rig.spawn(2, |rig| assert!(rig.stop(None)));
        [producer, sender, stopper].into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(rig.pipe.ring().abandoned(), 0, "what was accepted before stop is published");
        rig.judge(counts, true);
    });
}

/// With no time at all: the sender takes nothing more, and the rest is abandoned, evictions with their numbers.
#[test]
fn overdue() {
    let must_see = &[Seen::Evicted, Seen::Refused, Seen::Special];
    Model { name: "stop_overdue", bound: Some(1), floor: 1000, must_see }.check(|counts| {
        let rig = Rig::new(2, 1, at_most(4));
        rig.publish((0, 0), 1);
        rig.publish((0, 1), 1);
        let producer = rig.spawn(0, |rig| (0..2).for_each(|n| rig.publish((1, n), 1)));
        let sender = rig.spawn(2, |rig| rig.send(&[]));
        let stopper = rig.spawn(2, |rig| assert!(rig.stop(Some(Instant::now()))));
        [producer, sender, stopper].into_iter().for_each(|thread| thread.join().unwrap());
        rig.judge(counts, false);
    });
}

/// What a stop without time calls abandoned is final, whatever the sender and a call were doing.
#[test]
fn at_once_is_final() {
    let must_see = &[Seen::Refused, Seen::Special];
    Model { name: "stop_at_once_is_final", bound: Some(1), floor: 1000, must_see }.check(|counts| {
        let rig = Rig::new(2, 1, at_most(4));
        let producer = rig.spawn(0, |rig| (0..2).for_each(|n| rig.publish((1, n), 1)));
        let sender = rig.spawn(2, |rig| rig.send(&[]));
        let stopper = rig.spawn(1, Rig::stop_at_once);
        [producer, sender].into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(stopper.join().unwrap(), rig.pipe.ring().abandoned(), "I7: what the report said is final");
        rig.judge(counts, false);
    });
}

/// Two calls of two events race with a stop that has no time, in a queue of two: one of them has no room.
#[test]
fn at_once_without_room() {
    let must_see = &[Seen::Evicted, Seen::Refused, Seen::Special];
    Model { name: "stop_at_once_without_room", bound: Some(2), floor: 1000, must_see }.check(|counts| {
        let rig = Rig::new(2, 1, at_most(4));
        rig.publish((0, 0), 1);
        let producers: Vec<_> = (1..=2)
            .map(|producer| rig.spawn(producer as usize - 1, move |rig| rig.publish((producer, 0), 2)))
            .collect();
        let stopper = rig.spawn(2, Rig::stop_at_once);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let said = stopper.join().unwrap();
        rig.send(&[]);
        assert_eq!(said, rig.pipe.ring().abandoned(), "I7: what the report said is final");
        rig.judge(counts, false);
    });
}

/// The sender fails while it drains.
#[test]
fn fails_while_draining() {
    let model = Model { name: "stop_fails_while_draining", bound: Some(3), floor: 20, must_see: &[Seen::Special] };
    model.check(|counts| {
        let rig = Rig::new(2, 1, at_most(2));
        let producer = rig.spawn(0, |rig| (0..2).for_each(|n| rig.publish((1, n), 1)));
        let sender = rig.spawn(2, |rig| {
            rig.stop(None);
            rig.send(&[Act::Break]);
        });
        [producer, sender].into_iter().for_each(|thread| thread.join().unwrap());
        rig.judge(counts, false);
    });
}

/// Calls that were claimed before stop, and evict when the sender has taken all there was.
fn behind_the_last_batch(name: &'static str, script: Script, told: bool) {
    Model { name, bound: Some(1), floor: 100, must_see: &[Seen::Evicted] }.check(move |counts| {
        let rig = Rig::new(2, 1, at_most(4));
        rig.publish((0, 0), 1);
        let producers: Vec<_> = (1..=2)
            .map(|producer| rig.spawn(producer as usize - 1, move |rig| rig.publish((producer, 0), 2)))
            .collect();
        let sender = rig.spawn(2, move |rig| {
            rig.stop(None);
            rig.send(script);
        });
        producers.into_iter().chain([sender]).for_each(|thread| thread.join().unwrap());
        rig.judge(counts, told);
    });
}

#[test]
fn evictions_behind_the_last_batch_are_told() {
    behind_the_last_batch("stop_evictions_behind_the_last_batch", &[], true);
}

#[test]
fn the_second_message_breaks() {
    behind_the_last_batch("stop_the_second_message_breaks", &[Act::Send, Act::Break], false);
}

/// Evictions behind the batch that the sender fails with.
#[test]
fn evictions_behind_a_failure() {
    let must_see = &[Seen::Evicted, Seen::Special];
    Model { name: "stop_evictions_behind_a_failure", bound: Some(2), floor: 100, must_see }.check(|counts| {
        let rig = Rig::new(2, 1, at_most(2));
        let producer = rig.spawn(0, |rig| (0..4).for_each(|n| rig.publish((1, n), 1)));
        let sender = rig.spawn(2, |rig| rig.send(&[Act::Panic]));
        [producer, sender].into_iter().for_each(|thread| thread.join().unwrap());
        rig.judge(counts, false);
    });
}

/// Whoever's stop has returned, first or not, may rely on calls being refused.
#[test]
fn a_second_stop_refuses_too() {
    Model { name: "stop_a_second_stop_refuses_too", bound: None, floor: 2, must_see: &[] }.check(|_| {
        let rig = Rig::new(2, 1, at_most(2));
        let (one, other) = (rig.spawn(2, |rig| rig.stop(None)), rig.spawn(2, |rig| rig.stop(None)));
        assert!(one.join().unwrap() ^ other.join().unwrap(), "one of two stops is the first");
    });
}

/// Of two stops one is the first, and whoever sees that stop has begun sees its deadline.
#[test]
fn one_is_first() {
    Model { name: "stop_one_is_first", bound: None, floor: 10, must_see: &[Seen::Special] }.check(|counts| {
        let wake = loom::sync::Arc::new(Wake::new());
        let deadline = Some(Instant::now() + std::time::Duration::from_secs(1));
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
