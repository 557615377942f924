//! Milliseconds since the epoch that never go back within a process, whatever the system's clock does.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Read once a message, by senders alone, so a lock is cheap enough.
pub(crate) fn now_ms() -> u64 {
    static LATEST: Mutex<u64> = Mutex::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    *latest = now.max(*latest);
    *latest
}
