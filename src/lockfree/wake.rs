//! Sleep, wake and stop: one word of state between the producers and the sender.
//!
//! A producer pushes, fences, and looks whether the sender says it is parked; the sender says it is parked, fences, and
//! looks at the queue once more. The two fences are a pair: of the two looks, at least one sees the other side's write,
//! so no wake-up is lost (I6), and while the sender is awake a producer pays a fence and a load and makes no system call.

use crate::faults::fault;
use crate::sync::{AtomicU32, OnceLock, Ordering, Thread, current, fence, park, park_timeout};
use std::time::{Duration, Instant};

/// The sender sleeps, or is about to, and wants to be unparked.
const PARKED: u32 = 1;
/// Stop has begun: calls are refused, the sender drains.
const CLOSING: u32 = 2;
/// The sender will not look at the queue again.
const ENDED: u32 = 4;
/// The sender died before its time.
const DEAD: u32 = 8;

/// This is a forked child's copy: the sender is the parent's, and so is every lock.
const FORKED: u32 = 16;

/// Why calls are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Stopping or stopped.
    Stopped,
    /// The sender died.
    SenderDead,
    /// In a forked child.
    Forked,
}

/// The word of state, and whom to wake.
#[derive(Debug)]
pub struct Wake {
    state: AtomicU32,
    sender: OnceLock<Thread>,
    /// Set before CLOSING is, read after it was seen.
    deadline: OnceLock<Option<Instant>>,
}

impl Wake {
    /// Open, with no sender yet.
    pub fn new() -> Self {
        Wake { state: AtomicU32::new(0), sender: OnceLock::new(), deadline: OnceLock::new() }
    }

    /// Whether calls are taken. `Relaxed`: a call that races with stop may come out either way, and what it pushes is
    /// accounted for by [`notify`](Self::notify).
    #[inline]
    pub fn check_open(&self) -> Result<(), Closed> {
        let state = self.state.load(Ordering::Relaxed);
        if state & (CLOSING | ENDED | DEAD | FORKED) == 0 { Ok(()) } else { Err(why(state)) }
    }

    /// After a push: wakes the sender if it sleeps. `true` if the sender has ended, so that the caller has to drain.
    #[inline]
    pub fn notify(&self) -> bool {
        // Orders the push before the load below. Pairs with the fence in `park` (then either the load sees PARKED, or
        // that look at the queue sees the push) and with the one in `end` (either the load sees ENDED, or the sender's
        // last drain sees the push). An acquire load would not do: it lets the push and the load change places.
        if !fault!(NoProducerFence) {
            fence(Ordering::SeqCst);
        }
        // Relaxed: the fence orders it, and nothing is read on the strength of it but the state itself.
        let state = self.state.load(Ordering::Relaxed);
        if state & PARKED != 0 {
            self.unpark();
        }
        state & ENDED != 0
    }

    #[cold]
    fn unpark(&self) {
        // Whoever takes PARKED away is the one to unpark, once. Acquire: pairs with the Release that set it, so that the
        // sender's registration is there. Not Release: the sender finds the push by the fences, not by the flag.
        if self.state.fetch_and(!PARKED, Ordering::Acquire) & PARKED != 0 {
            if let Some(sender) = self.sender.get() {
                sender.unpark();
            }
        }
    }

    /// The calling thread is the sender from now on. To be called once, before it first parks.
    pub fn register(&self) {
        let first = self.sender.set(current()).is_ok();
        debug_assert!(first, "two senders on one queue");
    }

    /// Parks the sender until a producer or stop wakes it, or `timeout` has passed; returns at once if `is_empty` says
    /// that there is something to do. Returns early at will, like any park.
    pub fn park(&self, timeout: Option<Duration>, is_empty: impl Fn() -> bool) {
        // Release: whoever sees PARKED and wants to unpark finds whom (see `unpark`).
        self.state.fetch_or(PARKED, Ordering::Release);
        // Orders "I am parked" before the look at the queue. Pairs with the fence in `notify`. No ordering of the line
        // above would do: it is a write before a read.
        if !fault!(NoSenderFence) {
            fence(Ordering::SeqCst);
        }
        if fault!(ParkWithoutRecheck) || is_empty() {
            // Relaxed: nothing is read on the strength of it. After a wake-up the queue is looked at anew, in the end behind
            // this function's fence, and stop by `is_closing`. A CLOSING that came before PARKED was set is seen for
            // certain, by the write above; one that came after has seen PARKED and unparks.
            while self.state.load(Ordering::Relaxed) & (PARKED | CLOSING) == PARKED {
                match timeout {
                    None => park(),
                    Some(timeout) => {
                        park_timeout(timeout);
                        break;
                    }
                }
            }
        }
        // Relaxed: whoever sees the flag gone has nothing to read on the strength of it.
        self.state.fetch_and(!PARKED, Ordering::Relaxed);
    }

    /// Begins to stop: calls are refused from now on, and the sender drains until `deadline` (`None`: for as long as it
    /// takes). `false` if that had begun before.
    pub fn close(&self, deadline: Option<Instant>) -> bool {
        let first = self.deadline.set(deadline).is_ok();
        if first {
            // Release: hands the deadline to the sender (see `is_closing`).
            let before = self.state.fetch_or(CLOSING, Ordering::Release);
            if before & PARKED != 0 {
                self.unpark();
            }
        }
        first
    }

    /// Whether stop has begun. Acquire: whoever sees it sees the deadline too, which decides how long to linger.
    pub fn is_closing(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSING != 0
    }

    /// When stop wants to be done; `None` before it has begun or if it has no deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied().flatten()
    }

    /// The sender will look at the queue once more and then never again.
    pub fn end(&self) {
        // Relaxed: who sees it turns to the queue, and has the queue's mutex to order what it finds there.
        self.state.fetch_or(ENDED, Ordering::Relaxed);
        // Orders ENDED before that last look. Pairs with the fence in `notify`.
        fence(Ordering::SeqCst);
    }

    /// The sender died: calls are refused from now on.
    pub fn die(&self) {
        // Release: whoever is refused for it finds what was said of it before (see `why`).
        self.state.fetch_or(DEAD, Ordering::Release);
    }

    /// In a forked child, on its only thread: calls are refused from now on.
    #[cfg_attr(not(unix), allow(dead_code))]
    pub fn disown(&self) {
        self.state.fetch_or(FORKED, Ordering::Relaxed);
    }

    /// Whether this is a forked child's copy.
    pub fn is_disowned(&self) -> bool {
        self.state.load(Ordering::Relaxed) & FORKED != 0
    }
}

impl Default for Wake {
    fn default() -> Self {
        Wake::new()
    }
}

#[cold]
fn why(state: u32) -> Closed {
    if state & FORKED != 0 {
        return Closed::Forked;
    }
    // Acquire, here where it costs nothing: the cause of death was written before DEAD was set.
    fence(Ordering::Acquire);
    if state & DEAD != 0 { Closed::SenderDead } else { Closed::Stopped }
}
