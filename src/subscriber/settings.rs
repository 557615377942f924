//! What a subscriber is told before it connects, and why it may refuse.

use crate::error::Shortage;
use crate::tracker::Base;
use std::net::Ipv6Addr;
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
/// Memory: libzmq holds up to `receive_hwm` messages per endpoint (and as many again in the kernel's buffers and on
/// their way), each frame of at most `max_frame_bytes`; what no limit of libzmq bounds is the number of frames in one
/// message. On this side, each source costs about 20 KiB, and there are at most `max_topics` per endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which topics are taken. Default: all.
    pub topic: TopicFilter,
    /// The number that publishers begin at. Default: [`Base::Auto`].
    pub base: Base,
    /// How many messages libzmq holds for each endpoint before it stops reading from the connection; the publisher
    /// then drops what exceeds its own mark, and a gap shows here. 0 is no limit. Default: 10,000.
    pub receive_hwm: u32,
    /// Largest frame in bytes. A publisher that sends a larger one is *disconnected* by libzmq, and connected again a
    /// second later; what it sent meanwhile shows as a gap. `None` is no limit. Default: 16 MiB, well above what masters send (about
    /// 1 MiB) and engines do.
    pub max_frame_bytes: Option<u32>,
    /// Whether the messages that are duplicates are delivered too, behind the notice that says so. Default: no.
    pub deliver_duplicates: bool,
    /// How many topics of one endpoint are followed. Messages of further ones are malformed: a tracker each is what
    /// they would cost. Default: 256.
    pub max_topics: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            topic: TopicFilter::default(),
            base: Base::Auto,
            receive_hwm: 10_000,
            max_frame_bytes: Some(16 << 20),
            deliver_duplicates: false,
            max_topics: 256,
        }
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
    /// The endpoint is not one that can be connected to.
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
    /// The system or libzmq refused.
    System {
        /// The endpoint.
        endpoint: String,
        /// What it said.
        cause: io::Error,
    },
    /// The system has not what the sockets take. Found out before they are made, since libzmq ends the process where it
    /// lacks any of it; what other threads take at that very moment is not covered.
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

/// Finds what libzmq would panic on, let through, or refuse without a reason.
pub(super) fn check_endpoint(endpoint: &str) -> Result<(), &'static str> {
    if endpoint.contains('\0') {
        return Err("contains a NUL byte");
    }
    if endpoint.trim() != endpoint {
        return Err("has white space around it");
    }
    let Some((scheme, address)) = endpoint.split_once("://") else {
        return Err("names no transport: write it like tcp://127.0.0.1:5557");
    };
    match scheme {
        "ipc" if address.is_empty() => Err("names no path"),
        "ipc" => Ok(()),
        "tcp" => {
            let Some((host, port)) = address.rsplit_once(':') else {
                return Err("names no port: write it like tcp://127.0.0.1:5557");
            };
            let v6 = host.strip_prefix('[').map(|rest| rest.strip_suffix(']').unwrap_or(rest));
            if v6.map_or(host.contains(':'), |v6| !host.ends_with(']') || v6.parse::<Ipv6Addr>().is_err()) {
                return Err("has no IPv6 address: write it like tcp://[::1]:5557");
            }
            if host.is_empty() || host == "*" {
                return Err("names no host: a subscriber connects to one");
            }
            if host.contains(|c: char| c.is_whitespace() || ";/".contains(c)) {
                return Err("has a host that is no address");
            }
            match port.parse::<u16>() {
                Ok(1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
                _ => Err("has no port from 1 to 65535"),
            }
        }
        _ => Err("has a transport that is not supported: use tcp or ipc"),
    }
}
