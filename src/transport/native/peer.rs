//! One connection.

use super::figures::Figures;
use super::parser::{Bad, Parser, opening};
use super::queue::{Messages, Outbox, Shared};
use rustix::event::epoll::EventFlags;
use socket2::Socket;
use std::io::{self, IoSlice, Read};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a handshake may take.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes read from one peer before others have their turn.
const READ_TURN: usize = 16 << 10;
/// Bytes written to one peer before others have their turn.
const WRITE_TURN: usize = 1 << 20;
/// Answers that wait to be taken: a peer that has caused more is not read from.
const MOST_ANSWERS: usize = 4 << 10;
/// Slices of one write.
const SLICES: usize = 64;

/// What may wait for one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Messages; 0 for any number.
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

pub(super) struct Peer {
    socket: Socket,
    parser: Parser,
    outbox: Outbox,
    pub(super) ip: Option<IpAddr>,
    accepted: Instant,
    heard: Instant,
    /// The system takes no more for now.
    is_blocked: bool,
    /// Nothing but what is in the outbox is sent any more.
    is_ending: bool,
    /// What epoll waits for.
    pub(super) interest: EventFlags,
    pub(super) figures: Arc<Figures>,
    dropped: (u64, u64),
    sent_bytes: u64,
}

/// How far a write came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// All is with the system.
    All,
    /// The system takes no more for now.
    Blocked,
    /// There is more, and others have their turn.
    More,
}

/// Why a peer goes.
#[derive(Debug)]
pub(super) enum Gone {
    /// It has closed.
    Closed,
    System,
    Bad(Bad),
}

impl Peer {
    pub(super) fn new(socket: Socket, address: String, ip: Option<IpAddr>, is_allowed: bool, now: Instant) -> Self {
        let mut outbox = Outbox::default();
        outbox.answers().extend_from_slice(&opening());
        Peer {
            socket,
            parser: Parser::new(is_allowed),
            outbox,
            ip,
            accepted: now,
            heard: now,
            is_blocked: false,
            is_ending: false,
            interest: EventFlags::empty(),
            figures: Arc::new(Figures::new(address)),
            dropped: (0, 0),
            sent_bytes: 0,
        }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.parser.is_subscribed() && !self.is_ending
    }

    /// Whether it is in its handshake, or refused and not gone.
    pub(super) fn is_stranger(&self) -> bool {
        !self.parser.is_ready() || self.is_ending
    }

    pub(super) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// Whether everything it was to get is with the system.
    pub(super) fn is_served(&self) -> bool {
        self.outbox.is_empty()
    }

    /// When it has been silent for too long.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        match self.parser.ttl() {
            _ if !self.parser.is_ready() || self.is_ending => now.saturating_duration_since(self.accepted) >= HANDSHAKE,
            Some(ttl) => now.saturating_duration_since(self.heard) >= ttl,
            None => false,
        }
    }

    /// What epoll should wait for.
    pub(super) fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        if self.outbox.answers_len() < MOST_ANSWERS {
            wanted |= EventFlags::IN;
        }
        if self.is_blocked {
            wanted |= EventFlags::OUT;
        }
        wanted
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Queues a message, or drops it if there is no room; false then. `is_scarce`: only for those that wait for nothing.
    pub(super) fn offer(&mut self, shared: &Arc<Shared>, marks: Marks, is_scarce: bool) -> bool {
        let waits = self.outbox.messages() > 0;
        let is_full = (marks.messages > 0 && self.outbox.messages() >= marks.messages)
            || self.outbox.bytes().saturating_add(shared.len()) > marks.bytes
            || is_scarce;
        if (waits && is_full) || !self.outbox.push(shared) {
            self.dropped.0 += 1;
            self.dropped.1 += shared.events();
            self.figures.dropped_messages.set(self.dropped.0);
            self.figures.dropped_events.set(self.dropped.1);
            return false;
        }
        if self.is_blocked {
            self.note();
        }
        true
    }

    /// Reads what has come, so much of it as is its turn, and answers. Returns why it was refused, if it was and is told so:
    /// it stays for as long as it takes to hear that.
    pub(super) fn read(&mut self, messages: &mut Messages, now: Instant) -> Result<Option<Bad>, Gone> {
        let mut input = [0; 4096];
        let mut read = 0;
        while read < READ_TURN && self.outbox.answers_len() < MOST_ANSWERS {
            match (&self.socket).read(&mut input) {
                Ok(0) => return Err(Gone::Closed),
                Ok(bytes) => {
                    read += bytes;
                    self.heard = now;
                    if self.is_ending {
                        continue;
                    }
                    if let Err(bad) = self.parser.take(&input[..bytes], self.outbox.answers()) {
                        return self.refuse(messages, bad).map(Some);
                    }
                    if bytes < input.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(Gone::System),
            }
        }
        if self.outbox.answers_len() > 0 && !self.is_blocked {
            self.flush(messages)?;
        }
        Ok(None)
    }

    /// Tells it why, if there is a way to, and then only hears it out.
    fn refuse(&mut self, messages: &mut Messages, bad: Bad) -> Result<Bad, Gone> {
        let is_told = matches!(bad, Bad::NotAllowed | Bad::SocketType(_)) && self.outbox.answers_len() > 0;
        if !is_told || !matches!(self.flush(messages), Ok(Flushed::All)) {
            return Err(Gone::Bad(bad));
        }
        self.is_ending = true;
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        Ok(bad)
    }

    /// Writes what the system takes, so much of it as is its turn.
    pub(super) fn flush(&mut self, messages: &mut Messages) -> Result<Flushed, Gone> {
        let mut left = WRITE_TURN;
        let flushed = loop {
            if self.outbox.is_empty() {
                break Flushed::All;
            }
            if left == 0 {
                break Flushed::More;
            }
            let mut slices: [IoSlice<'_>; SLICES] = std::array::from_fn(|_| IoSlice::new(&[]));
            let count = self.outbox.slices(&mut slices);
            let wanted: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            match self.socket.send_vectored_with_flags(&slices[..count], libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) {
                Ok(written) => {
                    self.outbox.written(written, messages);
                    self.sent_bytes += written as u64;
                    left = left.saturating_sub(written);
                    if written < wanted {
                        break Flushed::Blocked;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Flushed::Blocked,
                Err(_) => return Err(Gone::System),
            }
        };
        self.is_blocked = flushed == Flushed::Blocked;
        self.note();
        Ok(flushed)
    }

    /// Has the figures say how it is.
    pub(super) fn note(&self) {
        self.figures.queued_messages.set(self.outbox.messages() as u64);
        self.figures.queued_bytes.set(self.outbox.bytes() as u64);
        self.figures.sent_bytes.set(self.sent_bytes);
    }

    /// Closes, for whoever else may hold the socket too (a forked child), and gives back what waited.
    pub(super) fn close(mut self, messages: &mut Messages) {
        self.outbox.clear(messages);
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Ends the sending side, behind what the system has, and takes in what is left to be read, so that the close is no reset.
    pub(super) fn finish(self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        let mut input = [0; 4096];
        for _ in 0..16 {
            if !matches!((&self.socket).read(&mut input), Ok(1..)) {
                break;
            }
        }
    }
}
