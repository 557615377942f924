//! What a subscriber hands over.

use crate::decode::{Batch, BatchHead, ErrorClass};
use crate::tracker::Verdict;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Where messages come from: what a tracker follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub(super) endpoint: String,
    pub(super) peer: Option<String>,
    pub(super) topic: Vec<u8>,
}

impl Source {
    /// The endpoint, as it was given.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Who it is of those connected to an endpoint that was bound: the address, and behind a `#` which one if several come
    /// from there. `None` where the subscriber connected.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        self.peer.as_deref()
    }

    /// The topic, as it stands in the first frame.
    #[must_use]
    pub fn topic(&self) -> &[u8] {
        &self.topic
    }
}

/// One thing a subscriber has to tell. They come in order: what a message shows is told right before the message. There
/// are no others, so that nobody passes one over unknowingly.
///
/// Messages are most of them, so they are not boxed for the sake of the rest.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Delivery {
    /// A start, gap, restart or duplicate, shown by the message numbered `sequence`, which comes next, if it is delivered
    /// (readable, and no duplicate unless asked for). Under [`Numbering::Auto`](crate::tracker::Numbering::Auto) it may be
    /// another source's than that message is, and older.
    Notice {
        /// Whose message it was.
        source: Arc<Source>,
        /// The message's number.
        sequence: u64,
        /// What it shows; never [`Verdict::InOrder`].
        verdict: Verdict,
    },
    /// A message whose payload is a well-formed batch.
    Message(Message),
    /// The connection was lost and is there again. What was sent meanwhile may be missing; the next message's number tells,
    /// so there is nothing to do yet. Told for each source that has begun, or once if all topics share one counter.
    Reconnected {
        /// Whose connection it is.
        source: Arc<Source>,
    },
    /// Something that is no message. The connection is none the worse for it.
    Malformed {
        /// Who sent it. Where the topic is not known, that of the subscription stands for it.
        source: Arc<Source>,
        /// Its number, if it had a readable one; the number was then counted like any other.
        sequence: Option<u64>,
        /// What is wrong.
        reason: Malformed,
    },
}

/// What is wrong with something that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// It has this many frames instead of 3.
    Frames(usize),
    /// Its second frame has this many bytes instead of 8.
    SequenceLength(usize),
    /// Its topic is one too many to follow (see `Settings::max_topics`).
    TooManyTopics,
    /// Its topic has this many bytes, more than `Settings::max_topic_bytes`.
    TopicLength(u64),
    /// A frame is larger than `Settings::max_frame_bytes`. It was passed over.
    TooLarge {
        /// Its size, bytes.
        bytes: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// Its payload is no batch.
    Payload(ErrorClass),
}

impl Malformed {
    /// A short name, as in `kv-events tail --json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Malformed::Frames(_) => "frames",
            Malformed::SequenceLength(_) => "sequence_length",
            Malformed::TooManyTopics => "too_many_topics",
            Malformed::TopicLength(_) => "topic_length",
            Malformed::TooLarge { .. } => "frame_too_large",
            Malformed::Payload(class) => class.as_str(),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Frames(count) => write!(f, "{count} frames instead of 3"),
            Malformed::SequenceLength(bytes) => write!(f, "a sequence number of {bytes} bytes instead of 8"),
            Malformed::TooManyTopics => f.write_str("one topic too many to follow"),
            Malformed::TopicLength(bytes) => write!(f, "a topic of {bytes} bytes, which is too long"),
            Malformed::TooLarge { bytes, limit } => {
                write!(f, "a frame of {bytes} bytes, where the limit is {limit} (max_frame_bytes)")
            }
            Malformed::Payload(class) => write!(f, "the payload is no batch: {}", class.as_str()),
        }
    }
}

/// A message: it owns its payload, so it can be kept for as long as you like, for example until a snapshot is in.
pub struct Message {
    pub(super) source: Arc<Source>,
    pub(super) sequence: u64,
    pub(super) duplicate: bool,
    pub(super) payload: Bytes,
    /// Of the payload, which was checked when it arrived.
    pub(super) head: BatchHead,
}

impl Message {
    /// Who sent it.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Its sequence number.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether it repeats an earlier one; never delivered unless asked for in the settings.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.duplicate
    }

    /// The payload, decoded. It was checked when it arrived, so this costs nothing and can't fail.
    #[must_use]
    pub fn batch(&self) -> Batch<'_> {
        Batch::checked(&self.payload, self.head)
    }

    /// The third frame.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("source", &self.source)
            .field("sequence", &self.sequence)
            .field("duplicate", &self.duplicate)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}
