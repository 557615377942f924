//! The facade: every atomic, cell, lock and park that the lock-free parts use comes from here.
//!
//! In a normal build these are the standard library's. Under `--cfg kv_events_loom` they are loom's.

#[cfg(feature = "capi")]
mod handles;
#[cfg_attr(kv_events_loom, path = "model.rs")]
#[cfg_attr(not(kv_events_loom), path = "real.rs")]
pub mod imp;
#[cfg_attr(kv_events_loom, path = "model_lanes.rs")]
pub mod lanes;

#[cfg(feature = "capi")]
pub(crate) use handles::{Kept, Slot};
pub(crate) use imp::*;
pub(crate) use lanes::{LANES, lane};

use std::sync::PoisonError;

/// A mutex that is entered even if a thread panicked inside it: what it guards is kept consistent by guards, not by
/// giving up.
#[derive(Debug)]
pub(crate) struct Mutex<T>(imp::Raw<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(imp::Raw::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a slice of zero bytes can be read as.
///
/// # Safety
///
/// All bits zero must be a value of the type, the one that `zero` returns.
pub(crate) unsafe trait Zero {
    #[allow(dead_code, reason = "only models make values one by one")]
    fn zero() -> Self;
}

// SAFETY: an integer that is 0.
unsafe impl Zero for AtomicU64 {
    fn zero() -> Self {
        AtomicU64::new(0)
    }
}

// SAFETY: an integer that is 0.
unsafe impl Zero for u8 {
    fn zero() -> Self {
        0
    }
}

// SAFETY: a pointer that is null.
unsafe impl<T> Zero for std::sync::atomic::AtomicPtr<T> {
    fn zero() -> Self {
        std::sync::atomic::AtomicPtr::new(std::ptr::null_mut())
    }
}

/// A number that many threads add to. It publishes nothing but itself, so `Relaxed` is enough: whoever needs it exact
/// reads it after synchronising with the threads that count. For the same reason it is not modelled: it stays the
/// standard library's under loom.
#[derive(Debug)]
pub struct Counter(std::sync::atomic::AtomicU64);

impl Counter {
    pub(crate) fn new() -> Self {
        Counter(std::sync::atomic::AtomicU64::new(0))
    }

    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A figure with one writer at a time, read by anyone: no read-modify-write needed. `Relaxed`, and not modelled, for the
/// reasons given at [`Counter`].
#[derive(Debug)]
pub struct Gauge(std::sync::atomic::AtomicU64);

impl Gauge {
    pub(crate) fn new() -> Self {
        Gauge(std::sync::atomic::AtomicU64::new(0))
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn add(&self, n: u64) {
        self.set(self.get() + n);
    }

    /// The figure now.
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A flag that is raised once and stays up. `Relaxed`, and not modelled, for the reasons given at [`Counter`].
#[derive(Debug)]
pub(crate) struct Flag(std::sync::atomic::AtomicBool);

impl Flag {
    pub(crate) fn new() -> Self {
        Flag(std::sync::atomic::AtomicBool::new(false))
    }

    pub(crate) fn raise(&self) {
        // Looked at first, so that threads that raise it all the time share its cache line.
        if !self.is_up() {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A figure that never goes back, whoever writes it. `Relaxed`: all updates of one figure have one order, and nothing else
/// is read on the strength of it. No lock, so that a forked child cannot find it held.
#[derive(Debug)]
pub(crate) struct Latest(std::sync::atomic::AtomicU64);

impl Latest {
    pub(crate) const fn new() -> Self {
        Latest(std::sync::atomic::AtomicU64::new(0))
    }

    /// `reading`, or, if that is less, the highest there has been.
    pub(crate) fn or_later(&self, reading: u64) -> u64 {
        self.0.fetch_max(reading, std::sync::atomic::Ordering::Relaxed).max(reading)
    }
}
