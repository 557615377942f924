//! The runner of the models, and the calls that travel in them.

use kv_events::internals::model_queue::{Algorithm, StandIn};
use kv_events::internals::{Call, Fault, Limits, Pipe, active_fault, parking};
use loom::cell::UnsafeCell;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One step per operation; tells the order.
pub const SPEC: StandIn = StandIn::new(Algorithm::Spec).telling();
/// The same as a pool, where nobody asks for the order.
pub const SPEC_POOL: StandIn = StandIn::new(Algorithm::Spec);
/// The ported ring; tells the order.
pub const RING: StandIn = StandIn::new(Algorithm::Ring { start: 0 }).telling();
/// The same as a pool.
pub const RING_POOL: StandIn = StandIn::new(Algorithm::Ring { start: 0 });

/// What can happen in an execution; the runner counts the executions in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Evicted,
    Parked,
    Refused,
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
    seen: [AtomicU64; 4],
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
        let [evicted, parked, refused] = [Seen::Evicted, Seen::Parked, Seen::Refused].map(|what| counts.get(what));
        // Not `println!`, which the test harness swallows.
        let line =
            format!("model {name} executions={executions} evicted={evicted} parked={parked} refused={refused}\n");
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
    /// Calls in the order in which they got into the queue, with their events.
    pub queued: Vec<(Name, u64)>,
    /// Messages in the order of sending.
    pub messages: Vec<Message>,
    /// Buffers made.
    pub buffers: u32,
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

    /// A call in a new buffer.
    pub fn call(&self, name: Name, events: u64) -> ModelCall {
        let mut log = self.log();
        log.buffers += 1;
        ModelCall { name, events, buffer: log.buffers, contents: None, world: self.clone() }
    }

    /// A call in a buffer of the pipe's pool, or in a new one.
    pub fn call_from(&self, pipe: &Pipe<ModelCall>, name: Name, events: u64) -> ModelCall {
        match pipe.take_buffer() {
            None => self.call(name, events),
            Some(buffer) => ModelCall { name, events, contents: None, ..buffer },
        }
    }

    /// Writes down that a batch was sent.
    pub fn sent(&self, sequence: u64, batch: &[ModelCall], failed: bool) {
        batch.iter().for_each(ModelCall::read);
        let calls = batch.iter().map(|call| call.name).collect();
        self.log().messages.push(Message { sequence, calls, failed });
    }
}

/// A call, in a buffer that has a number.
#[derive(Debug)]
pub struct ModelCall {
    pub name: Name,
    pub events: u64,
    pub buffer: u32,
    contents: Option<Arc<UnsafeCell<Name>>>,
    world: World,
}

impl ModelCall {
    /// The same with contents that loom watches: reading them has to come after writing them. For queues that hand
    /// something over.
    pub fn watched(mut self) -> Self {
        let contents = UnsafeCell::new((0, 0));
        // SAFETY: nobody else has it yet.
        contents.with_mut(|place| unsafe { *place = self.name });
        self.contents = Some(Arc::new(contents));
        self
    }

    /// Gives it another name and other contents, in place.
    pub fn rewrite(&mut self, name: Name) {
        self.name = name;
        if let Some(contents) = &self.contents {
            // SAFETY: loom's cell panics if anyone else may be in it.
            contents.with_mut(|place| unsafe { *place = name });
        }
        self.read();
    }

    /// Reads the contents.
    pub fn read(&self) {
        if let Some(contents) = &self.contents {
            // SAFETY: loom's cell panics if this is not ordered after the write.
            assert_eq!(contents.with(|place| unsafe { *place }), self.name);
        }
    }
}

impl Call for ModelCall {
    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        1
    }

    fn footprint(&self) -> usize {
        1
    }

    fn placed(&self) {
        self.world.log().queued.push((self.name, self.events));
    }

    fn twin(&self) -> Option<Self> {
        Some(ModelCall { contents: None, world: self.world.clone(), ..*self })
    }
}

/// Limits by events alone.
pub const fn at_most(events: u64) -> Limits {
    Limits { events, bytes: usize::MAX }
}

/// Asserts I8 at rest: every buffer that was made is in the pool, once.
pub fn assert_buffers_home(pipe: &Pipe<ModelCall>, world: &World) {
    let made = world.log().buffers;
    let mut home: Vec<u32> = std::iter::from_fn(|| pipe.take_buffer()).map(|call| call.buffer).collect();
    home.sort_unstable();
    assert_eq!(home, (1..=made).collect::<Vec<_>>(), "every buffer is home, and once");
}

/// The faults, and the model that each has to fail: read by `faults.sh`.
const CAUGHT_BY: &[(Fault, &str)] = &[
    (Fault::GapAfterEviction, "queue::two_producers"),
    (Fault::GapBeforeEviction, "queue::two_producers"),
    (Fault::PopOutsideLock, "queue::two_producers"),
    (Fault::CarryOver, "queue::calls_of_two_events"),
    (Fault::NoProducerFence, "wake::"),
    (Fault::NoSenderFence, "wake::"),
    (Fault::ParkWithoutRecheck, "wake::"),
    (Fault::StopForgetsDrain, "stop::"),
    (Fault::ProducerIgnoresEnd, "stop::"),
    (Fault::SweepChecksEarly, "sweep::"),
    (Fault::VictimNotReturned, "pipeline::"),
    (Fault::BufferReturnedTwice, "pipeline::"),
    (Fault::RingReleaseRelaxed, "queue::"),
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
