//! Where all producers wait for each other and for the subscriber, holding no lock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier whose other side can look at it without waiting.
#[derive(Debug)]
pub struct CheckpointBarrier {
    producers: usize,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    round: u64,
    broken: bool,
}

impl CheckpointBarrier {
    pub fn new(producers: usize) -> Self {
        CheckpointBarrier { producers, state: Mutex::default(), opened: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Producer: waits until the gate is opened; `false` if the run is over.
    pub fn wait(&self) -> bool {
        let mut state = self.state();
        let round = state.round;
        state.waiting += 1;
        while state.round == round && !state.broken {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.broken
    }

    /// Whether all producers wait.
    ///
    /// # Errors
    ///
    /// One of them will never come.
    pub fn all_wait(&self) -> Result<bool, String> {
        let state = self.state();
        if state.broken {
            return Err("a producer panicked".into());
        }
        Ok(state.waiting == self.producers)
    }

    /// Lets them go on.
    pub fn open(&self) {
        let mut state = self.state();
        state.waiting = 0;
        state.round += 1;
        self.opened.notify_all();
    }

    /// Sends everybody home.
    pub fn break_up(&self) {
        self.state().broken = true;
        self.opened.notify_all();
    }

    /// Breaks the gate if it is dropped by a panic.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

/// See [`CheckpointBarrier::guard`].
#[derive(Debug)]
pub struct Guard<'g>(&'g CheckpointBarrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_up();
        }
    }
}
