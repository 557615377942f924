//! What the sender needs of a socket, so that tests and benches can put something else in its place.

use crate::clock;
use crate::lockfree::Batch;
use crate::sender::{SendError, Sink};
use crate::wire::frame::Frame;
use crate::wire::message::PayloadWriter;
use std::time::Duration;

/// Sends messages of three frames: an empty topic, the sequence, the payload.
pub trait Transport: Send {
    /// Sends one message without ever waiting. `fill` writes the payload over `len` bytes, the same
    /// however often it is asked.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    fn send(&mut self, sequence: u64, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<(), SendError>;

    /// How often [`upkeep`](Self::upkeep) is needed while nothing is sent; `None` for never.
    fn upkeep_interval(&self) -> Option<Duration> {
        None
    }

    /// See [`Sink::upkeep`].
    fn upkeep(&mut self) {}

    /// How long closing may wait for subscribers to fetch what was sent.
    fn set_linger(&mut self, _linger: Duration) {}
}

/// A transport that is ready to send.
pub struct Opened {
    /// What to send through.
    pub transport: Box<dyn Transport>,
    /// The endpoint really bound.
    pub endpoint: String,
    /// The effective send high-water mark, messages.
    pub send_hwm: u64,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Makes messages of batches: gives event ids and the time of sending.
pub(super) struct MessageSink {
    pub(super) transport: Box<dyn Transport>,
    payload: PayloadWriter,
    /// Given to the next event that is sent; a failed message's are used again.
    next_event_id: u64,
}

impl MessageSink {
    pub(super) fn new(transport: Box<dyn Transport>, payload: PayloadWriter) -> Self {
        MessageSink { transport, payload, next_event_id: 1 }
    }
}

impl Sink<Frame> for MessageSink {
    fn send(&mut self, sequence: u64, batch: Batch<'_, Frame>) -> Result<usize, SendError> {
        let header = self.payload.header(clock::now_ms(), batch.calls());
        let (payload, first) = (&self.payload, self.next_event_id);
        self.transport
            .send(sequence, header.len(), &mut |place| payload.write(&header, batch.calls(), first, place))?;
        self.next_event_id += header.events();
        Ok(header.len())
    }

    fn upkeep_interval(&self) -> Option<Duration> {
        self.transport.upkeep_interval()
    }

    fn upkeep(&mut self) {
        self.transport.upkeep();
    }
}
