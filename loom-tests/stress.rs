//! The same invariants on real threads: what the models cannot see (the processor) and sizes they cannot reach. `KV_EVENTS_STRESS` multiplies the work, 1 by default.

#![cfg(not(kv_events_loom))]

use kv_events::WaitStrategy;
use kv_events::internals::{Assemble, Batch, Call, Held, Limits, Pace, Pipe, RUN, Sender, SweepEnd, SweepTable, Tally};
use kv_events::transport::{self, SendError, Transport};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender as Tell, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A call that says whose it is.
#[derive(Debug)]
struct Numbered {
    producer: usize,
    n: u64,
    events: u64,
}

impl Call for Numbered {
    fn run(_: usize) -> Option<[Self; RUN]> {
        Some(std::array::from_fn(|_| Numbered { producer: 0, n: 0, events: 0 }))
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        1
    }

    fn footprint(&self) -> usize {
        1
    }

    fn trim(&mut self) {}
}

/// How much work: `n` times what the environment says.
fn times(n: u64) -> u64 {
    let factor = std::env::var("KV_EVENTS_STRESS").ok();
    n * factor.map_or(1, |factor| factor.parse().expect("KV_EVENTS_STRESS is a number"))
}

/// A message as it was sent or as it failed: its sequence, and each call's producer, number and events.
struct Message {
    sequence: u64,
    calls: Vec<(usize, u64, u64)>,
    failed: bool,
}

impl Message {
    fn events(&self) -> u64 {
        self.calls.iter().map(|(_, _, events)| events).sum()
    }
}

/// Writes down what it is given; every `fails`-th message fails.
struct Notebook {
    messages: Vec<Message>,
    fails: Option<usize>,
}

/// The payload of a batch is what its calls say of themselves.
struct Numbers;

/// Bytes of a call.
const NUMBERED: usize = 24;

impl Assemble<Numbered> for Numbers {
    type Head = usize;

    fn head(&self, batch: Batch<'_, Numbered>) -> usize {
        batch.calls().count() * NUMBERED
    }

    fn len(&self, head: &usize) -> usize {
        *head
    }

    fn write(&self, _: &usize, batch: Batch<'_, Numbered>, place: &mut [u8]) {
        for (place, call) in place.chunks_exact_mut(NUMBERED).zip(batch.calls()) {
            for (place, number) in place.chunks_exact_mut(8).zip([call.producer as u64, call.n, call.events]) {
                place.copy_from_slice(&number.to_be_bytes());
            }
        }
    }

    fn sent(&mut self, _: &usize) {}
}

fn numbered(message: &transport::Message<'_>) -> Vec<(usize, u64, u64)> {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
    let call = |bytes: &[u8]| (number(&bytes[..8]) as usize, number(&bytes[8..16]), number(&bytes[16..]));
    message.payload().chunks_exact(NUMBERED).map(call).collect()
}

impl Transport for Notebook {
    fn send(&mut self, message: &transport::Message<'_>) -> Result<(), SendError> {
        let (sequence, calls) = (message.sequence(), numbered(message));
        let failed = self.fails.is_some_and(|fails| (self.messages.len() + 1) % fails == 0);
        self.messages.push(Message { sequence, calls, failed });
        if failed { Err(SendError::Failed("as the test wants it".into())) } else { Ok(()) }
    }
}

/// What a publisher is without its socket.
struct Rig {
    pipe: Pipe<Numbered>,
    tally: Tally,
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// Of 64 events, as they are by default.
const LIMITS: Limits = Limits { events: 64, bytes: usize::MAX };

fn pipe(capacity: usize, burst: usize) -> Pipe<Numbered> {
    Pipe::new(capacity, burst, LIMITS, 64, 1).expect("there is memory")
}

/// Queues a call; `false` if it was refused.
fn push(pipe: &Pipe<Numbered>, producer: usize, n: u64, events: u64) -> bool {
    let mut held = pipe.take_frame(1).expect("there is memory");
    let call = pipe.frame(&mut held);
    (call.producer, call.n, call.events) = (producer, n, events);
    pipe.push(held).is_ok()
}

impl Rig {
    fn new(capacity: usize, burst: usize) -> Arc<Self> {
        Arc::new(Rig {
            pipe: pipe(capacity, burst),
            tally: Tally::new(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    fn publish(&self, producer: usize, n: u64, events: u64) -> bool {
        let accepted = self.pipe.check_open().is_ok() && push(&self.pipe, producer, n, events);
        let count = if accepted { &self.accepted } else { &self.refused };
        count.fetch_add(events, Ordering::Relaxed);
        accepted
    }

    /// Sends until stopped, on a thread of its own; gives back what was sent.
    fn sender(self: &Arc<Self>, wait: WaitStrategy, fails: Option<usize>) -> thread::JoinHandle<Vec<Message>> {
        let rig = Arc::clone(self);
        thread::spawn(move || {
            let pace = Pace { wait, heartbeat: Duration::ZERO };
            let notebook = Notebook { messages: Vec::new(), fails };
            let mut sender = Sender::new(&rig.pipe, &rig.tally, Numbers, notebook, pace);
            sender.run().expect("the notebook never breaks");
            sender.into_transport().messages
        })
    }

    /// Asserts I1, the sequence rule and I8 when all is over.
    fn assert_settled(self: Arc<Self>) {
        let mut rig = Arc::into_inner(self).expect("all threads have ended");
        let (evicted, failed) = (rig.pipe.ring().evicted(), rig.tally.failed.get());
        let accounted = rig.tally.events.get() + evicted + failed + rig.pipe.ring().abandoned();
        assert_eq!(rig.accepted.load(Ordering::Relaxed), accounted, "I1");
        assert_eq!(rig.tally.sequence.get(), rig.tally.messages.get() + evicted + failed, "the sequence rule");
        assert_frames_home(&mut rig.pipe);
    }
}

/// Asserts I8 at rest: every frame is idle, once.
fn assert_frames_home(pipe: &mut Pipe<Numbered>) {
    let made = pipe.pool().made();
    let home: Vec<u32> = pipe.pool_mut().drain().iter().map(Held::number).collect();
    assert_eq!(home.len() as u64, made, "I8: every frame is home");
    assert_eq!(home.iter().collect::<HashSet<_>>().len(), home.len(), "I8: no frame is there twice");
}

/// Asserts I2 to I5 where they can be told exactly: one producer, numbered without holes. At every message the numbers
/// that are missing are those that the sequence skips.
fn assert_jumps_are_gaps(messages: &[Message]) {
    let (mut last, mut next) = (0, 0);
    for message in messages {
        let skipped = message.sequence.checked_sub(last + 1).expect("I5: the sequence rises");
        match message.calls.first() {
            Some(&(_, first, _)) => {
                let missing = first.checked_sub(next).expect("I5: in order, nothing twice");
                assert_eq!(missing, skipped, "I2, I3: the jump before {first} is the gap");
                next = first;
            }
            None => next += skipped,
        }
        for &(_, n, _) in &message.calls {
            assert_eq!(n, next, "I2: no loss within a message");
            next += 1;
        }
        let carried = message.calls.len() as u64;
        match (message.failed, carried) {
            (false, _) => last = message.sequence,
            (true, 0) => {}
            (true, carried) => last = message.sequence + carried - 1,
        }
    }
}

/// I2 to I5: one producer, dense numbers, every jump equals its gap.
#[test]
fn every_jump_is_a_gap() {
    for (capacity, burst) in [(2, 1), (2, 2), (3, 1), (64, 1), (64, 16), (1000, 1), (1000, 40)] {
        for (wait, fails) in [(WaitStrategy::Spin, None), (WaitStrategy::Park, None), (WaitStrategy::Park, Some(3))] {
            let rig = Rig::new(capacity, burst);
            let sender = rig.sender(wait, fails);
            let calls = times(5_000);
            (0..calls).for_each(|n| assert!(rig.publish(0, n, 1)));
            rig.pipe.close(None);
            let messages = sender.join().unwrap();
            assert_jumps_are_gaps(&messages);
            let sent: u64 = messages.iter().map(|message| message.calls.len() as u64).sum();
            assert_eq!(sent + rig.pipe.ring().evicted(), calls, "stop drains what was accepted before it");
            rig.assert_settled();
        }
    }
}

/// The same while stop cuts in: whatever the flood was doing, the tail that is left is abandoned and nothing else.
#[test]
fn every_jump_is_a_gap_when_stopped() {
    for round in 0..times(50) {
        let rig = Rig::new(2 + round as usize % 5, 1);
        let sender = rig.sender(WaitStrategy::Park, None);
        let flood = thread::spawn({
            let rig = Arc::clone(&rig);
            move || (0..).take_while(|n| rig.publish(0, *n, 1)).count() as u64
        });
        wait_for(|| rig.tally.messages.get() > round);
        assert!(rig.pipe.close(None));
        let accepted = flood.join().unwrap();
        assert_jumps_are_gaps(&sender.join().unwrap());
        assert_eq!(rig.accepted.load(Ordering::Relaxed), accepted);
        assert!(rig.refused.load(Ordering::Relaxed) > 0, "I7: calls are refused once stop has begun");
        rig.assert_settled();
    }
}

/// I1, I7, I8 with many producers, calls of one and two events, messages that fail, and stop in mid-flood.
#[test]
fn fifty_stops_in_mid_flood() {
    for round in 0..times(50) {
        let fails = (round % 3 == 0).then_some(4);
        let wait = if round % 2 == 0 { WaitStrategy::Park } else { WaitStrategy::Nap(Duration::from_micros(50)) };
        let rig = Rig::new([2, 3, 5, 64, 1000][round as usize % 5], 1);
        let sender = rig.sender(wait, fails);
        let floods: Vec<_> = (0..4)
            .map(|producer| {
                let rig = Arc::clone(&rig);
                thread::spawn(move || (0..).take_while(|n| rig.publish(producer, *n, 1 + n % 2)).count())
            })
            .collect();
        wait_for(|| rig.tally.events.get() > 20 * round);
        assert!(rig.pipe.close(None), "the first stop is the first");
        assert!(!rig.pipe.close(None), "a second stop is none");
        let accepted: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
        let messages = sender.join().unwrap();
        assert!(rig.accepted.load(Ordering::Relaxed) >= accepted as u64);
        assert_producers_in_order(&messages, 4);
        rig.assert_settled();
    }
}

/// I1, I3 and I5 on the queue alone, by the fate of each position: what several threads queue is taken once or lost in its
/// place, and each producer's order holds.
#[test]
fn taken_or_evicted_exactly_once() {
    const PRODUCERS: usize = 4;
    let each = times(20_000);
    for (capacity, burst) in [(2, 1), (3, 2), (4, 1), (7, 3), (64, 16), (64, 1), (1000, 40)] {
        let pipe = Arc::new(pipe(capacity, burst));
        let done = Arc::new(AtomicBool::new(false));
        let taker = thread::spawn({
            let (pipe, done) = (Arc::clone(&pipe), Arc::clone(&done));
            move || {
                let (mut consumer, mut batch, mut taken, mut gaps) = (pipe.consumer(), Vec::new(), Vec::new(), 0);
                loop {
                    let last = done.load(Ordering::Acquire);
                    let gap = pipe.take(&mut consumer, &mut batch);
                    assert!(gap == 0 || !batch.is_empty(), "a gap is taken with a batch or not at all");
                    gaps += gap;
                    taken.extend(pipe.batch(&batch).calls().map(|call| (call.producer, call.n, call.events)));
                    if batch.is_empty() && last {
                        return (taken, gaps);
                    }
                    pipe.recycle(&mut consumer, &mut batch);
                }
            }
        });
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let pipe = Arc::clone(&pipe);
                thread::spawn(move || (0..each).for_each(|n| assert!(push(&pipe, producer, n, 1 + n % 2))))
            })
            .collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        done.store(true, Ordering::Release);
        let (taken, gaps) = taker.join().unwrap();
        let pushed = PRODUCERS as u64 * (each + each / 2);
        let events: u64 = taken.iter().map(|(_, _, events)| events).sum();
        assert_eq!(events + gaps, pushed, "I1, I3: every event was taken, or told as lost");
        assert_eq!(pipe.ring().evicted(), gaps, "I3: counted and told");
        let mut next = [0; PRODUCERS];
        for (producer, n, _) in taken {
            assert!(n >= next[producer], "I5: producer {producer} overtakes itself, or a call was taken twice");
            next[producer] = n + 1;
        }
    }
}

/// I6: a sender that has gone to sleep is woken by every single call. A lost wake-up would leave the caller waiting.
#[test]
fn every_call_wakes_a_sleeper() {
    struct Bell(Tell<u64>);

    impl Transport for Bell {
        fn send(&mut self, message: &transport::Message<'_>) -> Result<(), SendError> {
            numbered(message).iter().for_each(|(_, n, _)| self.0.send(*n).expect("the caller waits"));
            Ok(())
        }
    }

    let rig = Rig::new(4, 1);
    let (bell, rung) = channel();
    let sender = thread::spawn({
        let rig = Arc::clone(&rig);
        move || {
            let pace = Pace { wait: WaitStrategy::Park, heartbeat: Duration::ZERO };
            Sender::new(&rig.pipe, &rig.tally, Numbers, Bell(bell), pace).run().expect("a bell never breaks");
        }
    });
    for n in 0..times(2_000) {
        assert!(rig.publish(0, n, 1));
        // Far longer than any machine needs: it tells a lost wake-up from a slow one.
        assert_eq!(rung.recv_timeout(Duration::from_secs(60)), Ok(n), "I6: the wake-up was lost");
    }
    assert!(rig.pipe.close(None));
    sender.join().unwrap();
    rig.assert_settled();
}

/// Sweeps on real locks: after every round the view that the queue yields is what the master holds.
#[test]
fn no_cleared_behind_a_racing_stored() {
    const SHARDS: usize = 16;
    const CLEARED: usize = SHARDS;
    let (mut said, mut interrupted) = (0, 0);
    let mut rounds = 0;
    while rounds < times(500) || said == 0 || interrupted == 0 {
        rounds += 1;
        assert!(rounds < times(100_000), "said so {said} times, interrupted {interrupted} times: one was never seen");
        let here = AtomicU64::new(0);
        // All begin together, then each a little later than the others, and differently each time.
        let line_up = |thread: u64| {
            here.fetch_add(1, Ordering::Relaxed);
            wait_for(|| here.load(Ordering::Relaxed) == 3);
            (0..(rounds * (7 + 6 * thread)) % 499).for_each(|_| std::hint::spin_loop());
        };
        // The producer of a call says which shard it is of, its number whether it is stored there.
        let pipe = pipe(1024, 1);
        let publish = |shard, stored: bool| assert!(push(&pipe, shard, stored.into(), 1));
        let shards: [Mutex<bool>; SHARDS] = std::array::from_fn(|_| Mutex::new(true));
        let sweeps = SweepTable::new();
        let end = thread::scope(|scope| {
            let sweeper = scope.spawn(|| {
                line_up(0);
                let token = sweeps.begin("a").unwrap();
                for (shard, object) in shards.iter().enumerate() {
                    let mut object = object.lock().unwrap();
                    if std::mem::take(&mut *object) {
                        publish(shard, false);
                    }
                }
                sweeps.end(token, || publish(CLEARED, false))
            });
            for (thread, shard) in [(1, 0), (2, SHARDS - 1)] {
                let (shards, sweeps, publish, line_up) = (&shards, &sweeps, &publish, &line_up);
                scope.spawn(move || {
                    line_up(thread);
                    let mut object = shards[shard].lock().unwrap();
                    *object = true;
                    let stored = sweeps.store(b"a", || -> Result<(), ()> {
                        publish(shard, true);
                        Ok(())
                    });
                    assert!(stored.is_ok());
                });
            }
            sweeper.join().unwrap()
        });
        match end {
            SweepEnd::Uninterrupted(()) => said += 1,
            SweepEnd::Interrupted => interrupted += 1,
        }
        let mut view = [true; SHARDS];
        let (mut consumer, mut batch) = (pipe.consumer(), Vec::new());
        assert_eq!(pipe.take(&mut consumer, &mut batch), 0);
        for call in pipe.batch(&batch).calls() {
            match call.producer {
                CLEARED => view = [false; SHARDS],
                shard => view[shard] = call.n == 1,
            }
        }
        assert_eq!(view, shards.map(|object| object.into_inner().unwrap()), "the view is what the master holds");
    }
    println!("sweeps that said so: {said}, interrupted: {interrupted}");
}

/// I5 with several producers.
fn assert_producers_in_order(messages: &[Message], producers: usize) {
    let mut next = vec![0; producers];
    let mut last = 0;
    for message in messages {
        assert!(message.sequence > last, "I5: the sequence rises");
        // One that failed takes a number for each of its events.
        last = message.sequence + if message.failed { message.events() - 1 } else { 0 };
        for &(producer, n, _) in &message.calls {
            assert!(n >= next[producer], "I5: producer {producer} overtakes itself");
            next[producer] = n + 1;
        }
    }
}

/// Waits until something is so that will be so.
fn wait_for(so: impl Fn() -> bool) {
    while !so() {
        thread::yield_now();
    }
}
