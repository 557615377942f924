//! A raw SUB socket.

use super::{Message, read_payload, wait_until};
use kv_events::{Config, Publisher};

/// The tenant of the probes that find out whether the subscription has arrived.
const PROBE: &str = "probe";

pub struct Sub {
    socket: zmq::Socket,
}

impl Sub {
    /// A subscriber of everything `publisher` sends from now on: probes until the subscription is known to be in force.
    pub fn of(publisher: &Publisher) -> Sub {
        let sub = Sub::connect(publisher.bound_endpoint().expect("a bound endpoint"));
        sub.join(publisher);
        sub
    }

    /// A connected subscriber whose subscription may not have arrived yet.
    pub fn connect(endpoint: &str) -> Sub {
        let socket = zmq::Context::new().socket(zmq::SUB).unwrap();
        socket.set_rcvhwm(0).unwrap();
        socket.set_linger(0).unwrap();
        socket.set_ipv6(endpoint.contains('[')).unwrap();
        socket.set_subscribe(b"").unwrap();
        socket.connect(endpoint).unwrap();
        Sub { socket }
    }

    fn join(&self, publisher: &Publisher) {
        for sent in 1.. {
            publisher.cleared(PROBE);
            let seen = self.try_next(100);
            if let Some(first) = seen {
                // The probes behind the first one seen are on their way.
                let mut left = sent - first.events.last().unwrap().number("event_id");
                while left > 0 {
                    left -= self.next().events.len() as u64;
                }
                return counted(publisher, sent);
            }
            assert!(sent < 600, "the subscription never arrived");
        }
    }

    pub fn try_next(&self, timeout_ms: i32) -> Option<Message> {
        self.socket.set_rcvtimeo(timeout_ms).unwrap();
        let frames = self.socket.recv_multipart(0).ok()?;
        let [topic, sequence, payload] = &frames[..] else { panic!("{} frames", frames.len()) };
        assert!(topic.is_empty(), "the topic is empty");
        let sequence = u64::from_be_bytes(sequence[..].try_into().expect("8 bytes of sequence"));
        Some(read_payload(sequence, payload))
    }

    pub fn next(&self) -> Message {
        self.try_next(60_000).expect("a message within a minute")
    }

    /// Messages until `count` events have come.
    pub fn events(&self, count: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut seen = 0;
        while seen < count {
            let message = self.next();
            seen += message.events.len();
            messages.push(message);
        }
        assert_eq!(seen, count, "{messages:?}");
        messages
    }
}

/// Waits until the status has `events` published events: it rises after the fact, which is after a subscriber may have
/// them.
pub fn counted(publisher: &Publisher, events: u64) {
    wait_until("they are counted", || publisher.status().published_events >= events);
}

/// A configuration on a free loopback port.
pub fn loopback() -> Config {
    super::config("tcp://127.0.0.1:0", "backend-0")
}
