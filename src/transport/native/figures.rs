//! What is told of peers: written by the sender, read by anyone.

use crate::sync::{Counter, Gauge};
use crate::transport::PeerReport;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Of one peer.
#[derive(Debug)]
pub(super) struct Figures {
    address: String,
    since: SystemTime,
    pub(super) queued_messages: Gauge,
    pub(super) queued_bytes: Gauge,
    pub(super) sent_bytes: Gauge,
    pub(super) dropped_messages: Gauge,
    pub(super) dropped_events: Gauge,
}

impl Figures {
    pub(super) fn new(address: String) -> Self {
        Figures {
            address,
            since: SystemTime::now(),
            queued_messages: Gauge::new(),
            queued_bytes: Gauge::new(),
            sent_bytes: Gauge::new(),
            dropped_messages: Gauge::new(),
            dropped_events: Gauge::new(),
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    fn report(&self) -> PeerReport {
        PeerReport {
            address: self.address.clone(),
            since_ms: self.since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
            queued_messages: self.queued_messages.get(),
            queued_bytes: self.queued_bytes.get(),
            sent_bytes: self.sent_bytes.get(),
            dropped_messages: self.dropped_messages.get(),
            dropped_events: self.dropped_events.get(),
        }
    }
}

/// Of all peers.
#[derive(Debug)]
pub(super) struct Book {
    /// Those that are subscribed. Behind a lock that the sender never waits for.
    peers: Mutex<Vec<Arc<Figures>>>,
    pub(super) refused_connections: Counter,
    pub(super) dropped_messages: Counter,
    pub(super) dropped_events: Counter,
}

impl Book {
    pub(super) fn new() -> Self {
        Book {
            peers: Mutex::new(Vec::new()),
            refused_connections: Counter::new(),
            dropped_messages: Counter::new(),
            dropped_events: Counter::new(),
        }
    }

    /// Has others told of from now on; false while it is being read: it has to be tried again.
    pub(super) fn set_peers(&self, now: impl Iterator<Item = Arc<Figures>>) -> bool {
        let mut peers = match self.peers.try_lock() {
            Ok(peers) => peers,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        peers.clear();
        peers.extend(now);
        true
    }

    pub(super) fn peers(&self) -> Vec<PeerReport> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.iter().map(|figures| figures.report()).collect()
    }
}
