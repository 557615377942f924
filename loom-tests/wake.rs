//! Sleeping and waking: I6. The sender ends when it has received everything, so a lost wake-up is a deadlock, which loom
//! reports; were it ended from outside, that would wake it and hide the loss.

use crate::support::{Model, ModelCall, Seen, World, at_most};
use kv_events::internals::{Pipe, Waker, lanes, parking};
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

#[derive(Clone, Copy)]
struct Race {
    producers: u8,
    calls: u32,
    timeout: Option<Duration>,
    /// The sender sleeps elsewhere than in its thread's parking.
    elsewhere: bool,
}

const RACE: Race = Race { producers: 1, calls: 2, timeout: None, elsewhere: false };

impl Race {
    fn check(self, name: &'static str, bound: usize, floor: u64, must_see: &'static [Seen]) {
        Model { name, bound: Some(bound), floor, must_see }.check(move |counts| {
            let world = World::new();
            let pipe = Arc::new(Pipe::new(2, 1, at_most(8), 8, 1).unwrap());
            let producers: Vec<_> = (1..=self.producers)
                .map(|producer| {
                    let (world, pipe) = (world.clone(), Arc::clone(&pipe));
                    thread::spawn(move || {
                        lanes::set_lane(producer as usize - 1);
                        (0..self.calls).for_each(|n| assert!(world.push(&pipe, (producer, n), 1)));
                    })
                })
                .collect();
            let all = u64::from(self.producers) * u64::from(self.calls);
            let sender = thread::spawn({
                let pipe = Arc::clone(&pipe);
                move || receive(&pipe, all, self)
            });
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            let sleeps = sender.join().unwrap();
            let (parks, unparks) = parking::counts();
            assert!(unparks <= sleeps, "I6: {unparks} wake-ups for a sender that went to sleep {sleeps} times");
            counts.note(Seen::Evicted, pipe.ring().evicted() > 0);
            // It was never asleep, and all came all the same.
            counts.note(Seen::Special, parks == 0 && unparks == 0);
        });
    }
}

/// Takes until `all` events are accounted for; says how many times it wanted to sleep.
fn receive(pipe: &Pipe<ModelCall>, all: u64, race: Race) -> u64 {
    // As an eventfd is: written to by whoever wakes, read by the one who sleeps.
    let token = parking::Token::new();
    pipe.register_sender(race.elsewhere.then(|| Waker::new(token.waker())));
    let (mut consumer, mut batch) = (pipe.consumer(), Vec::with_capacity(8));
    let (mut accounted, mut sleeps) = (0, 0);
    while accounted < all {
        accounted += pipe.take(&mut consumer, &mut batch) + batch.len() as u64;
        if batch.is_empty() {
            sleeps += 1;
            match race.elsewhere {
                true => pipe.park_elsewhere(|| token.wait()),
                false => pipe.park(race.timeout),
            }
        }
        pipe.recycle(&mut consumer, &mut batch);
    }
    sleeps
}

/// One producer whose calls can each find the sender awake, going to sleep, or asleep.
#[test]
fn one_producer() {
    RACE.check("wake_one_producer", 3, 1000, &[Seen::Parked, Seen::Special]);
}

/// Two producers, of whom one at most may wake it.
#[test]
fn two_producers() {
    let race = Race { producers: 2, calls: 1, ..RACE };
    race.check("wake_two_producers", 2, 5000, &[Seen::Parked, Seen::Special]);
}

/// A sender that sleeps with a time limit, and one that is up before it is woken.
#[test]
fn timed() {
    let race = Race { timeout: Some(Duration::from_secs(1)), ..RACE };
    race.check("wake_timed", 3, 500, &[Seen::Parked, Seen::Special]);
}

/// A sender that sleeps in its transport, which a token of its own ends.
#[test]
fn elsewhere() {
    let race = Race { elsewhere: true, ..RACE };
    race.check("wake_elsewhere", 3, 1000, &[Seen::Parked, Seen::Special]);
}

/// Likewise with two producers.
#[test]
fn elsewhere_with_two_producers() {
    let race = Race { elsewhere: true, producers: 2, calls: 1, ..RACE };
    race.check("wake_elsewhere_with_two_producers", 2, 5000, &[Seen::Parked, Seen::Special]);
}
