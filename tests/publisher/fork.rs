//! Forked children: whatever they do with the copy they have of a publisher, the parent's is not disturbed.
#![cfg(all(feature = "zmq", target_os = "linux"))]

use crate::common::sub::{Sub, loopback};
use kv_events::{Before, MediaSet, Object, Outcome, Publisher, Refusal, SweepOutcome, WaitStrategy};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use test_support::alone;

const OBJECT: Object<'static> = Object::new("t", "k");

/// Forks; the child does `child` and exits, saying whether it was content. One that hangs is ended by an alarm.
fn forked(child: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child calls nothing but this crate, malloc (which glibc keeps usable in a child) and `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: no memory; after a minute the child is ended.
        unsafe { libc::alarm(60) };
        let content = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if content { 0 } else { 1 }) };
    }
    pid
}

fn ends_well(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is valid for the call to write to.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child hung, died or was not content");
}

fn delivers(publisher: &Publisher, sub: &Sub) {
    for _ in 0..1000 {
        assert!(publisher.committed(&OBJECT, MediaSet::CPU).is_accepted());
    }
    let messages = sub.events(1000);
    assert!(messages.windows(2).all(|pair| pair[1].sequence == pair[0].sequence + 1));
}

#[test]
fn children_that_exit_drop_or_call_do_not_disturb_the_parent() {
    if !alone!("children_that_exit_drop_or_call_do_not_disturb_the_parent") {
        return;
    }
    let publisher = Publisher::start(loopback().queue_capacity(2048)).unwrap();
    let sub = Sub::of(&publisher);
    ends_well(forked(|| true));
    delivers(&publisher, &sub);

    ends_well(forked(|| {
        // SAFETY: the child has a copy of the publisher, drops that once, and exits without dropping anything else.
        let copy = unsafe { std::ptr::read(&publisher) };
        drop(copy);
        true
    }));
    delivers(&publisher, &sub);

    let begun_before = publisher.sweep("t");
    begun_before.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    ends_well(forked(|| {
        let refused = Outcome::Refused(Refusal::Forked);
        let calls = (0..10_000).all(|_| publisher.committed(&OBJECT, MediaSet::BOTH) == refused);
        let sweep = publisher.sweep("t");
        let removal = sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
        let sweeps = removal == refused && sweep.finish() == SweepOutcome::Cleared(refused);
        // SAFETY: as above.
        let copy = unsafe { std::ptr::read(&begun_before) };
        let old = copy.finish() == SweepOutcome::Cleared(refused);
        let stopped = publisher.stop(Duration::from_secs(10));
        calls && sweeps && old && !stopped.closed && publisher.status().refused_events >= 20_000
    }));
    assert_eq!(begun_before.finish(), SweepOutcome::Cleared(Outcome::Accepted { events: 1 }));
    sub.events(2);
    assert_eq!(publisher.status().refused_events, 0);
    delivers(&publisher, &sub);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
}

#[test]
fn a_child_forked_in_the_thick_of_it_never_hangs_in_a_call() {
    // Locks may be held by threads that the child does not have.
    if !alone!("a_child_forked_in_the_thick_of_it_never_hangs_in_a_call") {
        return;
    }
    let publisher = Publisher::start(loopback().queue_capacity(4)).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    publisher.committed(&OBJECT, MediaSet::BOTH);
                    let sweep = publisher.sweep("t");
                    sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
                    sweep.finish();
                }
            });
        }
        // Others start and stop meanwhile.
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                let _ = Publisher::start(loopback()).unwrap().stop(Duration::from_secs(20));
            }
        });
        for _ in 0..100 {
            ends_well(forked(|| {
                let refused = Outcome::Refused(Refusal::Forked);
                (0..20).all(|_| publisher.committed(&OBJECT, MediaSet::CPU) == refused)
                    && publisher.cleared("t") == refused
                    && publisher.sweep("t").finish() == SweepOutcome::NothingRemoved
                    && !publisher.status().bound_endpoint.is_none_or(|endpoint| endpoint.is_empty())
            }));
        }
        over.store(true, Ordering::Release);
    });
}

#[test]
fn a_child_may_start_a_publisher_of_its_own() {
    if !alone!("a_child_may_start_a_publisher_of_its_own") {
        return;
    }
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    ends_well(forked(|| {
        let own = Publisher::start(loopback()).unwrap();
        let sub = Sub::of(&own);
        own.committed(&OBJECT, MediaSet::CPU);
        sub.events(1);
        own.stop(Duration::from_secs(60)).closed
    }));
    delivers(&publisher, &sub);
}

#[test]
fn a_child_may_start_a_publisher_whatever_the_parents_threads_were_doing() {
    if !alone!("a_child_may_start_a_publisher_whatever_the_parents_threads_were_doing") {
        return;
    }
    // A sender that reads the clock all the time, and others that come and go.
    let publisher = Publisher::start(loopback().max_batch_events(2).wait_strategy(WaitStrategy::Spin)).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                publisher.committed(&OBJECT, MediaSet::BOTH);
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                let _ = Publisher::start(loopback()).unwrap().stop(Duration::from_secs(20));
            }
        });
        for _ in 0..30 {
            ends_well(forked(|| {
                let own = Publisher::start(loopback()).unwrap();
                own.committed(&OBJECT, MediaSet::CPU);
                own.stop(Duration::from_secs(10)).published == 1
            }));
        }
        over.store(true, Ordering::Release);
    });
}
