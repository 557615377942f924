//! The runner of the models, and the calls that travel in them.

use kv_events::internals::{Call, Fault, Limits, Pipe, RUN, active_fault, parking};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What can happen in an execution; the runner counts the executions in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Evicted,
    Parked,
    Refused,
    /// A position was skipped because its claimer had not come.
    Skipped,
    /// What else the model is there for.
    Special,
}

/// A model and what is expected of the exploration.
pub struct Model {
    pub name: &'static str,
    /// At most this many preemptions per execution; `None` explores everything.
    pub bound: Option<usize>,
    /// Fewer executions than this mean that nothing was tested.
    pub floor: u64,
    /// What has to happen in at least one execution.
    pub must_see: &'static [Seen],
}

/// Counts of executions.
#[derive(Default)]
pub struct Counts {
    executions: AtomicU64,
    seen: [AtomicU64; 5],
}

impl Counts {
    /// `what` happened in this execution, if `happened`. To be called once per execution and kind.
    pub fn note(&self, what: Seen, happened: bool) {
        self.seen[what as usize].fetch_add(happened.into(), Ordering::Relaxed);
    }

    fn get(&self, what: Seen) -> u64 {
        self.seen[what as usize].load(Ordering::Relaxed)
    }
}

impl Model {
    /// Explores every execution of `body` within the bound.
    pub fn check(self, body: impl Fn(&Counts) + Send + Sync + 'static) {
        let Model { name, bound, floor, must_see } = self;
        let counts = Arc::new(Counts::default());
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(bound);
        builder.max_branches = 50_000;
        let begun = std::time::Instant::now();
        builder.check({
            let counts = Arc::clone(&counts);
            move || {
                counts.executions.fetch_add(1, Ordering::Relaxed);
                parking::reset_counts();
                body(&counts);
                counts.note(Seen::Parked, parking::counts().0 > 0);
            }
        });
        let executions = counts.executions.load(Ordering::Relaxed);
        let [evicted, parked, refused, skipped] =
            [Seen::Evicted, Seen::Parked, Seen::Refused, Seen::Skipped].map(|what| counts.get(what));
        // Not `println!`, which the test harness swallows.
        let line = format!(
            "model {name} executions={executions} evicted={evicted} parked={parked} refused={refused} \
             skipped={skipped} seconds={:.1}\n",
            begun.elapsed().as_secs_f64()
        );
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        // With a fault in, only what the model asserts may count as catching it.
        if active_fault().is_none() {
            assert!(
                executions >= floor,
                "{name} explored too little: {executions} executions, at least {floor} expected"
            );
            for &what in must_see {
                assert!(counts.get(what) > 0, "{name} tested nothing: in no execution {what:?}");
            }
        }
    }
}

/// A call's name: its producer, and its place among that producer's calls.
pub type Name = (u8, u32);

/// A message as it was sent, or as it failed.
#[derive(Clone, Debug)]
pub struct Message {
    pub sequence: u64,
    pub calls: Vec<Name>,
    pub failed: bool,
}

/// What is known of one execution. The standard library's mutex: writing it down is no step of the model.
#[derive(Debug, Default)]
pub struct Log {
    /// Accepted calls: first position, name, events.
    pub queued: Vec<(u64, Name, u64)>,
    /// Messages in the order of sending.
    pub messages: Vec<Message>,
}

/// A log that all of a model's threads write.
#[derive(Clone, Debug, Default)]
pub struct World(Arc<Mutex<Log>>);

impl World {
    pub fn new() -> Self {
        World::default()
    }

    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down that a call was accepted.
    pub fn queued(&self, at: u64, name: Name, events: u64) {
        self.log().queued.push((at, name, events));
    }

    /// Writes down that a message was sent.
    pub fn sent(&self, sequence: u64, calls: Vec<Name>, failed: bool) {
        self.log().messages.push(Message { sequence, calls, failed });
    }

    /// Writes a call into a frame of the pipe and queues it; says whether it was accepted.
    pub fn push(&self, pipe: &Pipe<ModelCall>, name: Name, events: u64) -> bool {
        self.push_of(pipe, name, events, 1)
    }

    /// The same for a call of so many bytes.
    pub fn push_of(&self, pipe: &Pipe<ModelCall>, name: Name, events: u64, bytes: usize) -> bool {
        let mut held = pipe.take_frame(1).expect("a model has memory");
        *pipe.frame(&mut held) = ModelCall { name, events, bytes, world: Some(self.clone()) };
        pipe.push(held).is_ok()
    }
}

/// A call in a frame, whose cell loom watches: reading it has to come after writing it.
#[derive(Debug)]
pub struct ModelCall {
    pub name: Name,
    pub events: u64,
    pub bytes: usize,
    world: Option<World>,
}

impl Call for ModelCall {
    fn run(_: usize) -> Option<[Self; RUN]> {
        Some(std::array::from_fn(|_| ModelCall { name: (0, 0), events: 0, bytes: 0, world: None }))
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn footprint(&self) -> usize {
        1
    }

    fn trim(&mut self) {}

    fn placed(&self, at: u64) {
        if let Some(world) = &self.world {
            world.queued(at, self.name, self.events);
        }
    }
}

/// Limits by events alone.
pub const fn at_most(events: u64) -> Limits {
    Limits { events, bytes: usize::MAX }
}

/// Asserts I8 at rest: every frame that was made is in the pool, once.
pub fn assert_frames_home(pipe: &mut Pipe<ModelCall>) {
    let made = pipe.pool().made();
    let mut home: Vec<u32> = pipe.pool_mut().drain().iter().map(|held| held.number()).collect();
    assert_eq!(home.len() as u64, made, "I8: every frame is home");
    home.sort_unstable();
    home.dedup();
    assert_eq!(home.len() as u64, made, "I8: no frame is there twice");
}

/// The faults, and the model that each has to fail: read by `faults.sh`.
const CAUGHT_BY: &[(Fault, &str)] = &[
    (Fault::NoProducerFence, "wake::one_producer"),
    (Fault::NoSenderFence, "wake::one_producer"),
    (Fault::ParkWithoutRecheck, "wake::one_producer"),
    (Fault::WakesAlways, "wake::one_producer"),
    (Fault::WakeClose, "stop::one_is_first"),
    (Fault::RingPublish, "ring::laps"),
    (Fault::RingRead, "ring::laps"),
    (Fault::RingIgnoresLap, "ring::laps"),
    (Fault::RingIgnoresKind, "ring::mixed"),
    (Fault::RingMovesBlindly, "ring::laps"),
    (Fault::RingPublishesBlindly, "ring::three_producers"),
    (Fault::RingLeavesOutSkip, "ring::three_producers"),
    (Fault::RingSkipsNoSecond, "ring::second_position"),
    (Fault::RingMakesNoRoom, "ring::laps"),
    (Fault::RingOneTooMany, "ring::laps"),
    (Fault::RingJoinsAcrossLoss, "pipeline::heavy_calls"),
    (Fault::RingClosesInTwoSteps, "stop::fails_while_draining"),
    (Fault::RingEndsWithoutWalk, "stop::fails_while_draining"),
    (Fault::GapEarly, "ring::laps"),
    (Fault::GapLate, "ring::laps"),
    (Fault::GapForgottenAtEnd, "stop::at_once_without_room"),
    (Fault::CarryOver, "pipeline::calls_of_two_events"),
    (Fault::StopForgetsDrain, "stop::drains"),
    (Fault::SecondStopReturns, "stop::a_second_stop_refuses_too"),
    (Fault::SweepChecksEarly, "sweep::one_store"),
    (Fault::VictimNotReturned, "pipeline::the_sender_panics"),
    (Fault::FrameReturnedTwice, "pipeline::the_sender_panics"),
    (Fault::StackPush, "pool::without_lanes"),
    (Fault::StackPop, "pool::without_lanes"),
    (Fault::StackWithoutCount, "pool::caller_and_sender"),
    (Fault::HeartbeatTellsNothing, "pipeline::heartbeat_during_a_retry"),
];

#[test]
fn every_fault_has_its_model() {
    let mut lines = String::new();
    for (fault, model) in CAUGHT_BY {
        lines += &format!("fault {} {model}\n", fault.name());
    }
    std::io::stdout().write_all(lines.as_bytes()).unwrap();
    for fault in Fault::ALL {
        assert!(CAUGHT_BY.iter().any(|(named, _)| named == fault), "no model is named for {fault:?}");
    }
}
