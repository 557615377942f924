//! The listener, the connections, and what waits for them.

use super::Options;
use super::address::Listener;
use super::doors::spare;
use super::figures::Book;
use super::peer::{Flushed, Gone};
use super::peers::Peers;
use super::queue::Messages;
use crate::log_throttle::is_power_of_ten;
use crate::transport::condition::{Condition, Watch};
use crate::transport::{Message, SendError};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
/// In nanoseconds.
const MILLISECOND: i64 = 1_000_000;

/// Events of epoll looked at in one go, and connections accepted in one.
pub(super) const AT_ONCE: usize = 64;
/// Bytes that are gathered before they are written.
const GATHERED: usize = 128 << 10;
/// Messages between two looks at the connections, while there is no other time for it; while some peer's buffers are full,
/// and else.
const LOOK_BLOCKED: u32 = 4;
const LOOK: u32 = 64;
/// How often everything is looked after.
pub(super) const UPKEEP: Duration = Duration::from_secs(1);
/// How long nothing is accepted when descriptors are short.
pub(super) const BACK_OFF: Duration = Duration::from_millis(100);

pub(super) struct Hub {
    pub(super) options: Options,
    pub(super) epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    pub(super) listener: Listener,
    /// Given up for a moment to accept, and hang up on, whom there is no descriptor for.
    pub(super) spare: Option<File>,
    pub(super) accept_again: Option<Instant>,
    pub(super) watch: Watch,
    pub(super) next_look: Instant,
    pub(super) condition: Arc<Condition>,
    pub(super) book: Arc<Book>,
    is_book_stale: bool,
    pub(super) peers: Peers,
    pub(super) messages: Messages,
    /// Bytes since the last writing.
    gathered: usize,
    pub(super) blocked: usize,
    unlooked: u32,
}

impl Hub {
    pub(super) fn new(
        listener: Listener,
        options: Options,
        condition: Arc<Condition>,
        book: Arc<Book>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        epoll::add(&epoll, &listener.socket, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let watch = Watch::of(&listener.endpoint);
        Ok(Hub {
            options,
            epoll,
            wake: Arc::new(wake),
            listener,
            spare: spare(),
            accept_again: None,
            watch,
            next_look: Instant::now(),
            condition,
            book,
            is_book_stale: false,
            peers: Peers::default(),
            messages: Messages::default(),
            gathered: 0,
            blocked: 0,
            unlooked: 0,
        })
    }

    /// Ends a wait, from any thread.
    pub(super) fn waker(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let wake = Arc::clone(&self.wake);
        move || {
            // Full, it wakes all the same.
            let _ = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
        }
    }

    pub(super) fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        if !self.peers.subscribed().is_empty() {
            let len = message.payload_len();
            let shared = self
                .messages
                .make(message)
                .ok_or_else(|| SendError::Failed(format!("there is no room for a message of {len} bytes")))?;
            let is_scarce = self.messages.held() > self.options.total_bytes;
            for at in 0..self.peers.subscribed().len() {
                let at = self.peers.subscribed()[at];
                let Some(peer) = self.peers.get_mut(at) else { continue };
                if !peer.offer(&shared, self.options.marks, is_scarce) {
                    self.book.dropped_messages.add(1);
                    self.book.dropped_events.add(message.events());
                    let dropped = self.book.dropped_messages.get();
                    if is_power_of_ten(dropped) {
                        let address = peer.figures.address().to_owned();
                        crate::logging::warning!(
                            "kv-events: the subscriber at {address} is too far behind and misses a message; {dropped} such \
                             messages so far"
                        );
                    }
                }
            }
            self.messages.give_back(shared);
            self.gathered += len;
            if message.waiting() == 0 || self.gathered >= GATHERED {
                self.write();
            }
        }
        self.unlooked += 1;
        if self.unlooked >= if self.blocked > 0 { LOOK_BLOCKED } else { LOOK } {
            self.look(Some(Duration::ZERO));
        }
        Ok(())
    }

    /// Writes to all who are subscribed and take more; whether there is more for any of them.
    fn write(&mut self) -> bool {
        self.gathered = 0;
        let mut is_more = false;
        let mut gone = Vec::new();
        for turn in 0..self.peers.subscribed().len() {
            let at = self.peers.subscribed()[turn];
            let Some(peer) = self.peers.get_mut(at).filter(|peer| !peer.is_blocked()) else { continue };
            match peer.flush(&mut self.messages) {
                Ok(Flushed::All) => {}
                Ok(Flushed::More) => is_more = true,
                Ok(Flushed::Blocked) => self.blocked += 1,
                Err(why) => {
                    gone.push((at, why));
                    continue;
                }
            }
            if let Err(why) = self.watch_for(at) {
                gone.push((at, why));
            }
        }
        gone.into_iter().for_each(|(at, why)| self.remove(at, Some(why)));
        is_more
    }

    /// Has epoll wait for what a peer waits for.
    fn watch_for(&mut self, at: usize) -> Result<(), Gone> {
        let key = self.peers.key(at);
        let Some(peer) = self.peers.get_mut(at) else { return Ok(()) };
        let wanted = peer.wanted();
        if wanted != peer.interest {
            epoll::modify(&self.epoll, peer.socket(), EventData::new_u64(key), wanted).map_err(|_| Gone::System)?;
            peer.interest = wanted;
        }
        Ok(())
    }

    /// Writes what is gathered, and waits until there is something to do or `timeout` is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) {
        let is_more = self.write();
        let until_accept = self.accept_again.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = match (timeout, until_accept) {
            _ if is_more => Some(Duration::ZERO),
            (Some(timeout), Some(other)) => Some(timeout.min(other)),
            (timeout, other) => timeout.or(other),
        };
        self.look(timeout);
    }

    /// Deals with what epoll says.
    fn look(&mut self, timeout: Option<Duration>) {
        self.unlooked = 0;
        let mut events = [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; AT_ONCE];
        let mut timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        if let Some(nap) = timeout.as_mut().filter(|nap| nap.tv_sec == 0 && (1..MILLISECOND).contains(&nap.tv_nsec)) {
            // `epoll_wait` counts in milliseconds, and would make one of a nap.
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(nap));
            *nap = Timespec { tv_sec: 0, tv_nsec: 0 };
        }
        // Interrupted, or out of the kernel's memory: it is tried again soon.
        let Ok(count) = epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) else { return };
        if count == 0 && self.accept_again.is_none() {
            return;
        }
        let now = Instant::now();
        for event in &events[..count] {
            let (flags, key) = (event.flags, event.data.u64());
            match key {
                WAKE => {
                    let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                }
                LISTENER => self.accept(now),
                key => self.serve(key, flags, now),
            }
        }
        if self.accept_again.is_some_and(|at| at <= now) {
            self.accept_again = None;
            let again = EventData::new_u64(LISTENER);
            let _ = epoll::modify(&self.epoll, &self.listener.socket, again, EventFlags::IN);
        }
    }

    /// A peer can be read from or written to, or has gone.
    fn serve(&mut self, key: u64, flags: EventFlags, now: Instant) {
        let Some(at) = self.peers.place(key) else { return };
        let Some(peer) = self.peers.get_mut(at) else { return };
        let was_blocked = peer.is_blocked();
        let mut served = Ok(None);
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            served = peer.read(&mut self.messages, now);
        }
        if served.is_ok() && flags.contains(EventFlags::OUT) {
            if let Err(why) = peer.flush(&mut self.messages) {
                served = Err(why);
            }
        }
        if served.is_ok()
            && flags.intersects(EventFlags::HUP | EventFlags::ERR)
            && !peer.wanted().contains(EventFlags::IN)
        {
            // Not read from, it would be told of without end.
            served = Err(Gone::Closed);
        }
        let is_blocked = peer.is_blocked();
        self.blocked = self.blocked + usize::from(is_blocked) - usize::from(was_blocked);
        match served {
            Err(why) => return self.remove(at, Some(why)),
            Ok(Some(bad)) => {
                let figures = Arc::clone(&peer.figures);
                self.tell_of(figures.address(), &bad);
            }
            Ok(None) => {}
        }
        self.is_book_stale |= self.peers.note_subscribed(at);
        if let Err(why) = self.watch_for(at) {
            return self.remove(at, Some(why));
        }
        self.renew_book();
    }

    fn renew_book(&mut self) {
        if self.is_book_stale {
            let subscribed = self.peers.subscribed().iter().filter_map(|&at| self.peers.get(at));
            self.is_book_stale = !self.book.set_peers(subscribed.map(|peer| Arc::clone(&peer.figures)));
        }
    }

    pub(super) fn remove(&mut self, at: usize, why: Option<Gone>) {
        let Some(peer) = self.peers.remove(at) else { return };
        self.blocked -= usize::from(peer.is_blocked());
        // Not left to the close, which is none while a forked child has the socket too.
        let _ = epoll::delete(&self.epoll, peer.socket());
        if let Some(Gone::Bad(bad)) = &why {
            self.tell_of(peer.figures.address(), bad);
        }
        peer.close(&mut self.messages);
        self.is_book_stale = true;
        self.renew_book();
    }

    /// Looks after what needs it from time to time; says when again.
    pub(super) fn upkeep(&mut self) -> Duration {
        let now = Instant::now();
        self.look(Some(Duration::ZERO));
        if now >= self.next_look {
            self.condition.note(self.watch.look());
            self.spare = self.spare.take().or_else(spare);
            self.next_look = now + UPKEEP;
            let overdue: Vec<usize> =
                self.peers.iter().filter(|(_, peer)| peer.is_overdue(now)).map(|(at, _)| at).collect();
            overdue.into_iter().for_each(|at| self.remove(at, None));
        }
        self.renew_book();
        if self.is_book_stale { BACK_OFF } else { UPKEEP }
    }

    /// Closes, behind what was sent, if that is taken within `linger`.
    pub(super) fn close(mut self, linger: Duration) {
        let until = Instant::now().checked_add(linger);
        let _ = epoll::delete(&self.epoll, &self.listener.socket);
        loop {
            let is_more = self.write();
            let is_over = self.peers.iter().all(|(_, peer)| peer.is_stranger() || peer.is_served());
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if is_over || left == Some(Duration::ZERO) {
                break;
            }
            let timeout = left.unwrap_or(UPKEEP).min(UPKEEP);
            self.accept_again = None;
            self.look(Some(if is_more { Duration::ZERO } else { timeout }));
        }
        let places: Vec<usize> = self.peers.iter().map(|(at, _)| at).collect();
        for at in places {
            let Some(peer) = self.peers.remove(at) else { continue };
            let _ = epoll::delete(&self.epoll, peer.socket());
            if peer.is_served() {
                peer.finish();
            } else {
                peer.close(&mut self.messages);
            }
        }
        let _ = self.book.set_peers(std::iter::empty());
    }
}
