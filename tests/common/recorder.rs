//! An in-memory socket whose sends can be held up, made to fail, or made to panic.

use super::{Message, read_payload};
use kv_events::transport::{self, Opened, SendError, Transport};
use kv_events::{Config, Publisher, StartError};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// What a send is to come to.
#[derive(Clone, Debug)]
pub enum Verdict {
    Fail,
    Break,
    Panic,
}

#[derive(Default)]
struct State {
    messages: Vec<(u64, Vec<u8>)>,
    paused: bool,
    /// A sender is waiting for the pause to end.
    held_up: bool,
    verdicts: VecDeque<Verdict>,
    lingers: Vec<Duration>,
    /// When each send began, whatever it came to.
    attempts: Vec<Instant>,
    open: bool,
}

/// The far end of an in-memory socket.
#[derive(Clone, Default)]
pub struct Recorder(Arc<(Mutex<State>, Condvar)>);

struct Recording(Recorder);

impl Recorder {
    pub fn start(config: Config) -> (Publisher, Recorder) {
        let recorder = Recorder::default();
        recorder.change(|state| state.open = true);
        (Publisher::start_with(config, Recording(recorder.clone())).unwrap(), recorder)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        self.0.1.notify_all();
        result
    }

    fn wait_until<R>(&self, mut ready: impl FnMut(&mut State) -> Option<R>) -> R {
        let mut state = self.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            if let Some(result) = ready(&mut state) {
                return result;
            }
            let (next, timeout) = self.0.1.wait_timeout(state, Duration::from_secs(30)).unwrap();
            assert!(!timeout.timed_out(), "waited 30 s for nothing");
            state = next;
        }
    }

    /// Holds up the sender inside its next send, and waits until it is there; `bait` has to give it something to send.
    pub fn pause(&self, bait: impl FnOnce()) {
        self.change(|state| state.paused = true);
        bait();
        self.wait_until(|state| state.held_up.then_some(()));
    }

    pub fn resume(&self) {
        self.change(|state| state.paused = false);
    }

    pub fn plan(&self, verdicts: impl IntoIterator<Item = Verdict>) {
        self.change(|state| state.verdicts.extend(verdicts));
    }

    /// The first `count` messages, as soon as they are there.
    pub fn messages(&self, count: usize) -> Vec<Message> {
        let sent = self.wait_until(|state| (state.messages.len() >= count).then(|| state.messages.clone()));
        sent.iter().map(|(sequence, payload)| read_payload(*sequence, payload)).collect()
    }

    /// Waits until `count` messages are there; how many there are.
    pub fn wait_for(&self, count: usize) -> usize {
        self.wait_until(|state| (state.messages.len() >= count).then_some(state.messages.len()))
    }

    /// Everything sent, once the publisher has stopped.
    pub fn all(&self) -> Vec<Message> {
        self.wait_until(|state| (!state.open).then_some(()));
        self.messages(0)
    }

    pub fn attempts(&self) -> Vec<Instant> {
        self.change(|state| state.attempts.clone())
    }

    pub fn lingers(&self) -> Vec<Duration> {
        self.change(|state| state.lingers.clone())
    }
}

impl Transport for Recording {
    fn open(&mut self) -> Result<Opened, StartError> {
        Ok(Opened::at("memory"))
    }

    fn send(&mut self, message: &transport::Message<'_>) -> Result<(), SendError> {
        self.0.change(|state| state.attempts.push(Instant::now()));
        let (sequence, payload) = (message.sequence(), message.payload());
        self.0.change(|state| state.held_up = state.paused);
        self.0.wait_until(|state| (!state.paused).then_some(()));
        match self.0.change(|state| state.verdicts.pop_front()) {
            None => {}
            Some(Verdict::Fail) => return Err(SendError::Failed("planned".into())),
            Some(Verdict::Break) => return Err(SendError::Broken("planned break".into())),
            Some(Verdict::Panic) => panic!("planned panic"),
        }
        self.0.change(|state| state.messages.push((sequence, payload)));
        Ok(())
    }

    fn close(&mut self, linger: Duration) {
        self.0.change(|state| state.lingers.push(linger));
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.change(|state| state.open = false);
    }
}
