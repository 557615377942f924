//! The ring alone: I2, I3, I4, I5, and that nothing is lost or doubled (I1), by the oracle.
//!
//! One thread takes batches while others push; when all have ended the main thread takes what is left, as a sender that
//! has become idle would. Capacities of 2 and 3 make every push evict soon. The frames are the models' own: cells that loom
//! watches, so what is written into one has to be handed over with its word.

use crate::oracle::{Accounts, judge};
use crate::support::{Counts, Model, Name, Seen, World, at_most};
use kv_events::internals::{Held, Ring, Taker};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// What races with what.
#[derive(Clone, Copy)]
struct Race {
    capacity: usize,
    burst: usize,
    /// Calls that are there before the race begins.
    prefilled: u32,
    producers: u8,
    /// Calls of each producer.
    calls: u32,
    /// Events of each call; a producer whose number is even makes calls of one event in any case if `mixed`.
    events: u64,
    mixed: bool,
    /// Batches taken during the race.
    takes: u32,
    /// Events in a batch.
    limit: u64,
}

const RACE: Race =
    Race { capacity: 2, burst: 1, prefilled: 0, producers: 2, calls: 2, events: 1, mixed: false, takes: 2, limit: 8 };

/// A ring, and the frames that travel in it, one for each call.
struct Rig {
    ring: Ring,
    frames: Vec<UnsafeCell<Name>>,
    world: World,
    /// Whether each frame came back; the standard library's, no step of the model.
    home: std::sync::Mutex<Vec<bool>>,
}

// SAFETY: what is sent between threads are indices; loom watches the cells.
unsafe impl Sync for Rig {}
// SAFETY: as above.
unsafe impl Send for Rig {}

impl Rig {
    fn push(&self, race: &Race, name: Name) {
        // The first index is 1.
        let index = u32::from(name.0) * 8 + name.1 + 1;
        // SAFETY: loom panics if anyone else may be in it.
        self.frames[index as usize].with_mut(|frame| unsafe { *frame = name });
        let events = if race.mixed && name.0 % 2 == 0 { 1 } else { race.events };
        let placed = |_: &Held, at| self.world.queued(at, name, events);
        let recycle = |held: Held, _| self.recycle(&held);
        assert!(self.ring.push(Held::for_model(index), events, false, recycle, placed).is_ok());
    }

    /// Whoever gets a frame back writes it.
    fn recycle(&self, held: &Held) {
        // SAFETY: as in `push`.
        self.frames[held.number() as usize].with_mut(|frame| unsafe { *frame = (u8::MAX, 0) });
        let before = std::mem::replace(&mut self.home.lock().unwrap()[held.number() as usize], true);
        assert!(!before, "I8: a frame comes back twice");
    }

    /// Takes one batch, if there is one; `false` if not.
    fn take(&self, taker: &mut Taker, limit: u64, last: &mut u64) -> bool {
        let mut calls = Vec::new();
        let taken = self.ring.take(taker, limit, usize::MAX, false, |held, _| {
            // SAFETY: as in `push`.
            calls.push(self.frames[held.number() as usize].with(|frame| unsafe { *frame }));
            self.recycle(&held);
        });
        let Some(taken) = taken else { return false };
        *last += taken.gap + 1;
        self.world.sent(*last, calls, false);
        true
    }
}

impl Race {
    fn run(self, counts: &Counts) {
        let frames = (usize::from(self.producers) + 1) * 8 + 1;
        let rig = Arc::new(Rig {
            ring: Ring::new(self.capacity, self.burst, 8).unwrap(),
            frames: (0..frames).map(|_| UnsafeCell::new((u8::MAX, 0))).collect(),
            world: World::new(),
            home: std::sync::Mutex::new(vec![false; frames]),
        });
        (0..self.prefilled).for_each(|n| rig.push(&self, (0, n)));
        let producers: Vec<_> = (1..=self.producers)
            .map(|producer| {
                let rig = Arc::clone(&rig);
                thread::spawn(move || (0..self.calls).for_each(|n| rig.push(&self, (producer, n))))
            })
            .collect();
        let taker = thread::spawn({
            let rig = Arc::clone(&rig);
            move || {
                let (mut taker, mut last) = (rig.ring.taker(at_most(self.limit)), 0);
                (0..self.takes).for_each(|_| _ = rig.take(&mut taker, self.limit, &mut last));
                (taker, last)
            }
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let (mut taker, mut last) = taker.join().unwrap();
        while rig.take(&mut taker, self.limit, &mut last) {}
        assert!(rig.ring.is_empty() && rig.ring.len() == 0);
        let evicted = rig.ring.evicted();
        judge(&rig.world.log(), Accounts { evicted, failed: 0, abandoned: 0, told: true });
        let home = rig.home.lock().unwrap().iter().filter(|home| **home).count();
        assert_eq!(home, rig.world.log().queued.len(), "I8: every frame comes back");
        counts.note(Seen::Evicted, evicted > 0);
        counts.note(Seen::Skipped, rig.ring.skipped() > 0);
    }

    fn check(self, name: &'static str, bound: usize, floor: u64, must_see: &'static [Seen]) {
        Model { name, bound: Some(bound), floor, must_see }.check(move |counts| self.run(counts));
    }
}

/// Two producers of two calls each, nothing there before.
#[test]
fn two_producers() {
    Race { takes: 1, ..RACE }.check("ring_two_producers", 2, 1000, &[Seen::Evicted, Seen::Skipped]);
}

/// A full ring: every call evicts, and meets the other's.
#[test]
fn full() {
    Race { prefilled: 2, calls: 1, ..RACE }.check("ring_full", 3, 1000, &[Seen::Evicted]);
}

/// Calls of two events, so that a skipped one has a second position.
#[test]
fn calls_of_two_events() {
    let race = Race { events: 2, calls: 1, producers: 3, takes: 1, ..RACE };
    race.check("ring_calls_of_two_events", 1, 1000, &[Seen::Evicted, Seen::Skipped]);
}

/// Calls of one and of two events, in a ring that is not a power of two.
#[test]
fn mixed() {
    let race = Race { capacity: 3, events: 2, mixed: true, prefilled: 1, calls: 1, ..RACE };
    race.check("ring_mixed", 3, 500, &[Seen::Evicted]);
}

/// A call of two events of which an evictor skips the first position alone: its claimer has to skip the second.
#[test]
fn second_position() {
    let race = Race { events: 2, mixed: true, calls: 1, takes: 1, ..RACE };
    race.check("ring_second_position", 3, 200, &[Seen::Evicted, Seen::Skipped]);
}

/// An evictor that removes two calls by one exchange.
#[test]
fn burst() {
    let race = Race { burst: 2, prefilled: 2, calls: 1, takes: 1, ..RACE };
    race.check("ring_burst", 3, 500, &[Seen::Evicted]);
}

/// Batches that hold no more than two events.
#[test]
fn small_batches() {
    let race = Race { prefilled: 2, limit: 2, takes: 2, calls: 1, ..RACE };
    race.check("ring_small_batches", 2, 500, &[Seen::Evicted]);
}

/// One producer that goes round several times, so that laps differ.
#[test]
fn laps() {
    let race = Race { producers: 1, calls: 5, takes: 2, ..RACE };
    race.check("ring_laps", 3, 200, &[Seen::Evicted]);
}

/// Three producers of one call each.
#[test]
fn three_producers() {
    let race = Race { producers: 3, calls: 1, takes: 1, ..RACE };
    race.check("ring_three_producers", 2, 500, &[Seen::Evicted, Seen::Skipped]);
}
