//! Stand-ins for a socket: one that forgets, and one that can be made to block.

use super::peer::PeerSink;
use kv_events::transport::{Message, SendError, Transport};
use std::sync::{Arc, Condvar, Mutex};

/// A gate that senders pass only while it is open.
#[derive(Clone)]
pub struct Gate(Arc<(Mutex<Passage>, Condvar)>);

struct Passage {
    open: bool,
    /// Senders that stand before it.
    waiting: usize,
}

impl Gate {
    pub fn new(open: bool) -> Self {
        Gate(Arc::new((Mutex::new(Passage { open, waiting: 0 }), Condvar::new())))
    }

    pub fn set_open(&self, open: bool) {
        let (passage, changed) = &*self.0;
        passage.lock().expect("the gate").open = open;
        changed.notify_all();
    }

    /// Waits until a sender stands before the closed gate.
    pub fn wait_for_sender(&self) {
        let (passage, changed) = &*self.0;
        let guard = passage.lock().expect("the gate");
        drop(changed.wait_while(guard, |passage| passage.waiting == 0).expect("the gate"));
    }

    fn pass(&self) {
        let (passage, changed) = &*self.0;
        let mut guard = passage.lock().expect("the gate");
        if !guard.open {
            guard.waiting += 1;
            changed.notify_all();
            guard = changed.wait_while(guard, |passage| !passage.open).expect("the gate");
            guard.waiting -= 1;
        }
    }

    /// The crate's transport behind this gate; what passes is written and forgotten.
    pub fn transport(&self) -> impl Transport + 'static {
        Gated { gate: self.clone(), bytes: Vec::new() }
    }

    /// The peer's.
    pub fn peer_sink(&self) -> impl PeerSink + 'static {
        Gated { gate: self.clone(), bytes: Vec::new() }
    }
}

struct Gated {
    gate: Gate,
    bytes: Vec<u8>,
}

impl Transport for Gated {
    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        self.gate.pass();
        self.bytes.resize(message.payload_len(), 0);
        message.write_payload(&mut self.bytes);
        Ok(())
    }
}

impl PeerSink for Gated {
    fn send(&mut self, _: u64, payload: &[u8]) {
        self.gate.pass();
        self.bytes.clear();
        self.bytes.extend_from_slice(payload);
    }
}
