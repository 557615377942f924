//! The evicting queue and its gaps: I2, I3, I4, I5, and that nothing is lost or doubled (I1), by the oracle.
//!
//! One thread takes batches while others push; when all have ended the main thread takes what is left, as a sender that
//! has become idle would. Capacities of 1 and 2 make every push evict soon.

use crate::oracle::{Accounts, judge};
use crate::support::{Counts, Model, ModelCall, RING, SPEC, Seen, World, at_most};
use kv_events::internals::model_queue::{Algorithm, ArrayQueue, StandIn};
use kv_events::internals::{CHUNK, EvictingQueue, Limits};
use loom::sync::Arc;
use loom::thread;
use std::collections::VecDeque;

/// What races with what.
#[derive(Clone, Copy)]
struct Race {
    queue: StandIn,
    capacity: usize,
    burst: usize,
    /// Calls that are there before the race begins.
    prefilled: u32,
    producers: u8,
    /// Calls of each producer.
    calls: u32,
    /// Events of each call.
    events: u64,
    /// Batches taken during the race.
    takes: u32,
    limits: Limits,
    /// Whether loom watches the calls' contents; for queues that hand something over.
    watched: bool,
}

const RACE: Race = Race {
    queue: SPEC,
    capacity: 1,
    burst: 1,
    prefilled: 0,
    producers: 2,
    calls: 2,
    events: 1,
    takes: 2,
    limits: at_most(8),
    watched: false,
};

/// The sender's numbering, without the sender.
struct Taker {
    queue: Arc<EvictingQueue<ModelCall>>,
    world: World,
    limits: Limits,
    last: u64,
}

impl Taker {
    /// Takes one batch; `false` if there was nothing.
    fn take(&mut self) -> bool {
        let mut batch = Vec::with_capacity(self.limits.events as usize);
        let gap = self.queue.take(self.limits, &mut batch);
        if batch.is_empty() {
            assert_eq!(gap, 0, "a gap is taken with a batch or not at all");
            return false;
        }
        self.last += gap + 1;
        self.world.sent(self.last, &batch, false);
        true
    }
}

impl Race {
    fn run(self, counts: &Counts) {
        let world = World::new();
        let queue = Arc::new(self.queue.make(|| EvictingQueue::new(self.capacity, self.burst)));
        let push = move |world: &World, queue: &EvictingQueue<_>, name| {
            let call = world.call(name, self.events);
            queue.push(if self.watched { call.watched() } else { call }, drop);
        };
        (0..self.prefilled).for_each(|n| push(&world, &queue, (0, n)));
        let producers: Vec<_> = (1..=self.producers)
            .map(|producer| {
                let (world, queue) = (world.clone(), Arc::clone(&queue));
                thread::spawn(move || (0..self.calls).for_each(|n| push(&world, &queue, (producer, n))))
            })
            .collect();
        let mut taker = Taker { queue: Arc::clone(&queue), world: world.clone(), limits: self.limits, last: 0 };
        let taker = thread::spawn(move || {
            (0..self.takes).for_each(|_| _ = taker.take());
            taker
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let mut taker = taker.join().unwrap();
        let taken_in_the_race = world.log().messages.len();
        while taker.take() {}

        let log = world.log();
        assert_eq!(log.queued.len() as u32, self.prefilled + u32::from(self.producers) * self.calls, "I1: all are in");
        judge(&log, Accounts { evicted: queue.evicted(), told: true, ..Accounts::default() });
        counts.note(Seen::Evicted, queue.evicted() > 0);
        // Something was evicted behind a message that went before: the case that the design is about.
        counts.note(
            Seen::Special,
            taken_in_the_race > 0 && log.messages.windows(2).any(|pair| pair[1].sequence > pair[0].sequence + 1),
        );
    }
}

fn check(name: &'static str, bound: usize, floor: u64, must_see: &'static [Seen], race: Race) {
    Model { name, bound: Some(bound), floor, must_see }.check(move |counts| race.run(counts));
}

/// The heart of it. Two producers are the fewest that can evict each other's calls; a bound of 3 preemptions is one more
/// than the known wrong designs need to go wrong.
#[test]
fn two_producers() {
    check("queue_two_producers", 3, 10_000, &[Seen::Evicted, Seen::Special], RACE);
}

/// Calls of two events, a full queue of two, and a batch limit that two calls do not fit: what was popped may not be kept
/// for the next message.
#[test]
fn calls_of_two_events() {
    let race = Race { capacity: 2, prefilled: 2, events: 2, limits: at_most(3), ..RACE };
    check("queue_calls_of_two_events", 2, 1000, &[Seen::Evicted, Seen::Special], race);
}

/// Three producers, so that two can wait for the one that evicts.
#[test]
fn three_producers() {
    let race = Race { prefilled: 1, producers: 3, calls: 1, takes: 1, ..RACE };
    check("queue_three_producers", 2, 1000, &[Seen::Evicted, Seen::Special], race);
}

/// A burst of 2: the evictor makes room for others before it has put its own call in.
#[test]
fn burst_of_two() {
    let race = Race { capacity: 2, prefilled: 2, burst: 2, ..RACE };
    check("queue_burst_of_two", 2, 1000, &[Seen::Evicted, Seen::Special], race);
}

/// A burst that takes more than one hold of the mutex: batches are taken between its parts, and calls pushed.
#[test]
fn burst_in_parts() {
    let size = CHUNK + 1;
    let race = Race { capacity: size, prefilled: size as u32, burst: size, producers: 2, calls: 1, ..RACE };
    check("queue_burst_in_parts", 2, 100, &[Seen::Evicted, Seen::Special], race);
}

/// A batch that takes more than one hold of the mutex: what is evicted between its parts ends it.
#[test]
fn batch_in_parts() {
    let size = CHUNK + 1;
    let limits = at_most(2 * size as u64 + 2);
    let race = Race { capacity: size, prefilled: size as u32, producers: 1, calls: size as u32 + 1, limits, ..RACE };
    check("queue_batch_in_parts", 2, 100, &[Seen::Evicted, Seen::Special], race);
}

/// On the ported ring: the contents of a call arrive with it, be it in a batch or at whoever evicts it. Its operations are
/// many steps, so a bound of 1 is what two producers can be explored with to the end.
#[test]
fn ring_two_producers() {
    let race = Race { queue: RING, watched: true, ..RACE };
    check("queue_ring_two_producers", 1, 1000, &[Seen::Evicted, Seen::Special], race);
}

/// One producer against the sender goes deeper.
#[test]
fn ring_one_producer() {
    let race = Race { queue: RING, watched: true, producers: 1, calls: 3, prefilled: 1, ..RACE };
    check("queue_ring_one_producer", 3, 100, &[Seen::Evicted, Seen::Special], race);
}

/// The same with a queue that is full to begin with and longer than one.
#[test]
fn ring_prefilled() {
    let race = Race { queue: RING, watched: true, capacity: 2, prefilled: 2, ..RACE };
    check("queue_ring_prefilled", 1, 1000, &[Seen::Evicted, Seen::Special], race);
}

/// The same at the end of the positions: they wrap in mid-race.
#[test]
fn ring_wraps() {
    let queue = StandIn::new(Algorithm::Ring { start: u64::MAX - 1 }).telling();
    let race = Race { queue, watched: true, ..RACE };
    check("queue_ring_wraps", 1, 100, &[Seen::Evicted, Seen::Special], race);
}

/// One thread, against the plainest queue there is: the ported ring does what it should where its positions wrap, for a
/// capacity that is no power of two.
#[test]
fn ring_is_a_queue_across_the_wrap() {
    Model { name: "queue_ring_is_a_queue", bound: None, floor: 1, must_see: &[Seen::Evicted] }.check(|counts| {
        let world = World::new();
        let queue = StandIn::new(Algorithm::Ring { start: u64::MAX - 5 }).make(|| ArrayQueue::new(3));
        let mut plain = VecDeque::new();
        for n in 0..20 {
            let oldest = if plain.len() == 3 { plain.pop_front() } else { None };
            assert_eq!(queue.force_push(world.call((0, n), 1)).map(|call| call.name), oldest);
            plain.push_back((0, n));
            counts.note(Seen::Evicted, n == 19 && oldest.is_some());
            assert_eq!(queue.push(world.call((1, n), 1)).is_err(), plain.len() == 3);
            if plain.len() < 3 {
                plain.push_back((1, n));
            }
            if n % 5 == 4 {
                assert_eq!(queue.pop().map(|call| call.name), plain.pop_front());
            }
            assert_eq!((queue.len(), queue.is_empty()), (plain.len(), plain.is_empty()));
        }
        while let Some(name) = plain.pop_front() {
            assert_eq!(queue.pop().map(|call| call.name), Some(name));
        }
        assert!(queue.pop().is_none() && queue.is_empty());
    });
}
