//! The subscriber's socket. It shares nothing with the publisher but the wire.

use super::progress::Progress;
use simulated_master::follower::Message;
use simulated_master::session::Source;
use std::time::Instant;

/// Messages taken in one go.
const IN_HAND: usize = 1024;

/// A SUB socket without a high-water mark, so that nothing is lost on the way.
pub struct Subscriber {
    socket: zmq::Socket,
    /// What times of arrival are relative to.
    pub start: Instant,
    /// Moved on whenever messages are looked for.
    pub progress: Progress,
}

impl Subscriber {
    pub fn connect(endpoint: &str, progress: Progress) -> anyhow::Result<Self> {
        // libzmq ends the process where it cannot have what it takes.
        kv_events::internals::prove(kv_events::internals::Needs::SOCKET)?;
        let socket = zmq::Context::new().socket(zmq::SUB)?;
        socket.set_rcvhwm(0)?;
        socket.set_linger(0)?;
        socket.set_ipv6(endpoint.contains('['))?;
        socket.set_subscribe(b"")?;
        socket.connect(endpoint)?;
        Ok(Subscriber { socket, start: Instant::now(), progress })
    }

    /// The next message, if one is there.
    fn receive_one(&self) -> Result<Option<Message<zmq::Message>>, String> {
        let topic = match self.socket.recv_msg(zmq::DONTWAIT) {
            Ok(topic) => topic,
            Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(None),
            Err(error) => return Err(format!("the subscriber's socket failed: {error}")),
        };
        let arrived_ns = self.start.elapsed().as_nanos() as u64;
        let mut frames = vec![topic];
        while frames.last().is_some_and(zmq::Message::get_more) {
            // The parts of a message come together, so this waits for nothing.
            match self.socket.recv_msg(0) {
                Ok(frame) => frames.push(frame),
                Err(zmq::Error::EINTR) => {}
                Err(error) => return Err(format!("the subscriber's socket failed: {error}")),
            }
        }
        let sizes: Vec<usize> = frames.iter().map(|frame| frame.len()).collect();
        let malformed = || format!("a message is not an empty topic, 8 bytes and a payload, but of {sizes:?} bytes");
        let [topic, sequence, payload] = <[zmq::Message; 3]>::try_from(frames).map_err(|_| malformed())?;
        match <[u8; 8]>::try_from(&*sequence) {
            Ok(sequence) if topic.is_empty() => {
                Ok(Some(Message { sequence: u64::from_be_bytes(sequence), payload, arrived_ns }))
            }
            _ => Err(malformed()),
        }
    }
}

impl Source for Subscriber {
    type Payload = zmq::Message;

    fn receive(&mut self, in_hand: &mut Vec<Message<zmq::Message>>) -> Result<(), String> {
        self.progress.tick();
        match self.socket.poll(zmq::POLLIN, 1) {
            Ok(_) | Err(zmq::Error::EINTR) => {}
            Err(error) => return Err(format!("the subscriber's socket failed: {error}")),
        }
        while in_hand.len() < IN_HAND {
            match self.receive_one()? {
                Some(message) => in_hand.push(message),
                None => break,
            }
        }
        Ok(())
    }
}
