//! Makes messages of batches: gives event ids and the time of sending.

use crate::clock;
use crate::lockfree::Batch;
use crate::sender::Assemble;
use crate::wire::frame::Frame;
use crate::wire::message::{Header, PayloadWriter};

pub(super) struct Payloads {
    writer: PayloadWriter,
    /// Given to the next event that is sent; a failed message's are used again.
    next_event_id: u64,
}

impl Payloads {
    pub(super) fn new(writer: PayloadWriter) -> Self {
        Payloads { writer, next_event_id: 1 }
    }
}

impl Assemble<Frame> for Payloads {
    type Head = Header;

    fn head(&self, batch: Batch<'_, Frame>) -> Header {
        self.writer.header(clock::now_ms(), batch.calls())
    }

    fn len(&self, head: &Header) -> usize {
        head.len()
    }

    fn write(&self, head: &Header, batch: Batch<'_, Frame>, place: &mut [u8]) {
        self.writer.write(head, batch.calls(), self.next_event_id, place);
    }

    fn sent(&mut self, head: &Header) {
        self.next_event_id += head.events();
    }
}
