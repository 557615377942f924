//! One connection: what is read from it, and how far it has come.

use super::stream::Stream;
use super::zmtp::{Arrival, Budget, Heard, Limits, Machine};
use crate::zmtp::{self, Broken};
use std::io;
use std::time::{Duration, Instant};

/// How long a connection may take to be made, and then to say who is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes read at once.
const READ: usize = 64 << 10;
/// Bytes after which others have their turn.
const TURN: usize = 1 << 20;

pub(super) struct Link {
    stream: Stream,
    machine: Machine,
    out: Vec<u8>,
    /// What was read and not taken in yet is `input[at..]`.
    input: Vec<u8>,
    at: usize,
    state: State,
    /// Of what is not there yet.
    deadline: Option<Instant>,
    /// It is among those to be asked.
    pub(super) is_queued: bool,
    /// The endpoint it belongs to, and which of its peers it is, once it is up.
    pub(super) endpoint: u64,
    pub(super) peer: Option<usize>,
    /// Where it comes from, if it came to us.
    pub(super) from: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Greeting,
    Up,
}

/// What asking it came to.
pub(super) enum Step {
    /// Nothing more for now.
    Idle,
    /// There may be more.
    More,
    /// More than there is room for: to be asked when some is given back.
    NoRoom,
    /// The handshake is over.
    Up,
    Arrival(Arrival),
    Lost(Lost),
}

/// Why it ended.
pub(super) enum Lost {
    System(io::Error),
    Broken(Broken),
    /// Closed by the other side, which has said nothing at all, or has.
    Closed {
        silent: bool,
    },
    /// Nobody has answered in time, or not in ZeroMQ's words.
    TimedOut {
        connected: bool,
    },
    /// To itself.
    Own,
}

impl Link {
    pub(super) fn new(stream: Stream, subscription: &[u8], endpoint: u64) -> Self {
        Link {
            stream,
            machine: Machine::new(subscription),
            out: zmtp::greeting().to_vec(),
            input: Vec::new(),
            at: 0,
            state: State::Connecting,
            deadline: Some(Instant::now() + PATIENCE),
            is_queued: false,
            endpoint,
            peer: None,
            from: String::new(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// When something has to happen.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What it holds in the budget.
    pub(super) fn reserved(&self) -> u64 {
        self.machine.reserved()
    }

    pub(super) fn overdue(&self) -> Lost {
        Lost::TimedOut { connected: self.state != State::Connecting }
    }

    /// Does what can be done without waiting, up to the first thing worth a word.
    pub(super) fn step(&mut self, limits: Limits, budget: &mut Budget) -> Step {
        match self.try_step(limits, budget) {
            Ok(step) => step,
            Err(error) => Step::Lost(Lost::System(error)),
        }
    }

    fn try_step(&mut self, limits: Limits, budget: &mut Budget) -> io::Result<Step> {
        if self.state == State::Connecting {
            if self.stream.is_connected()?.is_none() {
                return Ok(Step::Idle);
            }
            if self.stream.is_own() {
                return Ok(Step::Lost(Lost::Own));
            }
            self.state = State::Greeting;
            self.deadline = Some(Instant::now() + PATIENCE);
        }
        let mut turn = TURN;
        loop {
            self.flush()?;
            match self.machine.take(&self.input[self.at..], &mut self.out, limits, budget) {
                Err(broken) => return Ok(Step::Lost(Lost::Broken(broken))),
                Ok((taken, heard)) => {
                    self.at += taken;
                    match heard {
                        Heard::Nothing => {}
                        Heard::NoRoom => return Ok(Step::NoRoom),
                        Heard::Arrival(arrival) => return Ok(Step::Arrival(arrival)),
                        Heard::Ready => {
                            self.state = State::Up;
                            self.deadline = None;
                            self.flush()?;
                            return Ok(Step::Up);
                        }
                    }
                }
            }
            // Everything that was read is taken in, and may have to be answered.
            self.flush()?;
            if turn == 0 {
                return Ok(Step::More);
            }
            self.input.resize(READ, 0);
            self.at = 0;
            let read = self.stream.read(&mut self.input);
            self.input.truncate(*read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Ok(Step::Lost(Lost::Closed { silent: self.machine.is_silent() })),
                Ok(bytes) => turn = turn.saturating_sub(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // A silent connection holds no memory.
                    self.input = Vec::new();
                    return Ok(Step::Idle);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.out.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Only answers to a peer that asks and never listens come to this.
                    return if self.out.len() > READ { Err(error) } else { Ok(()) };
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
