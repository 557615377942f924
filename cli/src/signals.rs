//! Signals that ask a tool to end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;

/// The exit status of a tool that a second signal ends at once, as shells have it for Ctrl-C.
const AT_ONCE: i32 = 130;

/// Whether a tool was asked to end. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_raised: Mutex<bool>,
    raised: Condvar,
}

impl Stop {
    fn state(&self) -> MutexGuard<'_, bool> {
        self.0.is_raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_raised(&self) -> bool {
        *self.state()
    }

    pub fn raise(&self) {
        *self.state() = true;
        self.0.raised.notify_all();
    }

    /// Waits for so long, or until it is raised. Says whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let wait = self.0.raised.wait_timeout_while(self.state(), time, |is_raised| !*is_raised);
        *wait.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// From now on Ctrl-C, SIGTERM, and SIGHUP unless it is ignored (`nohup`), raise `stop` and call `wake`. A second one calls
/// `last` and ends the process.
pub fn catch(stop: &Stop, wake: impl Fn() + Send + 'static, last: fn()) -> anyhow::Result<()> {
    let stop = stop.clone();
    let hangup_is_ignored = is_ignored(libc::SIGHUP);
    ctrlc::set_handler(move || {
        if stop.is_raised() {
            last();
            std::process::exit(AT_ONCE);
        }
        stop.raise();
        wake();
    })
    .context("cannot catch signals")?;
    if hangup_is_ignored {
        // SAFETY: touches no memory of ours; ignoring a signal is valid at any time.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(())
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero `sigaction` is a valid one.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one to `now`, which outlives it.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}
