//! Why a connection ends.

use std::fmt;

/// Frames of one message, after which no end of it is waited for.
pub const MAX_FRAMES: usize = 1024;

/// Why a connection is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// What is there speaks something else.
    NotZeroMq(&'static str),
    /// ZeroMQ before ZMTP 3.
    Older,
    /// It wants a security mechanism.
    Mechanism(String),
    /// Another kind of socket.
    SocketType(String),
    /// It said why it does not want us.
    Refused(String),
    /// It speaks ZMTP, and breaks its rules.
    Protocol(&'static str),
    /// A frame that it would take too long to pass over.
    Frame {
        /// Its size, bytes.
        bytes: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// A message of frames without end.
    Endless,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::NotZeroMq(what) => write!(f, "{what}, which does not speak ZeroMQ"),
            Broken::Older => f.write_str("a ZeroMQ socket older than ZMTP 3 (libzmq 4), which is not understood"),
            Broken::Mechanism(name) => write!(f, "a ZeroMQ socket that wants the security mechanism {name}"),
            Broken::SocketType(name) => {
                write!(f, "a ZeroMQ socket of type {name}, which publishes nothing (PUB and XPUB do)")
            }
            Broken::Refused(reason) => write!(f, "a ZeroMQ socket that refuses us: {reason}"),
            Broken::Protocol(what) => write!(f, "a peer that breaks the rules of ZMTP: {what}"),
            Broken::Frame { bytes, limit } => {
                write!(f, "a peer that sends a frame of {bytes} bytes, where the limit is {limit}")
            }
            Broken::Endless => write!(f, "a peer that sends a message of more than {MAX_FRAMES} frames"),
        }
    }
}
