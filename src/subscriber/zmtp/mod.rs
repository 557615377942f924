//! The side of ZMTP 3.0 that a SUB socket speaks, as a state machine over bytes: greeting, handshake, subscription, and
//! messages, of which no more is kept than is allowed.
//!
//! libzmq is no help here: it bounds a subscriber's memory in messages of any size, a message's frames not at all, and of a
//! frame or a peer it does not like it says nothing but that the connection is closed.

mod budget;
mod message;
#[cfg(test)]
mod tests;

pub use self::budget::{Budget, Limits};
use self::budget::{PASSED_OVER, SMALL};
pub use self::message::Arrival;
use self::message::{Frame, Into, Message};
use super::delivery::Malformed;
use crate::zmtp::{self, Broken, COMMAND, LONG, MAX_FRAMES, MORE};

/// Nothing that is said in a command takes more.
const MAX_COMMAND: u64 = 64 << 10;

/// One connection's reader.
#[derive(Debug)]
pub struct Machine {
    /// What to subscribe to once the handshake is over.
    subscription: Option<Vec<u8>>,
    state: State,
    /// Of the payload on its way, in the budget.
    reserved: u64,
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

/// What some bytes came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// The handshake is over.
    Ready,
    /// There is no room for a payload now.
    NoRoom,
    /// A message, or what is none.
    Arrival(Arrival),
}

impl Machine {
    /// A connection that is new; `subscription` is the prefix of the topics to ask for.
    pub fn new(subscription: &[u8]) -> Self {
        Machine {
            subscription: Some(subscription.to_vec()),
            state: State::Greeting(Vec::with_capacity(64)),
            reserved: 0,
            message: Message::default(),
        }
    }

    /// What of the budget it holds, and has to give back when it ends.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Whether nothing was heard at all.
    pub fn is_silent(&self) -> bool {
        matches!(&self.state, State::Greeting(heard) if heard.is_empty())
    }

    /// Takes in what has come, up to the first thing worth a word. Returns how much that was, and what it came to; what is
    /// to be answered goes to `out`.
    ///
    /// # Errors
    ///
    /// The connection is of no use any more.
    pub fn take(
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
                    if !zmtp::judge_greeting(heard)? {
                        return Ok((at, Heard::Nothing));
                    }
                    out.extend_from_slice(&zmtp::ready(b"SUB"));
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
                    let (is_last, into) = (frame.flags & MORE == 0, std::mem::replace(&mut frame.into, Into::Nothing));
                    self.state = State::Head { bytes: [0; 9], len: 0 };
                    match into {
                        Into::Command(body) => {
                            let is_over = self.command(&body, out)?;
                            if is_over {
                                return Ok((at, Heard::Ready));
                            }
                        }
                        _ if is_last => {
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
                let of = zmtp::socket_type(rest).ok_or(Broken::Protocol("a handshake without a socket type"))?;
                if of != b"PUB" && of != b"XPUB" {
                    return Err(Broken::SocketType(zmtp::printable(of)));
                }
                let subscription = self.subscription.take().unwrap_or_default();
                out.extend_from_slice(&zmtp::head(subscription.len() as u64 + 1));
                out.push(1);
                out.extend_from_slice(&subscription);
                Ok(true)
            }
            b"ERROR" => {
                let reason = rest.split_first().map_or(&b""[..], |(_, reason)| reason);
                Err(Broken::Refused(zmtp::printable(reason)))
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
