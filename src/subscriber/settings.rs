//! What a subscriber is told before it connects, and why it may refuse.

use crate::error::Shortage;
use crate::tracker::{Base, Numbering};
use std::time::Duration;
use std::{error, fmt, io};

/// Which topics a subscriber takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopicFilter {
    /// Every topic that begins with these bytes, which is what a ZeroMQ subscription means: `kv` also takes `kv-2`,
    /// and the empty prefix takes everything.
    Prefix(Vec<u8>),
    /// This topic alone. Longer ones that arrive by the prefix match are dropped here and appear in no figure.
    Exact(Vec<u8>),
}

impl TopicFilter {
    /// Bytes that the socket subscribes to.
    #[must_use]
    pub fn subscription(&self) -> &[u8] {
        match self {
            TopicFilter::Prefix(topic) | TopicFilter::Exact(topic) => topic,
        }
    }

    /// Whether messages of `topic` are taken.
    #[must_use]
    pub fn accepts(&self, topic: &[u8]) -> bool {
        match self {
            TopicFilter::Prefix(prefix) => topic.starts_with(prefix),
            TopicFilter::Exact(exact) => topic == exact,
        }
    }
}

impl Default for TopicFilter {
    /// Everything.
    fn default() -> Self {
        TopicFilter::Prefix(Vec::new())
    }
}

/// Settings of a [`Subscriber`](super::Subscriber). A minor version may add some: end yours with `..Settings::default()`.
///
/// Memory: all connections together hold at most `max_buffered_bytes` of payloads that are not complete yet (and one payload
/// in any case), and each of them 192 KiB beside that. What has arrived is handed over at once, and belongs to the caller.
/// Nothing is read from a connection between two calls: what comes meanwhile stays in the system's buffers, then with the
/// publisher. Each source costs up to 45 KiB, and there are at most `max_topics` for each endpoint, or publisher connected
/// to an endpoint that was bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which topics are taken. Default: all.
    pub topic: TopicFilter,
    /// The number that publishers begin at. Default: [`Base::Auto`].
    pub base: Base,
    /// What a publisher with several topics counts. Default: [`Numbering::Auto`].
    pub numbering: Numbering,
    /// The system's buffer for what arrives on each connection and was not asked for yet, in bytes. When it is full the
    /// publisher holds messages up to its own mark, then drops some, and a gap shows here. Default: `None`, as the system
    /// has it, which is some MiB on Linux.
    pub receive_buffer_bytes: Option<u32>,
    /// Largest frame in bytes. A larger one is passed over and told as [`TooLarge`](super::Malformed::TooLarge); one above
    /// 1 GiB ends the connection too. Default: 16 MiB, well above what masters send (about 1 MiB) and engines do.
    pub max_frame_bytes: u32,
    /// Longest topic in bytes. Messages under a longer one are malformed. Default: 4096.
    pub max_topic_bytes: u32,
    /// Bytes that all connections may hold together of payloads on their way. Connections that find no room wait for
    /// others. Default: 64 MiB.
    pub max_buffered_bytes: u64,
    /// Whether the messages that are duplicates are delivered too, behind the notice that says so. Default: no.
    pub deliver_duplicates: bool,
    /// How many topics of one endpoint are followed. Messages of further ones are malformed: a tracker each is what
    /// they would cost. Default: 256.
    pub max_topics: usize,
    /// A topic that was silent for so long makes room for a new one when there are `max_topics`. What was known of it is
    /// forgotten then, its figures too: if it speaks again and counts for itself, it is told as
    /// [`Started`](crate::tracker::Verdict::Started), and what was missed of it in between is not known apart from what came
    /// before. Default: 10 minutes.
    pub topic_idle: Duration,
    /// How many publishers may be connected to an endpoint that was bound. Default: 1024.
    pub max_peers: usize,
    /// A connection over TCP whose other side has answered nothing for so long, not even the system's own questions whether
    /// it is still there, is lost: a host that vanished says nothing. Default: 30 s; `None` waits for ever.
    pub keepalive: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            topic: TopicFilter::default(),
            base: Base::Auto,
            numbering: Numbering::Auto,
            receive_buffer_bytes: None,
            max_frame_bytes: 16 << 20,
            max_topic_bytes: 4096,
            max_buffered_bytes: 64 << 20,
            deliver_duplicates: false,
            max_topics: 256,
            topic_idle: Duration::from_secs(600),
            max_peers: 1024,
            keepalive: Some(Duration::from_secs(30)),
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), ConnectError> {
        let bad = |setting, reason| Err(ConnectError::BadSetting { setting, reason });
        if self.max_topics == 0 {
            return bad("max_topics", "is at least 1");
        }
        if self.max_peers == 0 {
            return bad("max_peers", "is at least 1");
        }
        if self.keepalive.is_some_and(|time| time < Duration::from_secs(4) || time > Duration::from_secs(7200)) {
            return bad("keepalive", "is from 4 s to 2 hours");
        }
        if self.topic.subscription().len() as u64 > u64::from(self.max_topic_bytes) {
            return bad("max_topic_bytes", "is less than the topic subscribed to has");
        }
        Ok(())
    }
}

/// Why a subscriber could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// No endpoint was given.
    NoEndpoint,
    /// One endpoint was given twice: its messages would arrive twice.
    Twice {
        /// The endpoint.
        endpoint: String,
    },
    /// The endpoint is not one that can be connected to, or bound.
    BadEndpoint {
        /// The endpoint.
        endpoint: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A setting is out of range.
    BadSetting {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The system refused.
    System {
        /// The endpoint.
        endpoint: String,
        /// What it said.
        cause: io::Error,
    },
    /// The system has not what the sockets take.
    Resources(Shortage),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoEndpoint => f.write_str("no endpoint to subscribe to: name at least one"),
            ConnectError::Twice { endpoint } => write!(f, "endpoint {endpoint:?} is named twice"),
            ConnectError::BadEndpoint { endpoint, reason } => write!(f, "endpoint {endpoint:?} {reason}"),
            ConnectError::BadSetting { setting, reason } => write!(f, "{setting} {reason}"),
            ConnectError::System { endpoint, cause } => write!(f, "endpoint {endpoint:?}: {cause}"),
            ConnectError::Resources(shortage) => write!(f, "cannot open the socket: {shortage}"),
        }
    }
}

/// What is said already is no source of its own, lest a chain of errors says it twice.
impl error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            ConnectError::System { cause, .. } => cause.source(),
            ConnectError::Resources(shortage) => shortage.source(),
            _ => None,
        }
    }
}

impl From<Shortage> for ConnectError {
    fn from(shortage: Shortage) -> Self {
        ConnectError::Resources(shortage)
    }
}
