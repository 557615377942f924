//! The frames of a message.

use std::fmt;

/// The three frames of a message, told apart. For readers who receive with a ZeroMQ library of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'a> {
    /// The topic, often empty.
    pub topic: &'a [u8],
    /// The message's number.
    pub sequence: u64,
    /// The payload, for [`Batch::parse`](super::Batch::parse).
    pub payload: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Takes a message apart: exactly three frames, the second of 8 bytes (a big-endian number).
    ///
    /// # Errors
    ///
    /// It has another shape. Such a message has no number, so it says nothing about gaps.
    pub fn parse(frames: &'a [impl AsRef<[u8]>]) -> Result<Frames<'a>, FrameError> {
        let [topic, sequence, payload] = frames else {
            return Err(FrameError::Count(frames.len()));
        };
        let sequence = sequence.as_ref();
        let number = sequence.try_into().map_err(|_| FrameError::SequenceLength(sequence.len()))?;
        Ok(Frames { topic: topic.as_ref(), sequence: u64::from_be_bytes(number), payload: payload.as_ref() })
    }
}

/// Why some frames are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// There are this many frames instead of 3.
    Count(usize),
    /// The second frame has this many bytes instead of 8.
    SequenceLength(usize),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Count(count) => write!(f, "a message has 3 frames, this one has {count}"),
            FrameError::SequenceLength(len) => write!(f, "a sequence frame has 8 bytes, this one has {len}"),
        }
    }
}

impl std::error::Error for FrameError {}
