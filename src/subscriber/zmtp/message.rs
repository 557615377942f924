//! The message on its way, frame by frame.

use super::super::delivery::Malformed;
use bytes::Bytes;

/// What came in, as far as the frames tell.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Three frames, the second a number.
    Message {
        /// The first frame.
        topic: Vec<u8>,
        /// The second.
        sequence: u64,
        /// The third.
        payload: Bytes,
    },
    /// Anything else.
    Malformed {
        /// Its size, bytes.
        bytes: u64,
        /// The first frame, if it was kept.
        topic: Vec<u8>,
        /// The number, if it is sure to be one.
        sequence: Option<u64>,
        /// What is wrong.
        reason: Malformed,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) flags: u8,
    pub(super) left: u64,
    pub(super) into: Into,
}

#[derive(Clone, Debug)]
pub(super) enum Into {
    Nothing,
    Topic,
    Sequence,
    Payload,
    Command(Vec<u8>),
}

/// The message on its way.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) frames: usize,
    pub(super) bytes: u64,
    topic: Vec<u8>,
    /// It was too long to be kept.
    pub(super) has_no_topic: bool,
    sequence: Vec<u8>,
    pub(super) sequence_len: u64,
    pub(super) payload: Vec<u8>,
    pub(super) payload_len: u64,
    pub(super) fault: Option<Malformed>,
}

impl Message {
    pub(super) fn keep(&mut self, frame: &mut Frame, bytes: &[u8]) {
        match &mut frame.into {
            Into::Nothing => {}
            Into::Command(body) => body.extend_from_slice(bytes),
            Into::Topic => self.topic.extend_from_slice(bytes),
            Into::Sequence => {
                let missing = 8 - self.sequence.len();
                self.sequence.extend_from_slice(&bytes[..bytes.len().min(missing)]);
            }
            Into::Payload => {
                let payload = &mut self.payload;
                if payload.capacity() - payload.len() < bytes.len() {
                    // As it comes, not on the word of the head, and never beyond it.
                    let all = usize::try_from(self.payload_len).unwrap_or(usize::MAX);
                    let target = all.min((2 * payload.capacity()).max(payload.len() + bytes.len()));
                    payload.reserve_exact(target - payload.len());
                }
                payload.extend_from_slice(bytes);
            }
        }
    }

    pub(super) fn arrival(self) -> Arrival {
        let Message { frames, bytes, topic, has_no_topic, sequence, sequence_len, payload, fault, .. } = self;
        let number = <[u8; 8]>::try_from(&sequence[..]).ok().filter(|_| sequence_len == 8).map(u64::from_be_bytes);
        let reason = match (fault, number) {
            (Some(fault), _) => fault,
            (None, _) if frames != 3 => Malformed::Frames(frames),
            (None, None) => Malformed::SequenceLength(usize::try_from(sequence_len).unwrap_or(usize::MAX)),
            (None, Some(sequence)) => return Arrival::Message { topic, sequence, payload: payload.into() },
        };
        let has_number = frames == 3 && !has_no_topic;
        Arrival::Malformed { bytes, topic, sequence: number.filter(|_| has_number), reason }
    }
}
