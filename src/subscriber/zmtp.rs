//! The side of ZMTP 3.0 that a SUB socket speaks, as a state machine over bytes: greeting, handshake, subscription, and
//! messages, of which no more is kept than is allowed.
//!
//! libzmq is no help here: it bounds a subscriber's memory in messages of any size, a message's frames not at all, and of a
//! frame or a peer it does not like it says nothing but that the connection is closed.

use super::delivery::Malformed;
use bytes::Bytes;
use std::fmt;

/// What came in, as far as the frames tell.
#[derive(Debug)]
pub(super) enum Arrival {
    Message { topic: Vec<u8>, sequence: u64, payload: Bytes },
    Malformed { bytes: u64, topic: Vec<u8>, sequence: Option<u64>, reason: Malformed },
}

/// Why a connection is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
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
    Frame { bytes: u64, limit: u64 },
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
            Broken::Protocol(what) => write!(f, "somebody who breaks the rules of ZMTP: {what}"),
            Broken::Frame { bytes, limit } => {
                write!(f, "somebody who sends a frame of {bytes} bytes, where the limit is {limit}")
            }
            Broken::Endless => write!(f, "somebody who sends a message of more than {MAX_FRAMES} frames"),
        }
    }
}

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) frame: u64,
    pub(super) topic: u64,
}

/// Bytes that all connections of a subscriber may hold of payloads still on their way.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    used: u64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Budget { limit, used: 0 }
    }

    /// One payload is always let in, whatever its size.
    fn take(&mut self, bytes: u64) -> bool {
        let fits = self.used == 0 || self.used.saturating_add(bytes) <= self.limit;
        if fits {
            self.used += bytes;
        }
        fits
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        self.used -= bytes;
    }
}

/// Payloads up to this size count in no budget: each connection may have one.
const SMALL: u64 = 64 << 10;
/// A frame above the limit is passed over if it has at most this many bytes: losing the connection would cost more.
const PASSED_OVER: u64 = 1 << 30;
/// Frames of one message, after which no end of it is waited for.
pub(super) const MAX_FRAMES: usize = 1024;
/// Nothing that is said in a command takes more.
const MAX_COMMAND: u64 = 64 << 10;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// What we say first.
pub(super) fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

#[derive(Debug)]
pub(super) struct Machine {
    /// What to subscribe to once the handshake is over.
    subscription: Option<Vec<u8>>,
    state: State,
    /// Of the payload on its way, in the budget.
    pub(super) reserved: u64,
    message: Message,
}

#[derive(Debug)]
enum State {
    Greeting(Vec<u8>),
    /// Between two frames: what of the next one's head is there.
    Head {
        bytes: [u8; 9],
        len: usize,
    },
    /// Waiting for room in the budget.
    Room {
        frame: Frame,
    },
    Body(Frame),
}

#[derive(Clone, Debug)]
struct Frame {
    flags: u8,
    left: u64,
    into: Into,
}

#[derive(Clone, Debug)]
enum Into {
    Nothing,
    Topic,
    Sequence,
    Payload,
    Command(Vec<u8>),
}

/// The message on its way.
#[derive(Debug, Default)]
struct Message {
    frames: usize,
    bytes: u64,
    topic: Vec<u8>,
    /// It was too long to be kept.
    has_no_topic: bool,
    sequence: Vec<u8>,
    sequence_len: u64,
    payload: Vec<u8>,
    payload_len: u64,
    fault: Option<Malformed>,
}

/// What some bytes came to.
#[derive(Debug)]
pub(super) enum Heard {
    /// Nothing yet.
    Nothing,
    /// The handshake is over.
    Ready,
    /// There is no room for a payload now.
    NoRoom,
    Arrival(Arrival),
}

impl Machine {
    pub(super) fn new(subscription: &[u8]) -> Self {
        Machine {
            subscription: Some(subscription.to_vec()),
            state: State::Greeting(Vec::with_capacity(64)),
            reserved: 0,
            message: Message::default(),
        }
    }

    /// Whether nothing was heard at all.
    pub(super) fn is_silent(&self) -> bool {
        matches!(&self.state, State::Greeting(heard) if heard.is_empty())
    }

    /// Takes in what has come, up to the first thing worth a word. Returns how much that was, and what it came to; what is
    /// to be answered goes to `out`.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        limits: Limits,
        budget: &mut Budget,
    ) -> Result<(usize, Heard), Broken> {
        let mut at = 0;
        loop {
            if let State::Room { frame } = &self.state {
                if !budget.take(frame.left) {
                    return Ok((at, Heard::NoRoom));
                }
                self.reserved = frame.left;
                self.state = State::Body(frame.clone());
            }
            let rest = &input[at..];
            match &mut self.state {
                State::Greeting(heard) => {
                    let taken = rest.len().min(64 - heard.len());
                    heard.extend_from_slice(&rest[..taken]);
                    at += taken;
                    if !judge_greeting(heard)? {
                        return Ok((at, Heard::Nothing));
                    }
                    out.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
                    self.state = State::Head { bytes: [0; 9], len: 0 };
                }
                State::Head { bytes, len } => {
                    let needed = if *len > 0 && bytes[0] & LONG != 0 { 9 } else { 2 };
                    if *len < needed {
                        let taken = rest.len().min(needed - *len);
                        bytes[*len..*len + taken].copy_from_slice(&rest[..taken]);
                        (*len, at) = (*len + taken, at + taken);
                        if taken == 0 {
                            return Ok((at, Heard::Nothing));
                        }
                        continue;
                    }
                    let (flags, size) = match needed {
                        2 => (bytes[0], u64::from(bytes[1])),
                        _ => (bytes[0], bytes[1..].iter().fold(0, |size, &byte| size << 8 | u64::from(byte))),
                    };
                    let frame = self.begin(flags, size, limits)?;
                    let is_large = matches!(frame.into, Into::Payload) && size > SMALL;
                    self.state = if is_large { State::Room { frame } } else { State::Body(frame) };
                }
                State::Body(frame) => {
                    let taken = usize::try_from(frame.left).unwrap_or(usize::MAX).min(rest.len());
                    self.message.keep(frame, &rest[..taken]);
                    frame.left -= taken as u64;
                    at += taken;
                    if frame.left > 0 {
                        return Ok((at, Heard::Nothing));
                    }
                    let frame = frame.clone();
                    self.state = State::Head { bytes: [0; 9], len: 0 };
                    match frame.into {
                        Into::Command(body) => {
                            let is_over = self.command(&body, out)?;
                            if is_over {
                                return Ok((at, Heard::Ready));
                            }
                        }
                        _ if frame.flags & MORE == 0 => {
                            budget.give_back(std::mem::take(&mut self.reserved));
                            return Ok((at, Heard::Arrival(std::mem::take(&mut self.message).arrival())));
                        }
                        _ => {}
                    }
                }
                State::Room { .. } => unreachable!("left above"),
            }
        }
    }

    /// A frame begins: where it goes.
    fn begin(&mut self, flags: u8, size: u64, limits: Limits) -> Result<Frame, Broken> {
        if flags & !(MORE | LONG | COMMAND) != 0 || (flags & COMMAND != 0 && flags & MORE != 0) {
            return Err(Broken::Protocol("a frame with unknown flags"));
        }
        if flags & COMMAND != 0 {
            return match size {
                0..=MAX_COMMAND => Ok(Frame { flags, left: size, into: Into::Command(Vec::new()) }),
                _ => Err(Broken::Protocol("a command that is far too long")),
            };
        }
        if !self.is_ready() {
            return Err(Broken::Protocol("a message before the handshake"));
        }
        let message = &mut self.message;
        message.frames += 1;
        message.bytes = message.bytes.saturating_add(size);
        if message.frames > MAX_FRAMES {
            return Err(Broken::Endless);
        }
        let mut into = match message.frames {
            1 => Into::Topic,
            2 => {
                message.sequence_len = size;
                Into::Sequence
            }
            3 => Into::Payload,
            _ => Into::Nothing,
        };
        let is_topic = matches!(into, Into::Topic);
        if size > limits.frame {
            if size > PASSED_OVER {
                return Err(Broken::Frame { bytes: size, limit: limits.frame });
            }
            message.fault.get_or_insert(Malformed::TooLarge { bytes: size, limit: limits.frame });
            into = Into::Nothing;
        } else if matches!(into, Into::Topic) && size > limits.topic {
            message.fault.get_or_insert(Malformed::TopicLength(size));
            into = Into::Nothing;
        } else if message.fault.is_some() && matches!(into, Into::Payload) {
            into = Into::Nothing;
        }
        message.has_no_topic |= is_topic && matches!(into, Into::Nothing);
        if matches!(into, Into::Payload) {
            message.payload_len = size;
        }
        Ok(Frame { flags, left: size, into })
    }

    fn is_ready(&self) -> bool {
        self.subscription.is_none()
    }

    /// A command. Returns whether it ends the handshake.
    fn command(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<bool, Broken> {
        let Some((name, rest)) = body.split_first().and_then(|(&len, rest)| rest.split_at_checked(len.into())) else {
            return Err(Broken::Protocol("a command without a name"));
        };
        match name {
            b"READY" if !self.is_ready() => {
                let of = socket_type(rest).ok_or(Broken::Protocol("a handshake without a socket type"))?;
                if of != b"PUB" && of != b"XPUB" {
                    return Err(Broken::SocketType(printable(of)));
                }
                let subscription = self.subscription.take().unwrap_or_default();
                out.extend_from_slice(&head(subscription.len() as u64 + 1));
                out.push(1);
                out.extend_from_slice(&subscription);
                Ok(true)
            }
            b"ERROR" => {
                let reason = rest.split_first().map_or(&b""[..], |(_, reason)| reason);
                Err(Broken::Refused(printable(reason)))
            }
            // Two bytes say how long to wait for the next one; the rest comes back.
            b"PING" if self.is_ready() => {
                let context = rest.get(2..).unwrap_or_default();
                let context = &context[..context.len().min(16)];
                out.extend_from_slice(&[COMMAND, 5 + context.len() as u8]);
                out.extend_from_slice(b"\x04PONG");
                out.extend_from_slice(context);
                Ok(false)
            }
            _ if self.is_ready() => Ok(false),
            _ => Err(Broken::Protocol("a command before the handshake")),
        }
    }
}

fn head(size: u64) -> Vec<u8> {
    match u8::try_from(size) {
        Ok(size) => vec![0, size],
        Err(_) => [&[LONG][..], &size.to_be_bytes()].concat(),
    }
}

/// Whether the greeting is complete.
fn judge_greeting(heard: &[u8]) -> Result<bool, Broken> {
    if heard.starts_with(b"HTTP") {
        return Err(Broken::NotZeroMq("an HTTP server"));
    }
    if heard.first().is_some_and(|&first| first != 0xff && first != b'H')
        || (heard.first() == Some(&b'H') && heard.len() >= 4)
        || heard.get(9).is_some_and(|last| last & 1 == 0)
    {
        return Err(Broken::NotZeroMq("something"));
    }
    if heard.get(10).is_some_and(|&version| version < 3) {
        return Err(Broken::Older);
    }
    let Some(mechanism) = heard.get(12..32) else { return Ok(false) };
    let name = mechanism.split(|&byte| byte == 0).next().unwrap_or_default();
    if name != b"NULL" {
        return Err(Broken::Mechanism(printable(name)));
    }
    Ok(heard.len() == 64)
}

/// The value of the property `Socket-Type`.
fn socket_type(mut properties: &[u8]) -> Option<&[u8]> {
    loop {
        let (&len, rest) = properties.split_first()?;
        let (name, rest) = rest.split_at_checked(len.into())?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*len).try_into().ok()?)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        properties = rest;
    }
}

/// Words of a peer, short and harmless.
fn printable(text: &[u8]) -> String {
    text[..text.len().min(64)].escape_ascii().to_string()
}

impl Message {
    fn keep(&mut self, frame: &mut Frame, bytes: &[u8]) {
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

    fn arrival(self) -> Arrival {
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
