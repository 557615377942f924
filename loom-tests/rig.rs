//! The real sender on the real pipe, with a transport that writes down what it is given.

use crate::oracle::{Accounts, judge, published};
use crate::support::{Counts, ModelCall, Name, Seen, World, assert_frames_home};
use kv_events::WaitStrategy;
use kv_events::internals::{Assemble, Batch, Closed, Limits, Pace, Pipe, Sender, Tally, lanes};
use kv_events::transport::{Message, SendError, Transport};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a publisher is without its socket.
pub struct Rig {
    pub pipe: Pipe<ModelCall>,
    pub tally: Tally,
    pub world: World,
    /// Events of accepted and of refused calls; the standard library's atomics, no step of a model.
    accepted: AtomicU64,
    refused: AtomicU64,
}

/// What the transport does with its n-th message; it sends those it is not told of.
pub type Script = &'static [Act];

/// What a transport does.
#[derive(Clone, Copy)]
pub enum Act {
    Send,
    Fail,
    Break,
    Panic,
}

/// The payload of a batch is the names of its calls.
struct Names;

impl Assemble<ModelCall> for Names {
    type Head = Vec<Name>;

    fn head(&self, batch: Batch<'_, ModelCall>) -> Vec<Name> {
        batch.calls().map(|call| call.name).collect()
    }

    fn len(&self, head: &Vec<Name>) -> usize {
        head.len() * NAME
    }

    fn write(&self, head: &Vec<Name>, _: Batch<'_, ModelCall>, place: &mut [u8]) {
        for (place, (producer, n)) in place.chunks_exact_mut(NAME).zip(head) {
            place[0] = *producer;
            place[1..].copy_from_slice(&n.to_be_bytes());
        }
    }

    fn sent(&mut self, _: &Vec<Name>) {}
}

/// Bytes of a name.
const NAME: usize = 5;

struct ModelTransport {
    world: World,
    script: std::slice::Iter<'static, Act>,
}

impl Transport for ModelTransport {
    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        let act = self.script.next().copied().unwrap_or(Act::Send);
        let name = |bytes: &[u8]| (bytes[0], u32::from_be_bytes(bytes[1..].try_into().expect("a name")));
        let calls = message.payload().chunks_exact(NAME).map(name).collect();
        self.world.sent(message.sequence(), calls, !matches!(act, Act::Send));
        match act {
            Act::Send => Ok(()),
            Act::Fail => Err(SendError::Failed("as the model wants it".into())),
            Act::Break => Err(SendError::Broken("as the model wants it".into())),
            Act::Panic => std::panic::resume_unwind(Box::new("as the model wants it")),
        }
    }
}

impl Rig {
    pub fn new(capacity: usize, burst: usize, limits: Limits) -> Arc<Self> {
        let pipe = Pipe::new(capacity, burst, limits, 8, 1).unwrap();
        // Each lane has its frames beforehand, so that what races is what a model is there for; `pool` has the rest.
        for lane in [1, 0] {
            lanes::set_lane(lane);
            pipe.give_back(pipe.take_frame(1).unwrap());
        }
        Arc::new(Rig {
            pipe,
            tally: Tally::new(),
            world: World::new(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// A thread that has lane `lane`, if there is one of that number.
    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        lane: usize,
        role: impl FnOnce(&Rig) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let rig = Arc::clone(self);
        thread::spawn(move || {
            if lane < 2 {
                lanes::set_lane(lane);
            }
            role(&rig)
        })
    }

    /// A call as a caller makes it.
    pub fn publish(&self, name: (u8, u32), events: u64) {
        self.publish_of(name, events, 1);
    }

    /// The same for a call of so many bytes.
    pub fn publish_of(&self, name: (u8, u32), events: u64, bytes: usize) {
        let refused = match self.pipe.check_open() {
            Ok(()) if self.world.push_of(&self.pipe, name, events, bytes) => {
                self.accepted.fetch_add(events, Ordering::Relaxed);
                return;
            }
            Ok(()) => self.pipe.check_open(),
            Err(closed) => Err(closed),
        };
        self.refused.fetch_add(events, Ordering::Relaxed);
        if refused == Err(Closed::SenderFailed) {
            assert!(self.tally.failure_reason.get().is_some(), "whoever is refused for a failure finds the reason");
        }
    }

    /// What the sender's thread does.
    pub fn send(&self, script: Script) {
        self.send_with(script, Duration::ZERO);
    }

    /// The same with heartbeats.
    pub fn send_with(&self, script: Script, heartbeat: Duration) {
        let pace = Pace { wait: WaitStrategy::Park, heartbeat };
        let transport = ModelTransport { world: self.world.clone(), script: script.iter() };
        let mut sender = Sender::new(&self.pipe, &self.tally, Names, transport, pace);
        let cause = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sender.run())) {
            Ok(outcome) => outcome.err(),
            Err(panic) if panic.is::<&str>() => Some("it panicked".into()),
            // Not the transport's: loom's, or an assertion's.
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some(cause) = cause {
            sender.settle_failure(cause);
        }
    }

    /// What stop does before it waits.
    pub fn stop(&self, deadline: Option<Instant>) -> bool {
        let first = self.pipe.close(deadline);
        assert!(self.pipe.check_open().is_err(), "I7: calls are refused from the moment stop begins");
        first
    }

    /// What stop does that has no time: says what is abandoned, for good.
    pub fn stop_at_once(&self) -> u64 {
        self.stop(Some(Instant::now()));
        self.pipe.abandon();
        self.pipe.ring().abandoned()
    }

    /// Judges the execution when all threads have ended; `told` is whether the sender had the time to tell of everything.
    pub fn judge(self: Arc<Self>, counts: &Counts, told: bool) {
        let mut rig = Arc::into_inner(self).expect("all threads have ended");
        let log = rig.world.log();
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let ring = rig.pipe.ring();
        let (evicted, failed) = (ring.evicted(), rig.tally.failed.get());
        let accounts = Accounts { evicted, failed, abandoned: ring.abandoned(), told };
        judge(&log, accounts);
        assert_eq!(rig.tally.events.get(), published(&log));
        let accounted = rig.tally.events.get() + evicted + failed + accounts.abandoned;
        assert_eq!(get(&rig.accepted), accounted, "I1: what was accepted is accounted for: {log:#?}");
        let used_up = rig.tally.messages.get() + evicted + failed;
        assert_eq!(rig.tally.sequence.get(), used_up, "the sequence rule: {log:#?}");
        assert!(ring.is_empty(), "I7: drained");
        counts.note(Seen::Evicted, evicted > 0);
        counts.note(Seen::Refused, get(&rig.refused) > 0);
        counts.note(Seen::Special, accounts.abandoned > 0);
        counts.note(Seen::Skipped, ring.skipped() > 0);
        drop(log);
        assert_frames_home(&mut rig.pipe);
    }
}
