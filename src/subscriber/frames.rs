//! One endpoint's socket, read a message at a time.

use super::delivery::Malformed;
use super::settings::{ConnectError, Settings, check_endpoint};
use std::io;

/// What came in, as far as the frames tell.
pub(super) enum Arrival {
    Message { topic: zmq::Message, sequence: u64, payload: zmq::Message },
    Malformed { bytes: usize, topic: zmq::Message, reason: Malformed },
}

pub(super) struct Socket(zmq::Socket);

impl Socket {
    pub(super) fn connect(context: &zmq::Context, endpoint: &str, settings: &Settings) -> Result<Self, ConnectError> {
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
            socket.connect(endpoint)?;
            Ok(socket)
        };
        match open() {
            Ok(socket) => Ok(Socket(socket)),
            Err(zmq::Error::EINVAL) => {
                let reason = "is no address: write it like tcp://127.0.0.1:5557 or ipc:///run/kv-events.sock";
                Err(ConnectError::BadEndpoint { endpoint: endpoint.to_owned(), reason })
            }
            Err(cause) => Err(ConnectError::System { endpoint: endpoint.to_owned(), cause: io_error(cause) }),
        }
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
        loop {
            match self.0.recv_msg(zmq::DONTWAIT) {
                Ok(frame) => return Ok(Some(frame)),
                Err(zmq::Error::EAGAIN) => return Ok(None),
                Err(zmq::Error::EINTR) => {}
                Err(cause) => return Err(io_error(cause)),
            }
        }
    }

    pub(super) fn poll_item(&self) -> zmq::PollItem<'_> {
        self.0.as_poll_item(zmq::POLLIN)
    }

    pub(super) fn fd(&self) -> Result<std::os::fd::RawFd, io::Error> {
        self.0.get_fd().map_err(io_error)
    }
}

/// Where libzmq's own error numbers begin (`ZMQ_HAUSNUMERO`); those below are the system's.
const FIRST_OF_LIBZMQ: i32 = 156_384_712;

pub(super) fn io_error(error: zmq::Error) -> io::Error {
    let number = error.to_raw();
    if number < FIRST_OF_LIBZMQ { io::Error::from_raw_os_error(number) } else { io::Error::other(error) }
}
