//! Listens to publishers over ZeroMQ and tells loss from order. Feature `zmq`, on Unix: its wait ends by a
//! descriptor.
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
//! own.
//!
//! # No thread of its own
//!
//! A subscriber owns its sockets, one for each endpoint (one socket connected to all of them could not tell whose message
//! it is), and is polled by its caller: routers have their own threads or an async runtime, and a thread in between would
//! be one more queue with one more limit at which to lose messages silently. Call [`recv`](Subscriber::recv) in a thread
//! of yours, or [`recv_timeout`](Subscriber::recv_timeout), or [`try_recv`](Subscriber::try_recv) in a loop of yours.
//! [`StopHandle`] ends a wait from another thread, [`StatusHandle`] reads the figures from one.
//!
//! # Under an async runtime
//!
//! [`fds`](Subscriber::fds) gives the file descriptors that become readable when there may be something to receive, for
//! tokio's `AsyncFd` and its like. There is no `Stream` here, since it would tie this crate to a runtime for what is a
//! dozen lines on your side. The rule, which is libzmq's: these descriptors are **edge-triggered**. They tell that
//! something changed, not that there is something left. So:
//!
//! 1. register them for reading, and only for waiting: never read from them;
//! 2. call `try_recv` until it says [`Empty`](RecvError::Empty), *then* wait for any of them, then clear the readiness
//!    and begin again. Stopping earlier, or waiting before the first round, can leave messages unseen until the next one;
//! 3. wait no longer than a few seconds at a time: a connection that libzmq gave up (see below) is mended in `try_recv`.
//!
//! # Keep asking
//!
//! Part of libzmq's work is done inside these calls: after a connection was lost and found again, the subscription is
//! sent by the next call, and what was published before that is missed. A reader that is busy for long, say with a
//! snapshot, should go on receiving and hold the messages back.
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
//! - Whether a silent publisher has nothing to say or hangs. Whether it is connected, [`SourceStatus`] tells; libzmq
//!   connects, and connects again, by itself and for ever.
//!
//! # What arrives ends no connection
//!
//! Malformed input is counted, told and logged (the 1st, 10th, 100th ... of a source), and that is all. The one exception
//! is a frame larger than [`Settings::max_frame_bytes`]: libzmq hangs up on it, and would never call again, so a
//! connection that is lost and not found again within a second is made anew here.

mod counters;
mod delivery;
mod endpoint;
mod frames;
mod settings;
mod stop;

pub use counters::{SourceStatus, StatusHandle};
pub use delivery::{Delivery, Malformed, Message, Source};
pub use settings::{ConnectError, Settings, TopicFilter};
pub use stop::StopHandle;

use endpoint::Endpoint;
use frames::io_error;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use std::{error, fmt, io};

/// Listens to one or more publishers. See the [module's text](self).
pub struct Subscriber {
    endpoints: Vec<Endpoint>,
    /// The endpoint to ask next, so that a busy one can't keep the others from being heard.
    next: usize,
    /// What the last message read has to say and is not handed over yet.
    ready: VecDeque<Delivery>,
    settings: Settings,
    status: StatusHandle,
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
    /// The system or libzmq failed. The subscriber may be asked again.
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

impl Subscriber {
    /// Connects to every endpoint (`tcp://host:port` or `ipc://path`), each named once. Nobody has to be there yet:
    /// libzmq tries until somebody is.
    ///
    /// # Errors
    ///
    /// An endpoint that can't be connected to, or a setting out of range, by name; nothing is left open then.
    pub fn connect<E: AsRef<str>>(
        endpoints: impl IntoIterator<Item = E>,
        settings: &Settings,
    ) -> Result<Self, ConnectError> {
        if settings.max_topics == 0 {
            return Err(ConnectError::BadSetting { setting: "max_topics", reason: "is at least 1" });
        }
        let names: Vec<E> = endpoints.into_iter().collect();
        crate::os::prove(crate::os::Needs::subscriber(names.len()))?;
        let context = zmq::Context::new();
        let status = StatusHandle::new();
        let mut connected: Vec<Endpoint> = Vec::new();
        for name in &names {
            let name = name.as_ref();
            if connected.iter().any(|other| other.name == name) {
                return Err(ConnectError::Twice { endpoint: name.to_owned() });
            }
            connected.push(Endpoint::connect(&context, connected.len(), name, settings, &status)?);
        }
        let Some(first) = connected.first() else { return Err(ConnectError::NoEndpoint) };
        let stop = StopHandle::new().map_err(|cause| ConnectError::System { endpoint: first.name.clone(), cause })?;
        let settings = settings.clone();
        Ok(Subscriber { endpoints: connected, next: 0, ready: VecDeque::new(), settings, status, stop })
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

    /// The next delivery, if there is one.
    ///
    /// # Errors
    ///
    /// [`RecvError::Empty`] if there is none, [`RecvError::Stopped`] and [`RecvError::System`].
    pub fn try_recv(&mut self) -> Result<Delivery, RecvError> {
        self.next_by(None)
    }

    /// The next delivery, if there is one. Messages that an exact topic keeps out are passed over, until `deadline`.
    fn next_by(&mut self, deadline: Option<Instant>) -> Result<Delivery, RecvError> {
        loop {
            if self.stop.is_stopped() {
                return Err(RecvError::Stopped);
            }
            if let Some(delivery) = self.ready.pop_front() {
                return Ok(delivery);
            }
            if !self.read_one().map_err(RecvError::System)? {
                let mended = self.endpoints.iter_mut().try_for_each(|endpoint| endpoint.socket.mend());
                return Err(mended.map_or_else(RecvError::System, |()| RecvError::Empty));
            }
            if self.ready.is_empty() && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(RecvError::Empty);
            }
        }
    }

    /// The descriptors to wait on, two for each endpoint and one that a [`StopHandle`] makes readable. They are
    /// edge-triggered; the [module's text](self) has the rule. They belong to the subscriber and end with it.
    ///
    /// # Errors
    ///
    /// What libzmq says.
    pub fn fds(&self) -> io::Result<Vec<RawFd>> {
        self.endpoints.iter().flat_map(|endpoint| endpoint.socket.fds()).chain([Ok(self.stop.fd())]).collect()
    }

    /// A handle that stops this subscriber from any thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// A handle that reads this subscriber's figures from any thread.
    #[must_use]
    pub fn status_handle(&self) -> StatusHandle {
        self.status.clone()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Delivery, RecvError> {
        loop {
            match self.next_by(deadline) {
                Err(RecvError::Empty) => {}
                other => return other,
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Err(RecvError::Empty);
            }
            let mend_at = self.endpoints.iter().filter_map(|endpoint| endpoint.socket.mend_at());
            let wait_ms = match deadline.into_iter().chain(mend_at).min() {
                None => -1,
                // Rounded up, or the last millisecond would be spent spinning.
                Some(until) => i64::try_from((until - now).as_millis())
                    .map_or(MAX_WAIT_MS, |ms| MAX_WAIT_MS.min(ms.saturating_add(1))),
            };
            let mut items: Vec<_> = self.endpoints.iter().flat_map(|endpoint| endpoint.socket.poll_items()).collect();
            items.push(zmq::PollItem::from_fd(self.stop.fd(), zmq::POLLIN));
            match zmq::poll(&mut items, wait_ms) {
                Ok(_) | Err(zmq::Error::EINTR) => {}
                Err(cause) => return Err(RecvError::System(io_error(cause))),
            }
        }
    }

    /// Reads one message of whichever endpoint has one, in turn, and notes what it says. `false` if there is none.
    fn read_one(&mut self) -> io::Result<bool> {
        for _ in 0..self.endpoints.len() {
            let index = self.next;
            self.next = (index + 1) % self.endpoints.len();
            let endpoint = &mut self.endpoints[index];
            if let Some(arrival) = endpoint.socket.receive()? {
                endpoint.note(arrival, &self.settings, &self.status, &mut self.ready);
                return Ok(true);
            }
            endpoint.socket.mend_now_and_then()?;
        }
        Ok(false)
    }
}

/// The longest that one poll lasts: a day, which every platform's timer holds.
const MAX_WAIT_MS: i64 = 86_400_000;

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<_> = self.endpoints.iter().map(|endpoint| &endpoint.name).collect();
        f.debug_struct("Subscriber").field("endpoints", &endpoints).field("settings", &self.settings).finish()
    }
}
