//! How a publisher's messages leave the process: the trait that a transport implements, and one in memory.
//!
//! [`Publisher::start`](crate::Publisher::start) uses the transport that the settings name. A program may bring its own
//! ([`Publisher::start_with`](crate::Publisher::start_with)): to carry the stream over something else, or to test a master
//! without a socket. For the latter there is [`memory::Recorder`], which is here whatever the features are.
//!
//! A transport of one's own is one method, [`send`](Transport::send):
//!
//! ```
//! use kv_events::transport::{Message, SendError, Transport};
//! use kv_events::{Config, Publisher};
//! use std::sync::mpsc::{Sender, channel};
//! use std::time::Duration;
//!
//! struct Channel(Sender<(u64, Vec<u8>)>);
//!
//! impl Transport for Channel {
//!     fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
//!         let gone = |_| SendError::Broken("nobody reads the channel".to_owned());
//!         self.0.send((message.sequence(), message.payload())).map_err(gone)
//!     }
//! }
//!
//! let (sender, messages) = channel();
//! let publisher = Publisher::start_with(Config::new("channel", "master-0"), Channel(sender))?;
//! publisher.cleared("tenant-a");
//! let _ = publisher.stop(Duration::from_secs(5));
//! let (sequence, payload) = messages.recv()?;
//! assert_eq!((sequence, kv_events::decode::Batch::parse(&payload)?.len()), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod memory;

#[cfg(any(feature = "zmq", feature = "native"))]
mod condition;
#[cfg(feature = "native")]
pub(crate) mod native;
#[cfg(feature = "zmq")]
pub(crate) mod zmq;

use crate::error::StartError;
use crate::lockfree::Waker;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Carries messages out of the process. All methods are called on the publisher's sender thread, [`open`](Self::open) once
/// and before all others, [`close`](Self::close) once and after them; then it is dropped there.
///
/// None but `close` may wait: while the sender waits its queue fills up, and then events are evicted. A panic in one of them
/// ends the sender as [`SendError::Broken`] does, with the panic's text as the reason.
pub trait Transport: Send {
    /// Makes it ready to send, and says where it can be reached. By default there is nothing to do.
    ///
    /// # Errors
    ///
    /// Why the publisher cannot start. The transport is dropped without being closed.
    fn open(&mut self) -> Result<Opened, StartError> {
        Ok(Opened::default())
    }

    /// Sends one message, to whoever there is; one without events is one too. Never waits.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. What a transport drops for some receivers alone is no error: they see a jump in the numbers.
    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError>;

    /// Does what has to be done from time to time. Called before the first message and then, between messages, each time the
    /// returned interval is over; `None` for not again. Never waits.
    fn upkeep(&mut self) -> Option<Duration> {
        None
    }

    /// Sleeps while there is nothing to send, for `timeout` at most (`None`: without end), and meanwhile does what a transport
    /// has to do that waits for something of its own, for sockets say. Only called if [`Opened::wakes_by`] has told what ends
    /// it; without that the sender sleeps by itself. May return early.
    fn wait(&mut self, timeout: Option<Duration>) {
        let _ = timeout;
    }

    /// Closes, after the last message. May wait for `linger`, until what was sent has been fetched.
    fn close(&mut self, linger: Duration) {
        let _ = linger;
    }
}

impl<X: Transport + ?Sized> Transport for Box<X> {
    fn open(&mut self) -> Result<Opened, StartError> {
        (**self).open()
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        (**self).send(message)
    }

    fn upkeep(&mut self) -> Option<Duration> {
        (**self).upkeep()
    }

    fn wait(&mut self, timeout: Option<Duration>) {
        (**self).wait(timeout);
    }

    fn close(&mut self, linger: Duration) {
        (**self).close(linger);
    }
}

/// One message, to be sent as three frames: an empty topic, the sequence as 8 bytes (big endian), the payload.
pub struct Message<'a> {
    sequence: u64,
    events: u64,
    waiting: u64,
    len: usize,
    fill: &'a dyn Fn(&mut [u8]),
}

impl<'a> Message<'a> {
    /// A message of `events` events, whose payload has `len` bytes and is written by `fill` over that many, the same
    /// however often it is asked.
    pub fn new(sequence: u64, events: u64, len: usize, fill: &'a dyn Fn(&mut [u8])) -> Self {
        Message { sequence, events, waiting: 0, len, fill }
    }

    /// The same with `waiting` events in the queue behind it.
    #[must_use]
    pub fn before(self, waiting: u64) -> Self {
        Message { waiting, ..self }
    }

    /// Its number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Events in it; 0 if it only tells that the publisher is alive, or of a loss.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Events that were in the queue behind it when it was made. If there are any, another message or a call of
    /// [`Transport::wait`] follows at once: a transport may put off what it can do better for several messages.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Length of the payload, bytes.
    pub fn payload_len(&self) -> usize {
        self.len
    }

    /// Writes the payload.
    ///
    /// # Panics
    ///
    /// If `place` is not [`payload_len`](Self::payload_len) bytes long.
    pub fn write_payload(&self, place: &mut [u8]) {
        assert_eq!(place.len(), self.len, "the place is as long as the payload");
        (self.fill)(place);
    }

    /// A copy of the payload.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut payload = vec![0; self.len];
        (self.fill)(&mut payload);
        payload
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Message { sequence, events, len, .. } = self;
        f.debug_struct("Message")
            .field("sequence", sequence)
            .field("events", events)
            .field("payload_len", len)
            .finish_non_exhaustive()
    }
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Nothing of it left; the next one may. Its events are counted as failed, and subscribers see a gap.
    Failed(String),
    /// The transport cannot be used any more: part of the message may have left, or the socket is gone. The sender ends,
    /// with this as its reason.
    Broken(String),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Failed(cause) => write!(f, "the message was not sent: {cause}"),
            SendError::Broken(cause) => write!(f, "nothing can be sent any more: {cause}"),
        }
    }
}

impl std::error::Error for SendError {}

/// What is known of a transport that is ready to send.
#[derive(Clone, Default)]
pub struct Opened {
    pub(crate) endpoint: String,
    pub(crate) send_hwm: u64,
    pub(crate) report: Option<Arc<dyn Fn() -> Report + Send + Sync>>,
    pub(crate) waker: Option<Waker>,
}

impl Opened {
    /// Ready at `endpoint`, the one really bound.
    pub fn at(endpoint: impl Into<String>) -> Self {
        Opened { endpoint: endpoint.into(), ..Opened::default() }
    }

    /// The most messages that wait for one receiver, for [`Status::send_hwm`](crate::Status::send_hwm); 0 if that has no
    /// limit, which is the default.
    #[must_use]
    pub fn send_hwm(mut self, messages: u64) -> Self {
        self.send_hwm = messages;
        self
    }

    /// How the transport is doing, called whenever the publisher's status is read, on any thread.
    #[must_use]
    pub fn report(mut self, report: impl Fn() -> Report + Send + Sync + 'static) -> Self {
        self.report = Some(Arc::new(report));
        self
    }

    /// Has the sender sleep in [`Transport::wait`], which `wake` ends: also if it is called before that began. It is called
    /// by the callers' threads, in the middle of a call, so it must neither wait nor allocate.
    #[must_use]
    pub fn wakes_by(mut self, wake: impl Fn() + Send + Sync + 'static) -> Self {
        self.waker = Some(Waker::new(wake));
        self
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opened { endpoint, send_hwm, .. } = self;
        f.debug_struct("Opened").field("endpoint", endpoint).field("send_hwm", send_hwm).finish_non_exhaustive()
    }
}

/// How a transport is doing: what it tells of itself in a publisher's [`Status`](crate::Status).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Connections refused since their address is not allowed.
    pub refused_peers: u64,
    /// How often something began to keep new receivers out.
    pub endpoint_faults: u64,
    /// What keeps them out now.
    pub endpoint_fault: Option<String>,
    /// Connections closed for want of a descriptor, for a limit, or for what they said.
    pub refused_connections: u64,
    /// Messages that a receiver did not get since too many waited for it; each counts once for each of them.
    pub peer_dropped_messages: u64,
    /// Events in those messages.
    pub peer_dropped_events: u64,
    /// Those who receive now.
    pub peers: Vec<PeerReport>,
}

/// How one receiver is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PeerReport {
    /// Where it connects from.
    pub address: String,
    /// When it connected, ms since the epoch.
    pub since_ms: u64,
    /// Messages that wait for it.
    pub queued_messages: u64,
    /// Bytes in those messages.
    pub queued_bytes: u64,
    /// Bytes that the system has taken for it.
    pub sent_bytes: u64,
    /// Messages that it did not get, since too many waited for it.
    pub dropped_messages: u64,
    /// Events in those messages.
    pub dropped_events: u64,
}
