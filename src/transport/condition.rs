//! How the endpoint is doing, for the status: written by the sender, read by anyone.

use super::Report;
use crate::log_throttle::is_power_of_ten;
use crate::memory::copied;
use crate::sync::Counter;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, TryLockError};

/// What the sender has found out about its endpoint.
#[derive(Debug)]
pub(crate) struct Condition {
    refused_peers: Counter,
    faults: Counter,
    /// What is amiss now. Behind a lock that the sender never waits for.
    fault: Mutex<Option<String>>,
}

impl Condition {
    pub(crate) fn new() -> Self {
        Condition { refused_peers: Counter::new(), faults: Counter::new(), fault: Mutex::new(None) }
    }

    /// How it is now.
    pub(crate) fn report(&self) -> Report {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        Report {
            refused_peers: self.refused_peers.get(),
            endpoint_faults: self.faults.get(),
            endpoint_fault: fault.as_deref().map(|text| copied(text).unwrap_or_default()),
            ..Report::default()
        }
    }

    /// Counts one, and returns how many there are.
    pub(crate) fn count_refused(&self) -> u64 {
        self.refused_peers.add(1);
        self.refused_peers.get()
    }

    /// Takes note of what was found. To be called by one thread.
    pub(crate) fn note(&self, found: Option<String>) {
        let mut fault = match self.fault.try_lock() {
            Ok(fault) => fault,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody reads it. The next look is soon.
            Err(TryLockError::WouldBlock) => return,
        };
        let began = found.is_some() && *fault != found;
        fault.clone_from(&found);
        drop(fault);
        if began {
            self.faults.add(1);
            let times = self.faults.get();
            if let Some(what) = found.filter(|_| is_power_of_ten(times)) {
                crate::logging::warning!("kv-events: no new subscriber can connect: {what} ({times} times so far)");
            }
        }
    }
}

/// Looks whether subscribers can still find their way in.
pub(crate) struct Watch {
    #[cfg(unix)]
    path: Option<(PathBuf, (u64, u64))>,
}

impl Watch {
    /// Of the endpoint really bound.
    pub(crate) fn of(endpoint: &str) -> Watch {
        #[cfg(unix)]
        {
            let path = endpoint.strip_prefix("ipc://").filter(|path| !path.starts_with('@')).map(PathBuf::from);
            Watch { path: path.and_then(|path| Some((path.clone(), identity(&path).ok()?))) }
        }
        #[cfg(not(unix))]
        {
            let _ = endpoint;
            Watch {}
        }
    }

    /// What keeps new subscribers out, if anything does.
    pub(crate) fn look(&self) -> Option<String> {
        #[cfg(unix)]
        {
            if let Some((path, bound)) = &self.path {
                let path = path.display();
                match identity(&self.path.as_ref()?.0) {
                    Ok(found) if found == *bound => {}
                    Ok(_) => return Some(format!("something else is at {path} now; restart the publisher")),
                    Err(error) => return Some(format!("{path} is gone ({error}); restart the publisher")),
                }
            }
            // Any descriptor will do, and one that is meant for nothing else.
            if let Err(error) = std::os::unix::net::UnixDatagram::unbound() {
                if [Some(libc::EMFILE), Some(libc::ENFILE)].contains(&error.raw_os_error()) {
                    return Some(format!("{error}; raise the limit (ulimit -n), or see who is connected"));
                }
            }
        }
        None
    }
}

/// What tells a file from another that is put in its place.
#[cfg(unix)]
fn identity(path: &std::path::Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.symlink_metadata().map(|file| (file.dev(), file.ino()))
}
