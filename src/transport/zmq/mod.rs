//! The PUB socket of libzmq: the only folder of the publisher that knows it.
//!
//! # Copies and allocations
//!
//! The topic is empty and the sequence has 8 bytes: ZeroMQ keeps both inside its message records and allocates nothing. The
//! payload is written straight into a message of its size, one `malloc` for each message whatever the number of events
//! or subscribers, freed by ZeroMQ when the last subscriber has it. Rust code allocates nothing.
//!
//! # Peers
//!
//! Whoever can connect can subscribe: the stream is not authenticated, so bind loopback or a network that is trusted, or
//! name who may connect (`kv_events_allow_peers`). What a peer that means no good costs:
//!
//! | it | costs | bounded by |
//! |---|---|---|
//! | sends garbage | nothing | hung up on, at the latest when the handshake should be over (10 s) |
//! | connects and stays silent | some 4 KiB and a descriptor for 10 s | the same; the process's limit of open files |
//! | announces a huge message | nothing | hung up on: above 256 bytes nothing is taken |
//! | comes and goes | some 30 KiB until the sender looks | the sender looks once a second when idle |
//! | never reads | `send_hwm` messages | [`Config::memory_bound`](crate::Config::memory_bound) |
//! | subscribes without end | ZeroMQ keeps every topic, some 30 times its size, until the peer goes | **nothing** |
//! | has more than 100 messages unread and a PING behind them, and resets the connection | **the process** | nothing |
//!
//! The last one is a fault of libzmq 4.3.4: it stops reading from a peer that has as many messages waiting as the inbound
//! mark allows; if the connection breaks then, and a PING of ZMTP 3.1 comes up when reading goes on, an assertion fails and
//! the process is aborted. A mark of one made that easy for honest peers. The mark is 100: a peer has to have sent more topics
//! than that before the sender looked, which takes a second when idle and a millisecond when it publishes. A larger
//! mark lets a flood of topics keep the sender from all else: from some 200 on, ZeroMQ reads them faster than the sender can
//! file them, and the sender never finds the end.
//!
//! How much memory that flood takes, and how much of the sender's time: `docs/operate.md`, "Who may connect", with the command
//! that measures it. Only who may connect bounds either.

mod payload;
mod peers;

use super::condition::{Condition, Watch};
use super::{Message, Opened, SendError, Transport};
use crate::config::Config;
use crate::endpoint::{self, Endpoint};
use crate::error::{EndpointError, StartError};
use crate::network::Network;
use crate::os::Needs;
use payload::Payload;
use std::ffi::CString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest message a peer may send us. A subscriber sends topic filters; the topic is empty.
const MAX_INBOUND: i64 = 256;
/// How long a peer may take to shake hands, ms.
const HANDSHAKE_MS: i32 = 10_000;
/// Connections the system may hold for us until they are accepted: with ZeroMQ's 100, many subscribers that come back
/// after a restart waits for seconds.
const BACKLOG: i32 = 1024;
/// Messages a peer may have waiting for the sender to look at. A subscriber sends one for each topic. See the module's
/// text for what happens beyond.
const INBOUND_HWM: i32 = 100;
/// What the system may hold of a peer's that ZeroMQ has not read, bytes (Linux takes twice as much). A subscriber sends a few
/// hundred bytes in its life; one that sends without end is slowed down by this.
const INBOUND_BYTES: i32 = 2048;
/// How often an idle sender lets ZeroMQ deal with peers that came and went, and any sender looks after its endpoint.
const UPKEEP: Duration = Duration::from_secs(1);
/// How often peers that wait to be let in are looked after.
const ANSWER: Duration = Duration::from_millis(50);
/// Likewise, while more of them wait than are answered in one go: many that are refused must not delay those that are not.
const ANSWER_BACKLOG: Duration = Duration::from_millis(2);

/// A PUB socket with a context of its own.
pub(crate) struct PubSocket {
    options: SocketOptions,
    bound: Option<Bound>,
}

/// Dropping it closes the socket and then waits for the context to end, for as long as the socket lingers.
struct Bound {
    /// Closed first: while it is there the filter is.
    socket: zmq::Socket,
    filter: Option<peers::PeerFilter>,
    watch: Watch,
    condition: Arc<Condition>,
    next_answer: Instant,
    /// More connections wait than one round answers.
    has_backlog: bool,
    next_look: Instant,
}

/// Settings of the socket; all are set before it binds, since ZeroMQ ignores them after.
#[derive(Clone, Debug)]
struct SocketOptions {
    endpoint: String,
    send_hwm: i32,
    linger: Duration,
    /// Who may connect; empty for anyone.
    allow_peers: Vec<Network>,
    /// When a vanished peer's connection is ended; zero for what the system does.
    keepalive: Duration,
    /// Where the socket tells how it is doing.
    condition: Arc<Condition>,
}

impl SocketOptions {
    /// What the settings, which have been found to be valid, say of the socket.
    fn of(config: &Config) -> Self {
        SocketOptions {
            endpoint: config.bind_endpoint.clone(),
            send_hwm: i32::try_from(config.send_hwm).unwrap_or(i32::MAX),
            linger: config.linger,
            allow_peers: config.allow_peers.iter().filter_map(|peer| Network::parse(peer)).collect(),
            keepalive: config.keepalive,
            condition: Arc::new(Condition::new()),
        }
    }
}

/// Binds a socket on the calling thread, which owns it from then on.
fn bind_here(options: &SocketOptions) -> Result<(Bound, Opened), StartError> {
    let failed = |cause| StartError::Endpoint { endpoint: options.endpoint.clone(), cause };
    let checked = endpoint::check(&options.endpoint).map_err(failed)?;
    let context = zmq::Context::new();
    let mut socket = configured(&context, options, &checked).map_err(|error| StartError::Socket(os_error(error)))?;
    let filter = if options.allow_peers.is_empty() {
        None
    } else {
        let filter =
            peers::PeerFilter::before(&socket, &context, options.allow_peers.clone(), Arc::clone(&options.condition));
        Some(filter.map_err(|error| StartError::Socket(os_error(error)))?)
    };
    bind(&mut socket, &options.endpoint).map_err(|error| failed(bind_error(&error)))?;
    let endpoint = match socket.get_last_endpoint() {
        Ok(Ok(endpoint)) => endpoint,
        Ok(Err(_)) => options.endpoint.clone(),
        Err(error) => return Err(StartError::Socket(os_error(error))),
    };
    let send_hwm = socket.get_sndhwm().map_err(|error| StartError::Socket(os_error(error)))?;
    keep_alive(&endpoint, options.keepalive);
    if !checked.local && filter.is_none() {
        crate::logging::warning!(
            "kv-events: {endpoint} can be reached from other machines, and the stream carries no authentication; \
             bind 127.0.0.1, or name who may connect in kv_events_allow_peers, unless the network is trusted"
        );
    }
    let (now, watch) = (Instant::now(), Watch::of(&endpoint));
    let condition = Arc::clone(&options.condition);
    let bound = Bound { socket, filter, watch, condition, next_answer: now, has_backlog: false, next_look: now };
    let condition = Arc::clone(&options.condition);
    Ok((bound, Opened::at(endpoint).send_hwm(send_hwm as u64).report(move || condition.report())))
}

/// Has what the socket accepts end with peers that vanish. `endpoint` is the one really bound.
#[cfg(unix)]
fn keep_alive(endpoint: &str, dead_after: Duration) {
    let Some(("tcp", address)) = endpoint.split_once("://").filter(|_| !dead_after.is_zero()) else { return };
    let parts = address.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // Behind % stands the interface of a link-local address.
        let ip = host.split_once('%').map_or(host, |(ip, _)| ip);
        Some((ip.parse().ok()?, port.parse().ok()?))
    });
    let listener = parts.and_then(|(ip, port)| crate::os::keepalive::listener(ip, port));
    let set = match listener {
        Some(listener) => crate::os::keepalive::keep_alive(listener, dead_after),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    if let Err(error) = set {
        crate::logging::warning!("kv-events: TCP keepalive could not be set for {endpoint}: {error}");
    }
}

/// Elsewhere that is left to libzmq and the system.
#[cfg(not(unix))]
fn keep_alive(_: &str, _: Duration) {}

fn configured(context: &zmq::Context, options: &SocketOptions, endpoint: &Endpoint) -> zmq::Result<zmq::Socket> {
    let socket = context.socket(zmq::PUB)?;
    socket.set_sndhwm(options.send_hwm)?;
    socket.set_linger(millis(options.linger))?;
    socket.set_ipv6(endpoint.ipv6)?;
    socket.set_rcvhwm(INBOUND_HWM)?;
    socket.set_rcvbuf(INBOUND_BYTES)?;
    socket.set_backlog(BACKLOG)?;
    socket.set_maxmsgsize(MAX_INBOUND)?;
    socket.set_handshake_ivl(HANDSHAKE_MS)?;
    Ok(socket)
}

impl PubSocket {
    /// What the settings, which have been found to be valid, say.
    pub(crate) fn of(config: &Config) -> Self {
        PubSocket { options: SocketOptions::of(config), bound: None }
    }

    /// What the socket takes: with a list of peers a second socket with its wake-up channel, and one descriptor for a
    /// moment, to find the listener.
    pub(crate) fn needs(&self) -> Needs {
        Needs::publisher(1 + if self.options.allow_peers.is_empty() { 0 } else { 2 })
    }
}

impl Bound {
    fn answer_interval(&self) -> Duration {
        if self.has_backlog { ANSWER_BACKLOG } else { ANSWER }
    }

    /// Lets in who may come in, and looks after the endpoint, each when its time has come.
    fn look_after(&mut self, now: Instant) {
        if let Some(filter) = self.filter.as_ref().filter(|_| now >= self.next_answer) {
            self.has_backlog = filter.answer();
            self.next_answer = now + self.answer_interval();
        }
        if now >= self.next_look {
            self.condition.note(self.watch.look());
            self.next_look = now + UPKEEP;
        }
    }
}

impl Transport for PubSocket {
    fn open(&mut self) -> Result<Opened, StartError> {
        // A panic would end the sender's thread, and nobody would hear of what.
        let opened = catch_unwind(AssertUnwindSafe(|| bind_here(&self.options))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(StartError::Socket(io::Error::other(format!("a panic: {}", text.unwrap_or("of no text")))))
        });
        let (bound, opened) = opened?;
        self.bound = Some(bound);
        Ok(opened)
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        let Some(bound) = &mut self.bound else { return Err(SendError::Broken("the socket is not open".to_owned())) };
        // Before the first frame, since a message that has begun must be finished.
        let len = message.payload_len();
        let mut payload = Payload::with_size(len)
            .map_err(|error| SendError::Failed(format!("there is no room for a message of {len} bytes: {error}")))?;
        message.write_payload(payload.bytes());
        let socket = &mut bound.socket;
        send_frames(|frame| match frame {
            Frame::Topic => socket.send(zmq::Message::new(), zmq::DONTWAIT | zmq::SNDMORE),
            Frame::Sequence => socket.send(&message.sequence().to_be_bytes()[..], zmq::DONTWAIT | zmq::SNDMORE),
            Frame::Payload => payload.send(socket),
        })
    }

    /// ZeroMQ leaves what it holds for a peer that has gone (some 30 KiB) until the socket is used again. Asking for the
    /// socket's events is the least of uses.
    fn upkeep(&mut self) -> Option<Duration> {
        let bound = self.bound.as_mut()?;
        // Nothing to be done about an error; the next send meets it too.
        let _ = bound.socket.get_events();
        bound.look_after(Instant::now());
        Some(if bound.filter.is_some() { bound.answer_interval() } else { UPKEEP })
    }

    fn close(&mut self, linger: Duration) {
        let Some(bound) = self.bound.take() else { return };
        if let Err(error) = bound.socket.set_linger(millis(linger)) {
            crate::logging::warning!("kv-events: the socket's linger could not be set: {error}");
        }
    }
}

/// The three frames of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Topic,
    Sequence,
    Payload,
}

/// Sends the frames of one message, each again if a signal interrupted it. One that fails at its first frame has not begun; one that fails later can neither be
/// finished nor taken back, and the socket must not be used again, lest other frames are glued to it.
fn send_frames(mut send: impl FnMut(Frame) -> zmq::Result<()>) -> Result<(), SendError> {
    for frame in [Frame::Topic, Frame::Sequence, Frame::Payload] {
        match retry_interrupted(|| send(frame)) {
            Ok(()) => {}
            Err(error @ (zmq::Error::ETERM | zmq::Error::ENOTSOCK)) => {
                return Err(SendError::Broken(format!("the socket is gone: {error}")));
            }
            Err(error) if frame == Frame::Topic => return Err(SendError::Failed(error.to_string())),
            Err(error) => return Err(SendError::Broken(format!("a message failed at its {frame:?} frame: {error}"))),
        }
    }
    Ok(())
}

fn retry_interrupted(mut send: impl FnMut() -> zmq::Result<()>) -> zmq::Result<()> {
    loop {
        match send() {
            Err(zmq::Error::EINTR) => {}
            outcome => return outcome,
        }
    }
}

/// As the wrapper's own, which panics where the system's answer is one that it does not know (a file system that is
/// read-only, say).
fn bind(socket: &mut zmq::Socket, endpoint: &str) -> io::Result<()> {
    let endpoint = CString::new(endpoint)?;
    // SAFETY: the socket is alive and used by this thread alone; the name ends with a NUL and is only read.
    match unsafe { zmq_sys::zmq_bind(socket.as_mut_ptr(), endpoint.as_ptr()) } {
        0 => Ok(()),
        // SAFETY: only reads the number that the call above has left to this thread.
        _ => Err(io::Error::from_raw_os_error(unsafe { zmq_sys::zmq_errno() })),
    }
}

fn bind_error(error: &io::Error) -> EndpointError {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => EndpointError::InUse,
        Some(libc::ENODEV | libc::EADDRNOTAVAIL) => EndpointError::NotLocal,
        Some(libc::EINVAL) => EndpointError::Malformed("ZeroMQ does not take it"),
        Some(libc::EPROTONOSUPPORT) => EndpointError::Malformed("this build does not support its transport"),
        _ => EndpointError::Other(error.to_string()),
    }
}

fn os_error(error: zmq::Error) -> io::Error {
    io::Error::from_raw_os_error(error.to_raw())
}

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail_at(frame: Frame, error: zmq::Error) -> (Vec<Frame>, Result<(), SendError>) {
        let mut sent = Vec::new();
        let outcome = send_frames(|next| {
            sent.push(next);
            if next == frame { Err(error) } else { Ok(()) }
        });
        (sent, outcome)
    }

    #[test]
    fn a_message_that_fails_at_its_first_frame_can_be_forgotten() {
        let (sent, outcome) = fail_at(Frame::Topic, zmq::Error::EAGAIN);
        assert_eq!(sent, [Frame::Topic]);
        assert!(matches!(outcome, Err(SendError::Failed(_))), "{outcome:?}");
    }

    #[test]
    fn a_message_that_fails_between_its_frames_breaks_the_socket() {
        for frame in [Frame::Sequence, Frame::Payload] {
            let (sent, outcome) = fail_at(frame, zmq::Error::EAGAIN);
            assert_eq!(sent.last(), Some(&frame), "nothing is sent after the failure");
            assert!(matches!(&outcome, Err(SendError::Broken(why)) if why.contains("frame")), "{outcome:?}");
        }
    }

    #[test]
    fn a_socket_that_is_gone_is_broken_at_any_frame() {
        for error in [zmq::Error::ETERM, zmq::Error::ENOTSOCK] {
            for frame in [Frame::Topic, Frame::Sequence, Frame::Payload] {
                let (sent, outcome) = fail_at(frame, error);
                assert_eq!(sent.last(), Some(&frame), "nothing is sent after the failure");
                let gone = format!("the socket is gone: {error}");
                assert_eq!(outcome, Err(SendError::Broken(gone)), "{frame:?}");
            }
        }
    }

    #[test]
    fn an_interrupted_frame_is_sent_again() {
        let mut asked = Vec::new();
        let outcome = send_frames(|frame| {
            asked.push(frame);
            if asked.len() % 3 == 0 { Ok(()) } else { Err(zmq::Error::EINTR) }
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(asked, [[Frame::Topic; 3], [Frame::Sequence; 3], [Frame::Payload; 3]].concat());
    }

    #[test]
    fn every_option_of_the_socket_is_set() {
        let config = Config::new("tcp://[::1]:0", "b").send_hwm(77).linger(Duration::from_millis(88));
        let options = SocketOptions::of(&config);
        let endpoint = endpoint::check(&options.endpoint).unwrap();
        let socket = configured(&zmq::Context::new(), &options, &endpoint).unwrap();
        assert_eq!((socket.get_sndhwm(), socket.get_linger(), socket.is_ipv6()), (Ok(77), Ok(88), Ok(true)));
        assert_eq!((socket.get_rcvhwm(), socket.get_rcvbuf()), (Ok(100), Ok(2048)));
        assert_eq!((socket.get_backlog(), socket.get_maxmsgsize()), (Ok(1024), Ok(256)));
        assert_eq!(socket.get_handshake_ivl(), Ok(10_000));
    }
}
