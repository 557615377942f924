//! All connections of a subscriber, asked in turn.

use super::counters::StatusHandle;
use super::delivery::{Delivery, Malformed};
use super::endpoint::{Endpoint, ForeignPeer};
use super::link::{Link, Lost, Step};
use super::settings::{ConnectError, Settings};
use super::stream::Stream;
use super::zmtp::{Arrival, Budget, Limits};
use crate::zmtp::{Broken, MAX_FRAMES};
use mio::{Events, Poll, Token};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// What wakes a wait from another thread.
pub(super) const WAKER: Token = Token(0);
/// Steps after which it is looked what else has happened.
const STEPS: u32 = 64;

pub(super) struct Core {
    poll: Poll,
    events: Events,
    endpoints: Vec<Endpoint>,
    links: BTreeMap<usize, Link>,
    /// Those that may have something.
    active: VecDeque<usize>,
    /// Those that wait for room in the budget.
    parked: Vec<usize>,
    budget: Budget,
    /// The next token, and the next endpoint's number.
    next: usize,
    /// Steps until the next look.
    steps: u32,
    /// When something has to be done even if nothing happens.
    wake_at: Option<Instant>,
    /// What is to be handed over.
    pub(super) ready: VecDeque<Delivery>,
    pub(super) settings: Settings,
    pub(super) status: StatusHandle,
}

impl Core {
    pub(super) fn new(settings: &Settings) -> io::Result<Self> {
        Ok(Core {
            poll: Poll::new()?,
            events: Events::with_capacity(256),
            endpoints: Vec::new(),
            links: BTreeMap::new(),
            active: VecDeque::new(),
            parked: Vec::new(),
            budget: Budget::new(settings.max_buffered_bytes),
            next: WAKER.0 + 1,
            steps: 0,
            wake_at: None,
            ready: VecDeque::new(),
            settings: settings.clone(),
            status: StatusHandle::new(),
        })
    }

    pub(super) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    pub(super) fn fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    pub(super) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter()
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// One more endpoint, which must not be there already.
    pub(super) fn add(&mut self, name: &str, is_ours: bool) -> Result<(), ConnectError> {
        if self.endpoints.iter().any(|other| other.name == name) {
            return Err(ConnectError::Twice { endpoint: name.to_owned() });
        }
        let id = self.fresh();
        let endpoint = if is_ours {
            Endpoint::bind(id as u64, name, Token(id), self.poll.registry())?
        } else {
            Endpoint::out(id as u64, name, &self.settings, &self.status)?
        };
        self.endpoints.push(endpoint);
        self.tend();
        Ok(())
    }

    /// One less. What it has said and was not handed over yet is not lost.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(at) = self.endpoints.iter().position(|endpoint| endpoint.name == name) else { return false };
        let endpoint = self.endpoints.remove(at);
        endpoint.leave();
        let gone: Vec<_> =
            self.links.iter().filter(|(_, link)| link.endpoint == endpoint.id).map(|(&token, _)| token).collect();
        for token in gone {
            self.close(token);
        }
        true
    }

    fn close(&mut self, token: usize) -> Option<Link> {
        let link = self.links.remove(&token)?;
        self.give_back(link.reserved());
        Some(link)
    }

    fn give_back(&mut self, bytes: u64) {
        self.budget.give_back(bytes);
        for token in std::mem::take(&mut self.parked) {
            self.queue(token);
        }
    }

    fn queue(&mut self, token: usize) {
        if let Some(link) = self.links.get_mut(&token) {
            if !std::mem::replace(&mut link.is_queued, true) {
                self.active.push_back(token);
            }
        }
    }

    fn open(&mut self, mut stream: Stream, id: u64, from: String) -> io::Result<()> {
        let token = self.fresh();
        stream.register(self.poll.registry(), Token(token))?;
        let mut link = Link::new(stream, self.settings.topic.subscription(), id);
        link.from = from;
        self.links.insert(token, link);
        self.queue(token);
        Ok(())
    }

    /// What is due: attempts to connect, and connections that took too long.
    fn tend(&mut self) {
        let now = Instant::now();
        let overdue: Vec<_> = self
            .links
            .iter()
            .filter(|(_, link)| link.deadline().is_some_and(|deadline| deadline <= now))
            .map(|(&token, link)| (token, link.overdue()))
            .collect();
        for (token, why) in overdue {
            self.lost(token, why);
        }
        for at in 0..self.endpoints.len() {
            if let Some(stream) = self.endpoints[at].dial(now, &self.settings) {
                let id = self.endpoints[at].id;
                if let Err(error) = self.open(stream, id, String::new()) {
                    self.endpoints[at].lost(None, &error.to_string(), None);
                }
            }
        }
        let links = self.links.values().filter_map(Link::deadline);
        self.wake_at = self.endpoints.iter().filter_map(Endpoint::dial_at).chain(links).min();
    }

    /// When [`step`](Core::step) has to be called at the latest.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Whether [`step`](Core::step) has something to do right now.
    pub(super) fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// Waits until something happens, but no longer than this.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        let happened: Vec<_> = self.events.iter().map(|event| event.token()).collect();
        for token in happened.into_iter().filter(|token| *token != WAKER) {
            match self.endpoints.iter().position(|endpoint| endpoint.token() == Some(token)) {
                Some(at) => self.accept(at),
                None => self.queue(token.0),
            }
        }
        self.tend();
        Ok(())
    }

    fn accept(&mut self, at: usize) {
        loop {
            let opened = match self.endpoints[at].accept(&self.settings) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok((stream, from)) => self.open(stream, self.endpoints[at].id, from),
                Err(error) => Err(error),
            };
            if let Err(error) = opened {
                // Descriptors, mostly. Whoever waits is let in with the next one who comes.
                crate::logging::warning!("{}: a connection could not be accepted: {error}", self.endpoints[at].name);
                return;
            }
        }
    }

    /// Asks the next connection. `false` if none has anything.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        if self.steps == 0 || self.active.is_empty() {
            self.steps = STEPS;
            self.wait(Some(Duration::ZERO))?;
        }
        self.steps -= 1;
        let Some(token) = self.active.pop_front() else { return Ok(false) };
        let Some(link) = self.links.get_mut(&token) else { return Ok(true) };
        link.is_queued = false;
        let limits =
            Limits { frame: self.settings.max_frame_bytes.into(), topic: self.settings.max_topic_bytes.into() };
        let held = link.reserved();
        match link.step(limits, &mut self.budget) {
            Step::Idle => {}
            Step::More => self.queue(token),
            Step::NoRoom => self.parked.push(token),
            Step::Up => {
                self.up(token);
                self.queue(token);
            }
            Step::Arrival(arrival) => {
                let place = (link.endpoint, link.peer);
                self.queue(token);
                self.arrived(place, arrival);
            }
            Step::Lost(why) => self.lost(token, why),
        }
        if held > 0 && self.links.get(&token).is_none_or(|link| link.reserved() != held) {
            for token in std::mem::take(&mut self.parked) {
                self.queue(token);
            }
        }
        Ok(true)
    }

    fn arrived(&mut self, (id, peer): (u64, Option<usize>), arrival: Arrival) {
        let endpoint = self.endpoints.iter_mut().find(|endpoint| endpoint.id == id);
        if let Some(sources) = endpoint.zip(peer).and_then(|(endpoint, peer)| endpoint.sources(peer)) {
            sources.note(arrival, &self.settings, &mut self.ready);
        }
    }

    fn up(&mut self, token: usize) {
        let Some(link) = self.links.get_mut(&token) else { return };
        let Some(endpoint) = self.endpoints.iter_mut().find(|endpoint| endpoint.id == link.endpoint) else { return };
        link.peer = endpoint.up(token, &link.from, &self.settings, &self.status, &mut self.ready);
        if link.peer.is_none() {
            crate::logging::warning!("{}: one publisher too many (max_peers)", endpoint.name);
            self.close(token);
        }
    }

    fn lost(&mut self, token: usize, why: Lost) {
        let Some(link) = self.close(token) else { return };
        if let Lost::Broken(broken @ (Broken::Endless | Broken::Frame { .. })) = &why {
            let reason = match *broken {
                Broken::Frame { bytes, limit } => Malformed::TooLarge { bytes, limit },
                _ => Malformed::Frames(MAX_FRAMES + 1),
            };
            let arrival = Arrival::Malformed { bytes: 0, topic: Vec::new(), sequence: None, reason };
            self.arrived((link.endpoint, link.peer), arrival);
        }
        let Some(endpoint) = self.endpoints.iter_mut().find(|endpoint| endpoint.id == link.endpoint) else { return };
        let (text, foreign) = match why {
            Lost::System(error) => (error.to_string(), None),
            Lost::Broken(broken) => (broken.to_string(), Some(ForeignPeer::Known)),
            Lost::Closed { .. } if link.is_up() => ("the publisher closed the connection".to_owned(), None),
            Lost::Closed { silent: true } => {
                ("a peer that closes the connection without sending anything".to_owned(), Some(ForeignPeer::Silent))
            }
            Lost::Closed { silent: false } => {
                ("a peer that closes the connection in the handshake".to_owned(), Some(ForeignPeer::Silent))
            }
            Lost::TimedOut { connected: false } => ("nobody answers in time".to_owned(), None),
            Lost::TimedOut { connected: true } => {
                ("a peer that does not answer in ZMTP, or not at all".to_owned(), Some(ForeignPeer::Known))
            }
            Lost::Own => ("connection refused".to_owned(), None),
        };
        endpoint.lost(link.peer, &text, foreign);
        self.tend();
    }
}
