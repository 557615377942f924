//! Whatever a master does, however small the queue and however the sender stalls: after a snapshot wherever the stream
//! says that something is missing, the subscriber's view is the master's.

use kv_events::transport::{self, SendError, Transport};
use kv_events::{Config, Publisher};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use simulated_master::checkpoint::CheckpointBarrier;
use simulated_master::follower::Message;
use simulated_master::master::Master;
use simulated_master::operations::Worker;
use simulated_master::recording_publisher::{Ledger, RecordingPublisher};
use simulated_master::session::{Session, Source};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// What the sender runs into at a message.
#[derive(Clone, Copy, Debug)]
enum Stall {
    None,
    Sleep(Duration),
    /// The message is not sent.
    Fail,
}

/// A socket in memory that stalls and fails by a pattern.
struct Wire {
    sent: Sender<Message<Vec<u8>>>,
    pattern: Vec<Stall>,
    at: usize,
    start: Instant,
}

impl Transport for Wire {
    fn send(&mut self, message: &transport::Message<'_>) -> Result<(), SendError> {
        self.at = (self.at + 1) % self.pattern.len();
        match self.pattern[self.at] {
            Stall::None => {}
            Stall::Sleep(time) => std::thread::sleep(time),
            Stall::Fail => return Err(SendError::Failed("as the pattern says".into())),
        }
        let payload = message.payload();
        let arrived_ns = self.start.elapsed().as_nanos() as u64;
        let message = Message { sequence: message.sequence(), payload, arrived_ns };
        self.sent.send(message).map_err(|_| SendError::Broken("nobody listens".into()))
    }
}

/// The other end of a [`Wire`]. How much it takes at a time decides how many gaps share a snapshot.
struct Inbox {
    messages: Receiver<Message<Vec<u8>>>,
    at_a_time: usize,
}

impl Source for Inbox {
    type Payload = Vec<u8>;

    fn receive(&mut self, in_hand: &mut Vec<Message<Vec<u8>>>) -> Result<(), String> {
        match self.messages.recv_timeout(Duration::from_millis(1)) {
            Ok(message) => in_hand.push(message),
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            // The publisher has stopped, and all it sent has been taken.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        in_hand.extend(self.messages.try_iter().take(self.at_a_time - 1));
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Case {
    producers: usize,
    rounds: usize,
    requests: usize,
    ids: u64,
    objects: [usize; 2],
    chore_every: u32,
    capacity: usize,
    burst: usize,
    batch: usize,
    at_a_time: usize,
    pattern: Vec<Stall>,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let stall = prop_oneof![
        6 => Just(Stall::None),
        3 => (1..2000_u64).prop_map(|us| Stall::Sleep(Duration::from_micros(us))),
        1 => Just(Stall::Fail),
    ];
    let load = (1..=4_usize, 1..=4_usize, 1..=40_usize, 8..64_u64);
    let master = (1..=16_usize, 0..=16_usize, 2..=6_u32);
    let queue = (1..=64_usize, prop_oneof![Just(1), 1..=64_usize], prop_oneof![Just(64), 2..=16_usize]);
    let wire = (1..=64_usize, prop::collection::vec(stall, 1..12));
    (load, master, queue, wire, any::<u64>()).prop_map(|(load, master, queue, (at_a_time, mut pattern), seed)| {
        // A pattern of failures alone would never let the last gap be told.
        pattern.push(Stall::None);
        let ((producers, rounds, requests, ids), (cpu, disk, chore_every)) = (load, master);
        let (capacity, burst, batch) = queue;
        let objects = [cpu, disk];
        Case {
            producers,
            rounds,
            requests,
            ids,
            objects,
            chore_every,
            capacity,
            burst,
            batch,
            at_a_time,
            pattern,
            seed,
        }
    })
}

/// Replays random requests and says what was wrong; on the way, how many events were lost.
fn replay(case: &Case) -> Result<u64, String> {
    let start = Instant::now();
    let (sent, messages) = channel();
    let wire = Wire { sent, pattern: case.pattern.clone(), at: 0, start };
    let config = Config::new("in memory", "master")
        .queue_capacity(case.capacity)
        .eviction_burst(case.burst)
        .max_batch_events(case.batch);
    let publisher = Publisher::start_with(config, wire).map_err(|error| error.to_string())?;
    let master = Master::new(case.objects[0], case.objects[1]);
    let ledgers: Vec<Ledger> = (0..case.producers).map(|_| Ledger::default()).collect();
    let gate = CheckpointBarrier::new(case.producers);
    let inbox = Inbox { messages, at_a_time: case.at_a_time };
    let mut session = Session::new(&publisher, &master, &ledgers, &gate, inbox, Some(0));

    std::thread::scope(|scope| {
        for (producer, ledger) in ledgers.iter().enumerate() {
            let worker = Worker {
                master: &master,
                voice: RecordingPublisher::new(&publisher, ledger, producer, start),
                rng: SmallRng::seed_from_u64(case.seed.wrapping_add(producer as u64)),
                chore_every: case.chore_every,
            };
            let gate = &gate;
            scope.spawn(move || produce(case, producer, worker, gate));
        }
        let followed: Result<(), String> = (0..case.rounds).try_for_each(|_| {
            session.checkpoint()?;
            gate.open();
            Ok(())
        });
        gate.break_up();
        followed
    })?;
    let report = publisher.stop(Duration::from_secs(20));
    if !report.closed || report.abandoned > 0 {
        return Err(format!("{report:?}"));
    }
    let end = session.end();
    if end.failures.is_empty() { Ok(end.missed) } else { Err(end.failures.to_string()) }
}

fn produce(case: &Case, producer: usize, mut worker: Worker<'_>, gate: &CheckpointBarrier) {
    let _guard = gate.guard();
    for _ in 0..case.rounds {
        for _ in 0..case.requests {
            let ids: Vec<u64> = (0..12).map(|_| worker.rng.random_range(0..case.ids)).collect();
            worker.request(&ids);
        }
        if producer == 0 {
            worker.solo_rounds();
        }
        worker.voice.settle();
        if !gate.wait() {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_view_converges(case in cases()) {
        let outcome = replay(&case);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

/// What the property above is worth: its cases do lose events, by eviction and by failed sends.
#[test]
fn a_stalling_sender_loses_events() {
    let case = Case {
        producers: 3,
        rounds: 4,
        requests: 30,
        ids: 40,
        objects: [8, 8],
        chore_every: 3,
        capacity: 4,
        burst: 2,
        batch: 8,
        at_a_time: 16,
        pattern: vec![Stall::None, Stall::Fail, Stall::Sleep(Duration::from_millis(2))],
        seed: 1,
    };
    assert!(replay(&case).unwrap() > 0);
}
