//! A PUB socket of our own: ZMTP 3.0 and 3.1 (and 2.0 for older peers) over TCP and `ipc`, on the sender's thread. Linux.
//!
//! There is no second thread and no queue between the sender and the system but one for each peer. A message is put into its
//! frames once; all peers share it, and it is written from there, many at a time, by a call that neither waits nor raises a
//! signal. What a peer sends goes through a parser that keeps next to nothing of it, so nothing that a peer does costs more
//! than its connection:
//!
//! | it | costs | bounded by |
//! |---|---|---|
//! | sends garbage, or a frame that is no subscription | nothing | hung up on |
//! | connects and stays silent | a descriptor and some 500 bytes, for 10 s | 256 of them: then the oldest goes |
//! | comes and goes | nothing | |
//! | subscribes without end | nothing | a counter |
//! | sends PINGs and takes no answer | 4 KiB | not read from until it does |
//! | never reads | messages and bytes up to its marks | the marks, and one for all peers together |
//! | connects again and again | descriptors | a number of connections in all, and for each address |
//!
//! # Slow peers
//!
//! A peer whose queue is full loses the newest messages, and it alone: it sees a jump in the numbers, and here it is counted.
//! Where all queues together hold too much, those lose that have something waiting already.
//!
//! # When it writes
//!
//! With nothing behind a message, at once. While the publisher's queue holds more, 128 KiB are gathered and then written to
//! all.

mod address;
mod doors;
mod figures;
mod hub;
pub(crate) mod parser;
mod peer;
mod peers;
mod queue;
#[cfg(test)]
mod tests;

use super::{Message, Opened, Report, SendError, Transport};
use crate::config::Config;
use crate::endpoint;
use crate::error::StartError;
use crate::network::Network;
use crate::os::Needs;
use crate::transport::condition::Condition;
use figures::Book;
use hub::Hub;
use peer::Marks;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// What the settings say of the socket.
#[derive(Clone, Debug)]
struct Options {
    endpoint: String,
    marks: Marks,
    /// Bytes that may wait for all peers together.
    total_bytes: usize,
    most_peers: usize,
    most_per_address: usize,
    allow_peers: Vec<Network>,
    keepalive: Duration,
}

/// The transport; it has no socket before it is opened.
pub(crate) struct NativeSocket {
    options: Options,
    hub: Option<Hub>,
}

impl NativeSocket {
    /// What the settings, which have been found to be valid, say.
    pub(crate) fn of(config: &Config) -> Self {
        let options = Options {
            endpoint: config.bind_endpoint.clone(),
            marks: Marks { messages: config.send_hwm as usize, bytes: config.peer_queue_bytes },
            total_bytes: config.total_queue_bytes,
            most_peers: config.max_peers,
            most_per_address: config.max_peers_per_address,
            allow_peers: config.allow_peers.iter().filter_map(|peer| Network::parse(peer)).collect(),
            keepalive: config.keepalive,
        };
        NativeSocket { options, hub: None }
    }

    /// What it takes: the listener, epoll, what wakes the sender, a spare, and two for connections.
    pub(crate) fn needs(&self) -> Needs {
        Needs::native(6)
    }
}

impl Transport for NativeSocket {
    fn open(&mut self) -> Result<Opened, StartError> {
        let failed = |cause| StartError::Endpoint { endpoint: self.options.endpoint.clone(), cause };
        let checked = endpoint::check(&self.options.endpoint).map_err(failed)?;
        let listener = address::bind(&self.options.endpoint).map_err(failed)?;
        let endpoint = listener.endpoint.clone();
        if endpoint.starts_with("tcp:") && !self.options.keepalive.is_zero() {
            let set = crate::os::keepalive::keep_alive(listener.socket.as_raw_fd(), self.options.keepalive);
            if let Err(error) = set {
                crate::logging::warning!("kv-events: TCP keepalive could not be set for {endpoint}: {error}");
            }
        }
        if !checked.local && self.options.allow_peers.is_empty() {
            crate::logging::warning!(
                "kv-events: {endpoint} can be reached from other machines, and the stream carries no authentication; \
                 bind 127.0.0.1, or name who may connect in kv_events_allow_peers, unless the network is trusted"
            );
        }
        let (condition, book) = (Arc::new(Condition::new()), Arc::new(Book::new()));
        let hub = Hub::new(listener, self.options.clone(), Arc::clone(&condition), Arc::clone(&book))
            .map_err(StartError::Socket)?;
        let wake = hub.waker();
        self.hub = Some(hub);
        let report = move || Report {
            refused_connections: book.refused_connections.get(),
            peer_dropped_messages: book.dropped_messages.get(),
            peer_dropped_events: book.dropped_events.get(),
            peers: book.peers(),
            ..condition.report()
        };
        Ok(Opened::at(endpoint).send_hwm(self.options.marks.messages as u64).report(report).wakes_by(wake))
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        match &mut self.hub {
            Some(hub) => hub.send(message),
            None => Err(SendError::Broken("the socket is not open".to_owned())),
        }
    }

    fn upkeep(&mut self) -> Option<Duration> {
        self.hub.as_mut().map(Hub::upkeep)
    }

    fn wait(&mut self, timeout: Option<Duration>) {
        if let Some(hub) = &mut self.hub {
            hub.wait(timeout);
        }
    }

    fn close(&mut self, linger: Duration) {
        if let Some(hub) = self.hub.take() {
            hub.close(linger);
        }
    }
}
