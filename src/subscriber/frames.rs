//! One endpoint's socket, read a message at a time.

use super::counters::ConnectionFigures;
use super::delivery::Malformed;
use super::settings::{ConnectError, Settings, check_endpoint};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What came in, as far as the frames tell.
pub(super) enum Arrival {
    Message { topic: zmq::Message, sequence: u64, payload: zmq::Message },
    Malformed { bytes: usize, topic: zmq::Message, reason: Malformed },
}

/// How long libzmq has to connect again by itself before the connection is taken for given up.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Socket {
    socket: zmq::Socket,
    /// Tells of connections made and lost.
    monitor: zmq::Socket,
    endpoint: String,
    figures: Arc<ConnectionFigures>,
    is_connected: bool,
    lost_at: Option<Instant>,
    looked_at: Instant,
}

impl Socket {
    pub(super) fn connect(
        context: &zmq::Context,
        index: usize,
        endpoint: &str,
        settings: &Settings,
        figures: Arc<ConnectionFigures>,
    ) -> Result<Self, ConnectError> {
        check_endpoint(endpoint)
            .map_err(|reason| ConnectError::BadEndpoint { endpoint: endpoint.to_owned(), reason })?;
        let receive_hwm = i32::try_from(settings.receive_hwm)
            .map_err(|_| ConnectError::BadSetting { setting: "receive_hwm", reason: "is at most 2147483647" })?;
        let open = || {
            let socket = context.socket(zmq::SUB)?;
            socket.set_linger(0)?;
            socket.set_rcvhwm(receive_hwm)?;
            socket.set_maxmsgsize(settings.max_frame_bytes.map_or(-1, i64::from))?;
            socket.set_ipv6(endpoint.contains('['))?;
            socket.set_subscribe(settings.topic.subscription())?;
            let events = zmq::SocketEvent::HANDSHAKE_SUCCEEDED.to_raw() | zmq::SocketEvent::DISCONNECTED.to_raw();
            let address = format!("inproc://monitor-{index}");
            socket.monitor(&address, events.into())?;
            let monitor = context.socket(zmq::PAIR)?;
            monitor.set_linger(0)?;
            // Or libzmq's own thread would wait for us to read.
            monitor.set_rcvhwm(0)?;
            monitor.connect(&address)?;
            socket.connect(endpoint)?;
            Ok((socket, monitor))
        };
        match open() {
            Ok((socket, monitor)) => Ok(Socket {
                socket,
                monitor,
                endpoint: endpoint.to_owned(),
                figures,
                is_connected: false,
                lost_at: None,
                looked_at: Instant::now(),
            }),
            Err(zmq::Error::EINVAL) => {
                let reason = "is no address: write it like tcp://127.0.0.1:5557 or ipc:///run/kv-events.sock";
                Err(ConnectError::BadEndpoint { endpoint: endpoint.to_owned(), reason })
            }
            Err(cause) => Err(ConnectError::System { endpoint: endpoint.to_owned(), cause: io_error(cause) }),
        }
    }

    /// Does [`mend`](Socket::mend) if that was not done lately: for one endpoint that is silent among others that aren't.
    pub(super) fn mend_now_and_then(&mut self) -> Result<(), io::Error> {
        if self.looked_at.elapsed() < GIVEN_UP_AFTER / 10 { Ok(()) } else { self.mend() }
    }

    /// Takes note of connections made and lost, and mends one that libzmq has given up: it does so when a frame is
    /// larger than allowed, and says nothing. To be called when nothing is left to receive, since what the old
    /// connection holds is lost with it.
    pub(super) fn mend(&mut self) -> Result<(), io::Error> {
        self.looked_at = Instant::now();
        while let Some(event) = receive_frame(&self.monitor)? {
            let number = event.first_chunk().map(|number| u16::from_ne_bytes(*number));
            let mut more = event.get_more();
            while more {
                more = receive_frame(&self.monitor)?.is_some_and(|frame| frame.get_more());
            }
            match number.map(zmq::SocketEvent::from_raw) {
                Some(zmq::SocketEvent::HANDSHAKE_SUCCEEDED) => {
                    self.lost_at = None;
                    self.is_connected = true;
                    self.figures.connections.add(1);
                }
                Some(zmq::SocketEvent::DISCONNECTED) => {
                    self.lost_at = Some(Instant::now());
                    // libzmq says so of a handshake that failed as well.
                    if std::mem::take(&mut self.is_connected) {
                        self.figures.disconnections.add(1);
                    }
                }
                _ => {}
            }
        }
        if self.lost_at.is_some_and(|lost_at| lost_at.elapsed() >= GIVEN_UP_AFTER) {
            self.lost_at = None;
            // If libzmq is still at it after all, this begins anew what has not succeeded yet.
            match self.socket.disconnect(&self.endpoint) {
                Ok(()) | Err(zmq::Error::ENOENT) => {}
                Err(cause) => return Err(io_error(cause)),
            }
            self.socket.connect(&self.endpoint).map_err(io_error)?;
        }
        Ok(())
    }

    /// When [`mend`](Socket::mend) has something to do even if nothing happens.
    pub(super) fn mend_at(&self) -> Option<Instant> {
        self.lost_at.map(|lost_at| lost_at + GIVEN_UP_AFTER)
    }

    /// The next thing that has arrived, without waiting.
    pub(super) fn receive(&self) -> Result<Option<Arrival>, io::Error> {
        let Some(topic) = self.frame()? else { return Ok(None) };
        let mut bytes = topic.len();
        let mut more = topic.get_more();
        let mut kept: [Option<zmq::Message>; 2] = [None, None];
        let mut frames = 1;
        // All frames of a message arrive together, and there may be any number of them: only three are of use.
        while more {
            let Some(frame) = self.frame()? else { break };
            more = frame.get_more();
            bytes += frame.len();
            if let Some(slot) = kept.get_mut(frames - 1) {
                *slot = Some(frame);
            }
            frames += 1;
        }
        Ok(Some(match kept {
            [Some(sequence), Some(payload)] if frames == 3 => match <[u8; 8]>::try_from(&sequence[..]) {
                Ok(number) => Arrival::Message { topic, sequence: u64::from_be_bytes(number), payload },
                Err(_) => Arrival::Malformed { bytes, topic, reason: Malformed::SequenceLength(sequence.len()) },
            },
            _ => Arrival::Malformed { bytes, topic, reason: Malformed::Frames(frames) },
        }))
    }

    fn frame(&self) -> Result<Option<zmq::Message>, io::Error> {
        receive_frame(&self.socket)
    }

    pub(super) fn poll_items(&self) -> [zmq::PollItem<'_>; 2] {
        [self.socket.as_poll_item(zmq::POLLIN), self.monitor.as_poll_item(zmq::POLLIN)]
    }

    pub(super) fn fds(&self) -> [Result<RawFd, io::Error>; 2] {
        [self.socket.get_fd().map_err(io_error), self.monitor.get_fd().map_err(io_error)]
    }
}

fn receive_frame(socket: &zmq::Socket) -> Result<Option<zmq::Message>, io::Error> {
    loop {
        match socket.recv_msg(zmq::DONTWAIT) {
            Ok(frame) => return Ok(Some(frame)),
            Err(zmq::Error::EAGAIN) => return Ok(None),
            Err(zmq::Error::EINTR) => {}
            Err(cause) => return Err(io_error(cause)),
        }
    }
}

/// Where libzmq's own error numbers begin (`ZMQ_HAUSNUMERO`); those below are the system's.
const FIRST_OF_LIBZMQ: i32 = 156_384_712;

pub(super) fn io_error(error: zmq::Error) -> io::Error {
    let number = error.to_raw();
    if number < FIRST_OF_LIBZMQ { io::Error::from_raw_os_error(number) } else { io::Error::other(error) }
}
