//! The payload of a message: a batch of encoded calls between a header and the rank.

use super::frame::{EVENT_ID_AT, Frame, TIMESTAMP_AT};
use crate::lockfree::Call;
use rmp::encode as msgpack;

/// `[`, the timestamp, and at most 5 bytes of array header.
const LONGEST_HEADER: usize = 1 + 9 + 5;

/// Puts payloads together for one publisher.
#[derive(Debug)]
pub(crate) struct PayloadWriter {
    dp_rank: Box<[u8]>,
}

impl PayloadWriter {
    pub(crate) fn new(dp_rank: u32) -> Self {
        let mut bytes = Vec::new();
        msgpack::write_uint(&mut bytes, dp_rank.into()).expect("writing to memory does not fail");
        PayloadWriter { dp_rank: bytes.into() }
    }

    /// The header of a payload of `calls`, sent at `timestamp` ms.
    pub(crate) fn header(&self, timestamp: u64, calls: &[Frame]) -> Header {
        let events: u64 = calls.iter().map(Call::events).sum();
        let mut bytes = [0; LONGEST_HEADER];
        let mut rest = &mut bytes[..];
        let written = msgpack::write_array_len(&mut rest, 3)
            .and_then(|_| msgpack::write_u64(&mut rest, timestamp))
            .and_then(|()| msgpack::write_array_len(&mut rest, events as u32));
        debug_assert!(written.is_ok());
        let len = LONGEST_HEADER - rest.len();
        Header { bytes, len, timestamp, events }
    }

    /// Length of the payload, bytes.
    pub(crate) fn len(&self, header: &Header, calls: &[Frame]) -> usize {
        header.len + calls.iter().map(Call::bytes).sum::<usize>() + self.dp_rank.len()
    }

    /// Writes the payload over `out`, which is exactly as long as [`len`](Self::len) says, numbering its events from
    /// `event_id`.
    pub(crate) fn write(&self, header: &Header, calls: &[Frame], mut event_id: u64, out: &mut [u8]) {
        let (head, mut rest) = out.split_at_mut(header.len);
        head.copy_from_slice(&header.bytes[..header.len]);
        for call in calls {
            let (place, behind) = rest.split_at_mut(call.bytes());
            place.copy_from_slice(call.encoded());
            for start in call.starts() {
                put_u64(place, start + EVENT_ID_AT, event_id);
                put_u64(place, start + TIMESTAMP_AT, header.timestamp);
                event_id += 1;
            }
            rest = behind;
        }
        rest.copy_from_slice(&self.dp_rank);
    }
}

/// What a payload begins with.
pub(crate) struct Header {
    bytes: [u8; LONGEST_HEADER],
    len: usize,
    timestamp: u64,
    events: u64,
}

impl Header {
    /// Events in the payload.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

fn put_u64(place: &mut [u8], at: usize, value: u64) {
    place[at..at + 8].copy_from_slice(&value.to_be_bytes());
}
