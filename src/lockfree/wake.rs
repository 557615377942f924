//! Sleep, wake and stop: one word of state between the producers and the sender.
//!
//! A producer queues, fences, and looks whether the sender says it is parked; the sender says it is parked, fences, and
//! looks at the queue once more. The two fences are a pair: of the two looks, at least one sees the other side's write,
//! so no wake-up is lost (I6), and while the sender is awake a producer makes no system call.

use crate::faults::{fault, weaken};
use crate::sync::{
    AtomicU32, AtomicU64, OnceLock, Ordering, Thread, current, fence, fence_after_exchange, park, park_timeout,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The sender sleeps, or is about to, and wants to be unparked.
const PARKED: u32 = 1;
/// Stop has begun: calls are refused, the sender drains.
const CLOSING: u32 = 2;
/// The sender failed.
const FAILED: u32 = 4;
/// This is a forked child's copy: the sender is the parent's, and so is every lock.
const FORKED: u32 = 8;

/// No stop has begun.
const NO_DEADLINE_YET: u64 = 0;
/// Stop takes as long as it takes.
const NEVER: u64 = u64::MAX;

/// Why calls are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Stopping or stopped.
    Stopped,
    /// The sender failed.
    SenderFailed,
    /// In a forked child.
    Forked,
}

/// Ends a sleep of the sender's that is not the parking of its thread. Like `unpark` it is a token: one that comes before
/// the sleep ends it at once.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// One that calls `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Waker(Arc::new(wake))
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// Where the sender sleeps.
#[derive(Debug)]
enum Sleeper {
    /// Parked.
    Thread(Thread),
    /// In a wait of its transport's.
    Elsewhere(Waker),
}

/// The word of state, and whom to wake.
#[derive(Debug)]
pub struct Wake {
    state: AtomicU32,
    sender: OnceLock<Sleeper>,
    /// Nanoseconds after `since` plus 1, or one of the two above. Set before CLOSING is, read after it was seen.
    deadline: AtomicU64,
    since: Instant,
}

impl Wake {
    /// Open, with no sender yet.
    pub fn new() -> Self {
        Wake {
            state: AtomicU32::new(0),
            sender: OnceLock::new(),
            deadline: AtomicU64::new(NO_DEADLINE_YET),
            since: Instant::now(),
        }
    }

    /// Whether calls are taken, before anything is done for one. `Relaxed`: a call that races with stop may come out either
    /// way; the queue decides.
    #[inline]
    pub fn check_open(&self) -> Result<(), Closed> {
        let state = self.state.load(Ordering::Relaxed);
        if state & (CLOSING | FAILED | FORKED) == 0 { Ok(()) } else { Err(self.why()) }
    }

    /// Why the queue refused a call.
    #[cold]
    pub fn why(&self) -> Closed {
        // Acquire, here where it costs nothing: pairs with the Release that closed the queue or set the flag, so that the
        // flag is seen and so is the reason that was written before it.
        fence(Ordering::Acquire);
        let state = self.state.load(Ordering::Acquire);
        if state & FORKED != 0 {
            Closed::Forked
        } else if state & FAILED != 0 {
            Closed::SenderFailed
        } else {
            Closed::Stopped
        }
    }

    /// After a call was queued: wakes the sender if it sleeps.
    #[inline]
    pub fn notify(&self) {
        // Orders the write of the call's word before the load below. Pairs with the fence in `park`: then either the load
        // sees PARKED, or that look at the queue sees the word. An acquire load would not do: it lets the two change places.
        if !fault!(NoProducerFence) {
            fence_after_exchange();
        }
        // Relaxed: the fence orders it, and nothing is read on the strength of it but the state itself.
        if self.state.load(Ordering::Relaxed) & PARKED != 0 || fault!(WakesAlways) {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        // Whoever takes PARKED away is the one to unpark, once. Acquire: pairs with the Release that set it, so that the
        // sender's registration is there. Not Release: the sender finds the call by the fences, not by the flag.
        if self.state.fetch_and(!PARKED, Ordering::Acquire) & PARKED != 0 || fault!(WakesAlways) {
            match self.sender.get() {
                Some(Sleeper::Thread(sender)) => sender.unpark(),
                Some(Sleeper::Elsewhere(waker)) => (waker.0)(),
                None => {}
            }
        }
    }

    /// The calling thread is the sender from now on, and sleeps where `waker` reaches it, if there is one. To be called once,
    /// before it first parks.
    pub fn register(&self, waker: Option<Waker>) {
        let sleeper = waker.map_or_else(|| Sleeper::Thread(current()), Sleeper::Elsewhere);
        let first = self.sender.set(sleeper).is_ok();
        debug_assert!(first, "two senders on one queue");
    }

    /// Parks the sender until a producer or stop wakes it, or `timeout` has passed; returns at once if `is_empty` says
    /// that there is something to do. Returns early at will, like any park.
    pub fn park(&self, timeout: Option<Duration>, is_empty: impl Fn() -> bool) {
        self.sleep(is_empty, |state| {
            // Relaxed: nothing is read on the strength of it. After a wake-up the queue is looked at anew, in the end behind
            // the fence in `sleep`, and stop by `is_closing`. A CLOSING that came before PARKED was set is seen for
            // certain, by the write there; one that came after has seen PARKED and unparks.
            while state.load(Ordering::Relaxed) & (PARKED | CLOSING) == PARKED {
                match timeout {
                    None => park(),
                    Some(timeout) => {
                        park_timeout(timeout);
                        break;
                    }
                }
            }
        });
    }

    /// Likewise for a sender that was registered with a waker: `wait` sleeps until that was called, or returns early.
    pub fn park_elsewhere(&self, is_empty: impl Fn() -> bool, wait: impl FnOnce()) {
        self.sleep(is_empty, |state| {
            // Relaxed, as in `park`.
            if state.load(Ordering::Relaxed) & (PARKED | CLOSING) == PARKED {
                wait();
            }
        });
    }

    fn sleep(&self, is_empty: impl Fn() -> bool, sleep: impl FnOnce(&AtomicU32)) {
        // Release: whoever sees PARKED and wants to unpark finds whom (see `unpark`).
        self.state.fetch_or(PARKED, Ordering::Release);
        // Orders "I am parked" before the look at the queue. Pairs with the fence in `notify`. No ordering of the line
        // above would do: it is a write before a read.
        if !fault!(NoSenderFence) {
            fence(Ordering::SeqCst);
        }
        if fault!(ParkWithoutRecheck) || is_empty() {
            sleep(&self.state);
        }
        // Relaxed: whoever sees the flag gone has nothing to read on the strength of it.
        self.state.fetch_and(!PARKED, Ordering::Relaxed);
    }

    /// Begins to stop: the sender drains until `deadline` (`None`: for as long as it takes). Calls must be refused already.
    /// `false` if that had begun before; the first deadline holds.
    pub fn close(&self, deadline: Option<Instant>) -> bool {
        let nanos = deadline.map(|at| at.saturating_duration_since(self.since).as_nanos().saturating_add(1));
        let value = nanos.map_or(NEVER, |nanos| u64::try_from(nanos).unwrap_or(NEVER));
        // Relaxed: handed to the sender by the flag below, whoever sets it first.
        let first =
            self.deadline.compare_exchange(NO_DEADLINE_YET, value, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !first && fault!(SecondStopReturns) {
            return false;
        }
        // Release: hands the deadline to the sender (see `is_closing`). The second to stop does it too: it may not rely on
        // the first having come so far, and it has read the deadline that the first wrote.
        if self.state.fetch_or(CLOSING, weaken!(WakeClose, Ordering::Release)) & PARKED != 0 {
            self.unpark();
        }
        first
    }

    /// Whether stop has begun. Acquire: whoever sees it sees the deadline too, which decides how long to linger.
    pub fn is_closing(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSING != 0
    }

    /// When stop wants to be done; `None` before it has begun or if it has no deadline.
    pub fn deadline(&self) -> Option<Instant> {
        match self.deadline.load(Ordering::Relaxed) {
            NO_DEADLINE_YET | NEVER => None,
            nanos => self.since.checked_add(Duration::from_nanos(nanos - 1)),
        }
    }

    /// The sender failed: calls are refused from now on.
    pub fn fail(&self) {
        // Release: whoever is refused for it finds what was said of it before (see `why`).
        self.state.fetch_or(FAILED, Ordering::Release);
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
