//! Listens to publishers over ZeroMQ and tells loss from order. Feature `zmq`, on Unix.
//!
//! ```no_run
//! use kv_events::subscriber::{Delivery, Settings, Subscriber};
//! use kv_events::tracker::Verdict;
//!
//! let mut subscriber = Subscriber::connect(["tcp://10.0.0.7:5557", "tcp://10.0.0.8:5557"], &Settings::default())?;
//! while let Ok(delivery) = subscriber.recv() {
//!     match delivery {
//!         Delivery::Notice { verdict: Verdict::Duplicate, .. } => {}
//!         Delivery::Notice { source, verdict, .. } => println!("resync {}: {verdict:?}", source.endpoint()),
//!         Delivery::Message(message) => println!("{} events", message.batch().len()),
//!         Delivery::Reconnected { .. } => {} // the next message tells what was missed
//!         Delivery::Malformed { source, reason, .. } => println!("{}: {reason}", source.endpoint()),
//!     }
//! }
//! # Ok::<(), kv_events::subscriber::ConnectError>(())
//! ```
//!
//! # One queue, in order
//!
//! What a message shows about the messages before it (a start, a gap, a restart, that it is a repetition) is a delivery
//! of its own, right before the message. A reader that resyncs on a gap can hold messages back as long as it likes: a
//! [`Message`] owns its payload. Every endpoint and topic is a source with a [`Tracker`](crate::tracker::Tracker) of its
//! own, unless all topics of an endpoint share one counter ([`Settings::numbering`]).
//!
//! # Connecting and being connected to
//!
//! Publishers mostly bind, and a subscriber [connects](Subscriber::connect). Engines connect where their endpoint names a
//! host; a subscriber then [binds](Subscriber::bind), and each publisher that connects is a [`Source`] of its own, told
//! apart by its address. Both can be had in one subscriber, and changed while it runs ([`Subscriber::add`],
//! [`Subscriber::add_bound`], [`Subscriber::remove`]).
//!
//! # No thread of its own
//!
//! A subscriber owns its connections and is polled by its caller: routers have their own threads or an async runtime, and a
//! thread in between would be one more queue with one more limit at which to lose messages silently. Call
//! [`recv`](Subscriber::recv) in a thread of yours, or [`recv_timeout`](Subscriber::recv_timeout), or
//! [`try_recv`](Subscriber::try_recv) in a loop of yours. [`StopHandle`] ends a wait from another thread, [`StatusHandle`]
//! reads the figures from one. Only a host's name is looked up on a thread of its own, which ends with the answer.
//!
//! Nothing blocks but `recv` and `recv_timeout`: neither [`StopHandle::stop`], nor dropping a subscriber, which closes its
//! connections at once.
//!
//! # Under an async runtime
//!
//! A subscriber has one file descriptor ([`AsFd`]), which is readable while there may be something to receive; it is for
//! tokio's `AsyncFd` and its like (`examples/tokio.rs` has the whole of it). There is no `Stream` here, since it would tie this
//! crate to a runtime for what is a dozen lines on your side. The rule:
//!
//! 1. register it for reading, and only for waiting: never read from it;
//! 2. call `try_recv` until it says [`Empty`](RecvError::Empty), *then* wait for it, then begin again;
//! 3. wait no longer than until [`wake_at`](Subscriber::wake_at): attempts to connect are made in `try_recv`.
//!
//! One call of `try_recv` reads 1 MiB at most before it hands something over or says `Empty`; the descriptor is readable
//! again at once if there was more.
//!
//! # Keep asking
//!
//! All work is done inside these calls: nothing is read, and no lost connection is made again, while nobody calls. A reader
//! that is busy for long, say with a snapshot, should go on receiving and hold the messages back.
//!
//! # Is it live yet?
//!
//! A subscription takes effect when the publisher has seen it, some time after `connect` returned; what was published
//! before is lost to this subscriber (the first notice says how much, if the base is known). Only a message that arrives
//! proves the path: publish a probe until it is seen, as `kv-events replay` does, or take the snapshot *after* the first
//! message came. Publishers with a heartbeat send that first message unasked.
//!
//! # What no subscriber can see
//!
//! - A publisher that was restarted while this side was away, and whose numbers and ids are past the old ones already.
//! - The loss of the last messages, until another one comes (a heartbeat bounds this).
//! - Whether a silent publisher has nothing to say or hangs. Whether it is connected, [`SourceStatus`] tells, and what is
//!   there instead if it is none: another kind of socket, a web server, one that wants CURVE. It is tried again for ever.
//!   A host that vanished without a word is noticed by TCP's keepalive ([`Settings::keepalive`]).
//!
//! # What arrives ends no connection
//!
//! Malformed input is counted, told and logged (the 1st, 10th, 100th ... of a source), and that is all. The exceptions are
//! what breaks ZeroMQ's own rules, a frame above 1 GiB, and a message of more than 1024 frames: there is no going on behind
//! them, so the connection is made anew.
//!
//! # ZeroMQ without libzmq
//!
//! The publisher's socket is libzmq's. This side speaks ZMTP 3.0 itself, as a SUB socket with the NULL mechanism: libzmq
//! counts messages where memory has to be bounded in bytes, bounds the frames of a message not at all, closes a connection
//! without saying why, and has at most 1023 sockets. It needs publishers with libzmq 4 or anything else that speaks ZMTP 3.

mod address;
mod core;
mod counters;
mod delivery;
mod endpoint;
mod link;
mod settings;
mod sources;
mod stop;
mod stream;
pub(crate) mod zmtp;

pub use counters::{SourceStatus, StatusHandle};
pub use delivery::{Delivery, Malformed, Message, Source};
pub use settings::{ConnectError, Settings, TopicFilter};
pub use stop::StopHandle;

use self::core::{Core, WAKER};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};
use std::{error, fmt, io};

/// Listens to one or more publishers. See the [module's text](self).
///
/// Dropping it closes its connections and forgets what was not handed over; it waits for nothing, so it may be dropped in an
/// async task. (A host name that is being looked up goes on being looked up, on the thread of its own, until the system
/// answers.)
pub struct Subscriber {
    core: Core,
    stop: StopHandle,
}

/// Why nothing was received.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecvError {
    /// Nothing has arrived (within the given time).
    Empty,
    /// The subscriber was stopped by its [`StopHandle`].
    Stopped,
    /// The system failed. The subscriber may be asked again.
    System(io::Error),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Empty => f.write_str("nothing has arrived"),
            RecvError::Stopped => f.write_str("the subscriber was stopped"),
            RecvError::System(cause) => write!(f, "receiving failed: {cause}"),
        }
    }
}

impl error::Error for RecvError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            // Said already.
            RecvError::System(cause) => cause.source(),
            RecvError::Empty | RecvError::Stopped => None,
        }
    }
}

/// Deliveries passed over (an exact topic keeps them out) after which a call says that there is nothing.
const PASSED_OVER: u32 = 1024;

impl Subscriber {
    /// Connects to every endpoint (`tcp://host:port` or `ipc://path`), each named once. No publisher has to be there yet: it is
    /// tried until one is. Returns at once.
    ///
    /// # Errors
    ///
    /// An endpoint that can't be connected to, or a setting out of range, by name; nothing is left open then.
    pub fn connect<E: AsRef<str>>(
        endpoints: impl IntoIterator<Item = E>,
        settings: &Settings,
    ) -> Result<Self, ConnectError> {
        Subscriber::with(endpoints, settings, false)
    }

    /// Binds every endpoint (`tcp://address:port` or `ipc://path`), for publishers that connect. The port may be 0 or `*`,
    /// and the address `*` for all of this machine's: whoever reaches it can publish here then, which is logged.
    ///
    /// # Errors
    ///
    /// An endpoint that can't be bound, or a setting out of range, by name; nothing is left open then.
    pub fn bind<E: AsRef<str>>(
        endpoints: impl IntoIterator<Item = E>,
        settings: &Settings,
    ) -> Result<Self, ConnectError> {
        Subscriber::with(endpoints, settings, true)
    }

    fn with<E: AsRef<str>>(
        endpoints: impl IntoIterator<Item = E>,
        settings: &Settings,
        ours: bool,
    ) -> Result<Self, ConnectError> {
        settings.check()?;
        let names: Vec<E> = endpoints.into_iter().collect();
        let first = names.first().ok_or(ConnectError::NoEndpoint)?.as_ref();
        crate::os::prove(crate::os::Needs::subscriber(names.len()))?;
        let system = |cause| ConnectError::System { endpoint: first.to_owned(), cause };
        let core = Core::new(settings).map_err(system)?;
        let stop = StopHandle::new(core.registry(), WAKER).map_err(system)?;
        let mut subscriber = Subscriber { core, stop };
        for name in &names {
            subscriber.core.add(name.as_ref(), ours)?;
        }
        Ok(subscriber)
    }

    /// Connects to one more endpoint.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Subscriber::connect); what is there already stays.
    pub fn add(&mut self, endpoint: &str) -> Result<(), ConnectError> {
        crate::os::prove(crate::os::Needs::endpoints(1))?;
        self.core.add(endpoint, false)
    }

    /// Binds one more endpoint.
    ///
    /// # Errors
    ///
    /// As for [`bind`](Subscriber::bind); what is there already stays.
    pub fn add_bound(&mut self, endpoint: &str) -> Result<(), ConnectError> {
        crate::os::prove(crate::os::Needs::endpoints(1))?;
        self.core.add(endpoint, true)
    }

    /// Lets go of an endpoint, by the name it was given, with all connections and figures of it. What it has said and was
    /// not handed over yet still is. Returns whether it was there.
    pub fn remove(&mut self, endpoint: &str) -> bool {
        self.core.remove(endpoint)
    }

    /// The endpoints, in the order in which they were added; of those that were bound, where that is, with the real port.
    pub fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.core.endpoints().map(endpoint::Endpoint::bound)
    }

    /// The next delivery; waits until there is one.
    ///
    /// # Errors
    ///
    /// [`RecvError::Stopped`] and [`RecvError::System`].
    pub fn recv(&mut self) -> Result<Delivery, RecvError> {
        self.wait_until(None)
    }

    /// The next delivery; waits for it until `timeout` is over.
    ///
    /// # Errors
    ///
    /// [`RecvError::Empty`] when the time is over, [`RecvError::Stopped`] and [`RecvError::System`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Delivery, RecvError> {
        // A time too far away to be told is no deadline.
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// The next delivery, if there is one. It does a bounded amount of work: where much is to be passed over it says that
    /// there is nothing, and [the descriptor](AsFd) is readable again at once.
    ///
    /// # Errors
    ///
    /// [`RecvError::Empty`] if there is none, [`RecvError::Stopped`] and [`RecvError::System`].
    pub fn try_recv(&mut self) -> Result<Delivery, RecvError> {
        let next = self.next();
        if matches!(next, Err(RecvError::Empty)) && self.core.is_active() {
            self.stop.wake();
        }
        next
    }

    fn next(&mut self) -> Result<Delivery, RecvError> {
        for _ in 0..PASSED_OVER {
            if self.stop.is_stopped() {
                return Err(RecvError::Stopped);
            }
            if let Some(delivery) = self.core.ready.pop_front() {
                return Ok(delivery);
            }
            if !self.core.step().map_err(RecvError::System)? {
                // What was due may have had something to say.
                return self.core.ready.pop_front().ok_or(RecvError::Empty);
            }
        }
        Err(RecvError::Empty)
    }

    /// When `try_recv` has to be called at the latest, if the descriptor does not become readable before.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.core.wake_at()
    }

    /// A handle that stops this subscriber from any thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// A handle that reads this subscriber's figures from any thread.
    #[must_use]
    pub fn status_handle(&self) -> StatusHandle {
        self.core.status.clone()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Delivery, RecvError> {
        loop {
            match self.next() {
                Err(RecvError::Empty) => {}
                other => return other,
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Err(RecvError::Empty);
            }
            if !self.core.is_active() {
                let until = deadline.into_iter().chain(self.core.wake_at()).min();
                // Rounded up, or the last millisecond would be spent spinning.
                let timeout = until.map(|until| until.saturating_duration_since(now).min(MAX_WAIT) + MILLISECOND);
                self.core.wait(timeout).map_err(RecvError::System)?;
            }
        }
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);
/// The longest that one poll lasts: a day, which every platform's timer holds.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// The descriptor to wait on; the [module's text](self) has the rule. It belongs to the subscriber and ends with it.
impl AsFd for Subscriber {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor belongs to `self.core`, which stays open for as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.core.fd()) }
    }
}

/// For what still takes a number, like tokio's `AsyncFd`.
impl AsRawFd for Subscriber {
    fn as_raw_fd(&self) -> RawFd {
        self.core.fd()
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<_> = self.endpoints().collect();
        f.debug_struct("Subscriber").field("endpoints", &endpoints).field("settings", &self.core.settings).finish()
    }
}
