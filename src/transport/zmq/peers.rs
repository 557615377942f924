//! Who may connect: the setting, and the one that answers libzmq when it asks.
//!
//! libzmq asks by its ZAP protocol (RFC 27): before it answers a peer's handshake, it sends the peer's address to whoever is
//! bound to an endpoint of the socket's own context, and waits for the answer. With the NULL mechanism it does so only if the
//! socket has a ZAP domain. Peers of ZMTP 1 and 2, which have no such moment, are hung up on then.
//!
//! The sender answers, in its upkeep and between messages, so there is no thread more to be had, and none to wait for when the
//! socket closes. A peer waits a few hundredths of a second for its answer, longer while the sender is held up; one that has
//! none after 10 s is hung up on, as any handshake is.

use super::retry_interrupted;
use crate::log_throttle::is_power_of_ten;
use crate::network::{Network, allows};
use crate::transport::condition::Condition;
use std::sync::Arc;

/// Where libzmq looks for whoever answers.
const HANDLER: &str = "inproc://zeromq.zap.01";
/// Any name switches the asking on.
const DOMAIN: &str = "kv-events";
/// Peers answered in one go, so that many of them do not keep the sender from sending.
const AT_ONCE: usize = 64;

/// Answers libzmq. Belongs to the sender's thread.
pub(super) struct PeerFilter {
    socket: zmq::Socket,
    networks: Vec<Network>,
    condition: Arc<Condition>,
}

impl PeerFilter {
    /// Stands before `publisher`, which is not bound yet.
    pub(super) fn before(
        publisher: &zmq::Socket,
        context: &zmq::Context,
        networks: Vec<Network>,
        condition: Arc<Condition>,
    ) -> zmq::Result<PeerFilter> {
        let socket = context.socket(zmq::REP)?;
        socket.set_linger(0)?;
        socket.bind(HANDLER)?;
        publisher.set_zap_domain(DOMAIN)?;
        Ok(PeerFilter { socket, networks, condition })
    }

    /// Answers those who wait, up to a number. Never waits itself. Says whether there may be more of them.
    pub(super) fn answer(&self) -> bool {
        for _ in 0..AT_ONCE {
            let Some(request) = self.request() else { return false };
            let part = |at: usize| request.get(at).map_or(&b""[..], |frame| &frame[..]);
            let address = String::from_utf8_lossy(part(3));
            let allowed = allows(&self.networks, &address);
            self.reply(part(1), allowed);
            if !allowed {
                let refused = self.condition.count_refused();
                if is_power_of_ten(refused) {
                    crate::logging::warning!(
                        "kv-events: kv_events_allow_peers does not name {address:?}, which was refused; {refused} such \
                         connections so far"
                    );
                }
            }
        }
        true
    }

    /// The next request: version, number, domain, address, and more that is not needed. A signal must not come between its
    /// frames, or between those of the reply: the socket would take no other.
    fn request(&self) -> Option<Vec<zmq::Message>> {
        let mut frames = Vec::new();
        loop {
            let mut frame = zmq::Message::new();
            retry_interrupted(|| self.socket.recv(&mut frame, zmq::DONTWAIT)).ok()?;
            let is_last = !frame.get_more();
            frames.push(frame);
            if is_last {
                return Some(frames);
            }
        }
    }

    fn reply(&self, number: &[u8], allowed: bool) {
        let (code, text): (&[u8], &[u8]) = if allowed { (b"200", b"OK") } else { (b"400", b"not allowed") };
        for frame in [b"1.0", number, code, text, b""] {
            // A peer that has gone meanwhile needs no answer, and the socket takes it all the same.
            let _ = retry_interrupted(|| self.socket.send(frame, zmq::DONTWAIT | zmq::SNDMORE));
        }
        let _ = retry_interrupted(|| self.socket.send(&b""[..], zmq::DONTWAIT));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ANSWER, ANSWER_BACKLOG, PubSocket};
    use super::AT_ONCE;
    use crate::config::Config;
    use crate::transport::Transport;
    use std::io::Write;
    use std::time::{Duration, Instant};

    #[test]
    fn many_connections_are_answered_more_often_than_a_few() {
        let mut transport = PubSocket::of(&Config::new("tcp://127.0.0.1:0", "b").allow_peers(["127.0.0.2"]));
        let opened = transport.open().unwrap();
        let refused = || opened.report.as_ref().unwrap()().refused_peers;
        let endpoint = &opened.endpoint;
        let mut interval = transport.upkeep();
        assert_eq!(interval, Some(ANSWER));
        let until = Instant::now() + Duration::from_secs(60);
        let mut pause = ANSWER;
        while interval == Some(ANSWER) {
            assert!(Instant::now() < until, "{} refused", refused());
            let many: Vec<_> = (0..3 * AT_ONCE)
                .map(|_| {
                    let mut peer = std::net::TcpStream::connect(endpoint.trim_start_matches("tcp://")).unwrap();
                    let _ =
                        peer.write_all(b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL").and_then(|()| peer.write_all(&[0; 48]));
                    peer
                })
                .collect();
            // libzmq gets as much time as it takes, however slow the machine is.
            std::thread::sleep(pause);
            pause += ANSWER;
            interval = transport.upkeep();
            drop(many);
        }
        assert_eq!(interval, Some(ANSWER_BACKLOG));
        while interval == Some(ANSWER_BACKLOG) {
            assert!(Instant::now() < until, "{} refused", refused());
            std::thread::sleep(ANSWER_BACKLOG);
            interval = transport.upkeep();
        }
    }
}
