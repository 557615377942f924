//! What a peer says, as a state machine over bytes: no socket, no clock.
//!
//! Peers of ZMTP 3.0 and 3.1 with the NULL mechanism, and of 2.0 (libzmq 3). Whatever else comes ends that peer's connection
//! and nothing more. What is kept of a peer is one frame of at most [`MAX_COMMAND`] bytes while it arrives, and two flags.
//!
//! The stream's topic is empty, so the empty prefix is the only one that matches it: a peer that has subscribed to it gets
//! everything, any other subscription (a longer prefix matches nothing) is counted and forgotten. As with libzmq, one
//! cancellation undoes any number of equal subscriptions.

use crate::zmtp::{self, COMMAND, LONG, MORE};
use std::fmt;
use std::time::Duration;

/// Largest message of a peer, bytes: a subscription.
const MAX_MESSAGE: u64 = 256;
/// Largest command of a peer, bytes: a handshake with its properties.
const MAX_COMMAND: u64 = 1024;
/// Of a PING's context, bytes.
const MAX_CONTEXT: usize = 16;

/// Socket types of version 2.
const V2_PUB: u8 = 1;
const V2_SUB: u8 = 2;
const V2_XSUB: u8 = 10;

/// Why a peer is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bad {
    /// It speaks something else.
    NotZmtp,
    /// ZMTP 1: libzmq 2.
    TooOld,
    /// It wants a security mechanism.
    Mechanism(String),
    /// It is no subscriber.
    SocketType(String),
    /// Its address is not among those that may connect. Where its version can be told, it was.
    NotAllowed,
    /// It has ended the handshake with an error of its own.
    Refuses(String),
    /// It speaks ZMTP and breaks its rules.
    Protocol(&'static str),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::NotZmtp => f.write_str("it does not speak ZeroMQ's protocol"),
            Bad::TooOld => f.write_str("it speaks ZMTP 1 (libzmq 2), which is not served"),
            Bad::Mechanism(name) => write!(f, "it wants the security mechanism {name:?}, and there is only NULL"),
            Bad::SocketType(name) => write!(f, "it is a socket of type {name:?}, and not SUB or XSUB"),
            Bad::NotAllowed => f.write_str("kv_events_allow_peers does not name its address"),
            Bad::Refuses(reason) => write!(f, "it refuses: {reason}"),
            Bad::Protocol(what) => write!(f, "it breaks the rules of ZMTP: {what}"),
        }
    }
}

/// Reads one peer.
#[derive(Debug)]
pub struct Parser {
    state: State,
    is_allowed: bool,
    is_version_2: bool,
    is_ready: bool,
    is_subscribed: bool,
    other_subscriptions: u32,
    /// The frame at hand goes on a message that began before: nothing of it is looked at.
    is_continued: bool,
    ttl: Option<Duration>,
}

#[derive(Debug)]
enum State {
    /// Up to 64 bytes.
    Greeting(Vec<u8>),
    /// Of a frame: its flags, then its size in one byte or eight.
    Head {
        bytes: [u8; 9],
        len: usize,
    },
    Body {
        flags: u8,
        left: u64,
        body: Vec<u8>,
    },
}

/// Between two frames.
const NEXT: State = State::Head { bytes: [0; 9], len: 0 };

/// Signature and version, which is all that may be said before the other's version is known.
pub fn opening() -> [u8; 11] {
    *zmtp::greeting().first_chunk().expect("it is longer")
}

impl Parser {
    /// A connection that is new. One that is not allowed is told so as soon as it can understand it.
    pub fn new(is_allowed: bool) -> Self {
        Parser {
            state: State::Greeting(Vec::new()),
            is_allowed,
            is_version_2: false,
            is_ready: false,
            is_subscribed: false,
            other_subscriptions: 0,
            is_continued: false,
            ttl: None,
        }
    }

    /// Whether the handshake is over.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether it wants the stream.
    pub fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    /// Subscriptions that match nothing of the stream, so far.
    pub fn other_subscriptions(&self) -> u32 {
        self.other_subscriptions
    }

    /// After how much silence the peer wants to be given up, if it has said so with a PING.
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// Takes in all that has come; what is to be answered goes to `out`, also where it ends in an error.
    ///
    /// # Errors
    ///
    /// The connection is of no use any more.
    pub fn take(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<(), Bad> {
        while let Some(&first) = input.first() {
            match &mut self.state {
                State::Greeting(heard) => {
                    heard.push(first);
                    input = &input[1..];
                    self.greeting(out)?;
                }
                State::Head { bytes, len } => {
                    bytes[*len] = first;
                    *len += 1;
                    input = &input[1..];
                    let needed = if bytes[0] & LONG != 0 { 9 } else { 2 };
                    if *len < needed {
                        continue;
                    }
                    let size = bytes[1..needed].iter().fold(0, |size, &byte| size << 8 | u64::from(byte));
                    let flags = bytes[0];
                    self.begin(flags, size)?;
                    if size == 0 {
                        self.end(flags, &[], out)?;
                    }
                }
                State::Body { flags, left, body } => {
                    let taken = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    body.extend_from_slice(&input[..taken]);
                    *left -= taken as u64;
                    input = &input[taken..];
                    if *left == 0 {
                        let (flags, body) = (*flags, std::mem::take(body));
                        self.end(flags, &body, out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// One byte more of the greeting has come.
    fn greeting(&mut self, out: &mut Vec<u8>) -> Result<(), Bad> {
        let State::Greeting(heard) = &self.state else { return Ok(()) };
        let at = heard.len() - 1;
        match (at, heard[at]) {
            (0, first) if first != 0xff => {
                // Version 1 begins with the length of an identity. Anything may look like that; what has 10 bytes and no
                // signature is none of ours in any case.
                return Err(if first == 1 { Bad::TooOld } else { Bad::NotZmtp });
            }
            (9, last) if last & 1 == 0 => return Err(Bad::TooOld),
            (10, 0) => return Err(Bad::TooOld),
            (10, 1 | 2) => {
                if !self.is_allowed {
                    return Err(Bad::NotAllowed);
                }
                self.is_version_2 = true;
                // Our type, and an identity without a byte.
                out.extend_from_slice(&[V2_PUB, 0, 0]);
            }
            (10, _) => {
                let mut greeting = zmtp::greeting();
                greeting[11] = 1;
                out.extend_from_slice(&greeting[11..]);
            }
            (11, socket_type) if self.is_version_2 => {
                if socket_type != V2_SUB && socket_type != V2_XSUB {
                    return Err(Bad::SocketType(socket_type.to_string()));
                }
                self.state = NEXT;
            }
            (31, _) => {
                let name = heard[12..32].split(|&byte| byte == 0).next().unwrap_or_default();
                if name != b"NULL" {
                    return Err(Bad::Mechanism(zmtp::printable(name)));
                }
            }
            (63, _) => {
                if !self.is_allowed {
                    error(out, b"kv_events_allow_peers does not name your address");
                    return Err(Bad::NotAllowed);
                }
                out.extend_from_slice(&zmtp::ready(b"PUB"));
                self.state = NEXT;
            }
            _ => {}
        }
        Ok(())
    }

    /// A frame begins.
    fn begin(&mut self, flags: u8, size: u64) -> Result<(), Bad> {
        let is_command = flags & COMMAND != 0;
        if flags & !(MORE | LONG | COMMAND) != 0 || is_command && (flags & MORE != 0 || self.is_version_2) {
            return Err(Bad::Protocol("a frame with unknown flags"));
        }
        if !is_command && !self.is_ready && !self.is_version_2 {
            return Err(Bad::Protocol("a message before the handshake"));
        }
        if size > if is_command { MAX_COMMAND } else { MAX_MESSAGE } {
            return Err(Bad::Protocol("a frame that is longer than any subscription"));
        }
        self.state = State::Body { flags, left: size, body: Vec::new() };
        Ok(())
    }

    /// A frame is complete.
    fn end(&mut self, flags: u8, body: &[u8], out: &mut Vec<u8>) -> Result<(), Bad> {
        self.state = NEXT;
        if flags & COMMAND != 0 {
            return self.command(body, out);
        }
        if self.is_version_2 && !self.is_ready {
            // Its identity, which nobody asks for.
            self.is_ready = true;
            return Ok(());
        }
        let is_whole = !std::mem::replace(&mut self.is_continued, flags & MORE != 0) && flags & MORE == 0;
        match body.split_first() {
            Some((1, topic)) if is_whole => self.subscribe(topic),
            Some((0, topic)) if is_whole => self.cancel(topic),
            // Of XSUB sockets, for XPUB ones.
            _ => {}
        }
        Ok(())
    }

    fn subscribe(&mut self, topic: &[u8]) {
        if topic.is_empty() {
            self.is_subscribed = true;
        } else {
            self.other_subscriptions = self.other_subscriptions.saturating_add(1);
        }
    }

    fn cancel(&mut self, topic: &[u8]) {
        if topic.is_empty() {
            self.is_subscribed = false;
        }
    }

    fn command(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Bad> {
        let Some((name, rest)) = body.split_first().and_then(|(&len, rest)| rest.split_at_checked(len.into())) else {
            return Err(Bad::Protocol("a command without a name"));
        };
        match name {
            b"READY" if !self.is_ready => {
                let of = zmtp::socket_type(rest).ok_or(Bad::Protocol("a handshake without a socket type"))?;
                if of != b"SUB" && of != b"XSUB" {
                    error(out, b"a PUB socket talks to SUB and XSUB");
                    return Err(Bad::SocketType(zmtp::printable(of)));
                }
                self.is_ready = true;
            }
            b"ERROR" => {
                let reason = rest.split_first().map_or(&b""[..], |(_, reason)| reason);
                return Err(Bad::Refuses(zmtp::printable(reason)));
            }
            _ if !self.is_ready => return Err(Bad::Protocol("a command before the handshake")),
            b"SUBSCRIBE" => self.subscribe(rest),
            b"CANCEL" => self.cancel(rest),
            b"PING" => {
                let Some((ttl, context)) = rest.split_first_chunk::<2>() else {
                    return Err(Bad::Protocol("a PING without a time"));
                };
                let tenths = u64::from(u16::from_be_bytes(*ttl));
                self.ttl = (tenths > 0).then(|| Duration::from_millis(100 * tenths));
                let context = &context[..context.len().min(MAX_CONTEXT)];
                out.extend_from_slice(&[COMMAND, 5 + context.len() as u8]);
                out.extend_from_slice(b"\x04PONG");
                out.extend_from_slice(context);
            }
            // PONG, and whatever later versions say.
            _ => {}
        }
        Ok(())
    }
}

/// The command that ends a handshake, with a reason for whoever reads it.
fn error(out: &mut Vec<u8>, reason: &[u8]) {
    out.extend_from_slice(&[COMMAND, 7 + reason.len() as u8]);
    out.extend_from_slice(b"\x05ERROR");
    out.push(reason.len() as u8);
    out.extend_from_slice(reason);
}
