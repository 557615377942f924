//! A transport that keeps what it is given, for tests of masters.

use super::{Message, Opened, SendError, Transport};
use crate::error::StartError;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The receiving end of a transport in memory: every message that the publisher has sent, in order.
///
/// ```
/// use kv_events::decode::Batch;
/// use kv_events::transport::memory::Recorder;
/// use kv_events::{Config, MediaSet, Object, Publisher};
/// use std::time::Duration;
///
/// let recorder = Recorder::new();
/// let publisher = Publisher::start_with(Config::new("memory", "master-0"), recorder.transport())?;
/// publisher.committed(&Object::new("tenant-a", "key"), MediaSet::CPU);
/// let _ = publisher.stop(Duration::from_secs(5));
///
/// let messages = recorder.messages();
/// assert_eq!(messages[0].sequence, 1);
/// assert_eq!(Batch::parse(&messages[0].payload)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It keeps everything: a test that sends without end has to [`take`](Self::take) what it has seen.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Shared>);

/// A message as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub sequence: u64,
    /// Its payload, to be read by [`Batch::parse`](crate::decode::Batch::parse).
    pub payload: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Recorded>,
    failures: VecDeque<SendError>,
    is_closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    /// Nothing recorded yet.
    #[must_use]
    pub fn new() -> Self {
        Recorder::default()
    }

    /// The sending end, for [`Publisher::start_with`](crate::Publisher::start_with).
    pub fn transport(&self) -> impl Transport + 'static {
        Recording(Arc::clone(&self.0))
    }

    /// All messages so far.
    #[must_use]
    pub fn messages(&self) -> Vec<Recorded> {
        self.0.state().messages.clone()
    }

    /// All messages since the last `take`, which are recorded no longer.
    #[must_use]
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.0.state().messages)
    }

    /// Waits until `count` messages are there, no longer than `timeout`, and returns all there are: perhaps more, and fewer
    /// only if the time was up or the publisher has closed.
    #[must_use]
    pub fn wait_for(&self, count: usize, timeout: Duration) -> Vec<Recorded> {
        let begun = Instant::now();
        let mut state = self.0.state();
        while state.messages.len() < count && !state.is_closed {
            let Some(left) = timeout.checked_sub(begun.elapsed()) else { break };
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.messages.clone()
    }

    /// Has the next message fail instead of being recorded; asked several times, as many of them.
    pub fn fail_next(&self, error: SendError) {
        self.0.state().failures.push_back(error);
    }

    /// Whether the publisher has let go of it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.state().is_closed
    }
}

struct Recording(Arc<Shared>);

impl Transport for Recording {
    fn open(&mut self) -> Result<Opened, StartError> {
        Ok(Opened::at("memory"))
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        let recorded = Recorded { sequence: message.sequence(), payload: message.payload() };
        let mut state = self.0.state();
        if let Some(error) = state.failures.pop_front() {
            return Err(error);
        }
        state.messages.push(recorded);
        self.0.changed.notify_all();
        Ok(())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Publisher};

    #[test]
    fn what_fails_is_told_as_a_gap_and_what_is_sent_is_recorded() {
        let recorder = Recorder::new();
        recorder.fail_next(SendError::Failed("as the test wants it".into()));
        let publisher = Publisher::start_with(Config::new("memory", "b"), recorder.transport()).unwrap();
        assert_eq!(publisher.bound_endpoint(), Some("memory"));
        publisher.cleared("a");
        let told = recorder.wait_for(1, Duration::from_secs(60));
        assert_eq!(
            told.iter().map(|message| message.sequence).collect::<Vec<_>>(),
            [2],
            "an empty one, behind the gap"
        );
        publisher.cleared("b");
        assert_eq!(recorder.wait_for(2, Duration::from_secs(60)).len(), 2);
        assert_eq!(recorder.take().len(), 2);
        assert!(publisher.stop(Duration::from_secs(60)).closed && recorder.is_closed());
        assert!(recorder.wait_for(1, Duration::from_secs(60)).is_empty(), "nobody can send any more");
        assert_eq!(publisher.status().failed_events, 1);
    }

    #[test]
    fn a_transport_that_breaks_ends_the_sender_with_its_reason() {
        let recorder = Recorder::new();
        recorder.fail_next(SendError::Broken("the wire is cut".into()));
        let publisher = Publisher::start_with(Config::new("memory", "b"), recorder.transport()).unwrap();
        publisher.cleared("a");
        assert!(recorder.wait_for(1, Duration::from_secs(60)).is_empty());
        assert_eq!(publisher.status().unhealthy_reason.as_deref(), Some("the wire is cut"));
    }
}
