//! Who is let in.

use super::hub::{AT_ONCE, BACK_OFF, Hub, LISTENER, UPKEEP};
use super::parser::Bad;
use super::peer::Peer;
use crate::log_throttle::is_power_of_ten;
use crate::network::allows_address;
use rustix::event::epoll::{self, EventData, EventFlags};
use socket2::Socket;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// Connections in their handshake: where there are more the oldest goes.
const STRANGERS: usize = 256;

impl Hub {
    /// Lets in who has come.
    pub(super) fn accept(&mut self, now: Instant) {
        for _ in 0..AT_ONCE {
            match self.listener.socket.accept4(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) {
                Ok((socket, from)) => {
                    let from = from.as_socket();
                    // Unknown to ipc.
                    let _ = socket.set_tcp_nodelay(true);
                    self.admit(socket, from, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Of one who has gone meanwhile.
                Err(error)
                    if [io::ErrorKind::Interrupted, io::ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
                Err(_) => return self.back_off(now),
            }
        }
    }

    /// There is no descriptor for one more, or what else it takes: those who wait are hung up on, so that they come again, and it is tried later.
    fn back_off(&mut self, now: Instant) {
        for _ in 0..AT_ONCE {
            if self.spare.take().is_none() {
                break;
            }
            let refused = self.listener.socket.accept4(libc::SOCK_CLOEXEC).is_ok();
            self.spare = spare();
            if !refused {
                break;
            }
            self.count_refused("there is no file descriptor for them");
        }
        self.spare = self.spare.take().or_else(spare);
        self.condition.note(self.watch.look());
        self.next_look = now + UPKEEP;
        self.accept_again = Some(now + BACK_OFF);
        let _ = epoll::modify(&self.epoll, &self.listener.socket, EventData::new_u64(LISTENER), EventFlags::empty());
    }

    fn count_refused(&self, why: &str) {
        self.book.refused_connections.add(1);
        let refused = self.book.refused_connections.get();
        if is_power_of_ten(refused) {
            crate::logging::warning!("kv-events: {refused} connections were closed so far, the last since {why}");
        }
    }

    fn admit(&mut self, socket: Socket, from: Option<SocketAddr>, now: Instant) {
        let ip = from.map(|from| from.ip().to_canonical());
        let same = self.peers.iter().filter(|(_, peer)| ip.is_some() && peer.ip == ip).count();
        if self.options.most_per_address > 0 && same >= self.options.most_per_address {
            return self.count_refused("there are kv_events_max_peers_per_address from their address");
        }
        let strangers = self.peers.iter().filter(|(_, peer)| peer.is_stranger());
        let (count, oldest) =
            strangers.fold((0, None), |(count, oldest): (usize, Option<(Instant, usize)>), (at, peer)| {
                let this = (peer.accepted(), at);
                (count + 1, Some(oldest.map_or(this, |oldest| oldest.min(this))))
            });
        let is_full = self.options.most_peers > 0 && self.peers.len() >= self.options.most_peers;
        if is_full || count >= STRANGERS {
            let Some((_, oldest)) = oldest else {
                return self.count_refused("there are kv_events_max_peers already");
            };
            self.count_refused("others came before their handshake was over");
            self.remove(oldest, None);
        }
        let allowed = &self.options.allow_peers;
        let is_allowed = allowed.is_empty() || ip.is_some_and(|ip| allows_address(allowed, ip));
        let address = from.map_or_else(|| "ipc".to_owned(), |from| from.to_string());
        let mut peer = Peer::new(socket, address, ip, is_allowed, now);
        // A new connection takes that much.
        if peer.flush(&mut self.messages).is_err() {
            return;
        }
        let wanted = peer.wanted();
        if epoll::add(&self.epoll, peer.socket(), EventData::new_u64(self.peers.next_key()), wanted).is_ok() {
            peer.interest = wanted;
            self.blocked += usize::from(peer.is_blocked());
            self.peers.insert(peer);
        }
    }

    pub(super) fn tell_of(&self, address: &str, bad: &Bad) {
        if *bad != Bad::NotAllowed {
            return self.count_refused(&format!("of what {address} said: {bad}"));
        }
        let refused = self.condition.count_refused();
        if is_power_of_ten(refused) {
            crate::logging::warning!(
                "kv-events: kv_events_allow_peers does not name {address:?}, which was refused; {refused} such \
                 connections so far"
            );
        }
    }
}

/// Any descriptor will do.
pub(super) fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}
