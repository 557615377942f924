//! Ending a subscriber's wait from another thread.

use crate::sync::Flag;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Stops a [`Subscriber`](super::Subscriber) from any thread, also while it waits: every call on it then returns
/// [`RecvError::Stopped`](super::RecvError::Stopped) at once, for good. Clones stop the same subscriber.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    stopped: Flag,
    stopper: UnixStream,
    waiter: UnixStream,
}

impl StopHandle {
    pub(super) fn new() -> io::Result<Self> {
        let (stopper, waiter) = UnixStream::pair()?;
        stopper.set_nonblocking(true)?;
        Ok(StopHandle(Arc::new(Ends { stopped: Flag::new(), stopper, waiter })))
    }

    /// Stops it. Once is enough; a second time does nothing.
    pub fn stop(&self) {
        self.0.stopped.raise();
        // The byte stays where it is, so whoever waits on the other end is woken now and for ever. A full buffer means
        // that there are such bytes already.
        let _ = (&self.0.stopper).write(&[0]);
    }

    /// Whether it was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.is_up()
    }

    /// Readable once it is stopped.
    pub(super) fn fd(&self) -> RawFd {
        self.0.waiter.as_raw_fd()
    }
}
