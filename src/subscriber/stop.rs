//! Ending a subscriber's wait from another thread.

use crate::sync::Flag;
use std::io;
use std::sync::Arc;

/// Stops a [`Subscriber`](super::Subscriber) from any thread, also while it waits: every call on it then returns
/// [`RecvError::Stopped`](super::RecvError::Stopped) at once, for good. Clones stop the same subscriber.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    stopped: Flag,
    waker: mio::Waker,
}

impl StopHandle {
    pub(super) fn new(registry: &mio::Registry, token: mio::Token) -> io::Result<Self> {
        Ok(StopHandle(Arc::new(Ends { stopped: Flag::new(), waker: mio::Waker::new(registry, token)? })))
    }

    /// Stops it, and returns at once. Once is enough; a second time does nothing.
    pub fn stop(&self) {
        self.0.stopped.raise();
        self.wake();
    }

    /// Whether it was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.is_up()
    }

    /// Ends a wait, or the next one.
    pub(super) fn wake(&self) {
        // It fails only where the counter behind it is full, and then a wake-up is pending already.
        let _ = self.0.waker.wake();
    }
}
