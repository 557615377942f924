//! Remove-all sweeps against the stores that race with them.
//!
//! Shards are swept one after another, so a store can land in a shard that was swept already; a `cleared` queued behind
//! that `stored` would wipe it from every view. So a sweep registers its tenant before its first removal, and every
//! `stored` of that tenant that is queued meanwhile interrupts it. Looking whether any came and queueing `cleared` happen
//! under one mutex, and so do marking and queueing the first such `stored`; after that one the sweep is interrupted
//! anyway and later ones need not wait.

use crate::faults::fault;
use crate::memory::copied;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// The sweeps that are running.
#[derive(Debug)]
pub struct SweepTable {
    /// Sweeps registered. It rises `Relaxed`: a sweep takes the lock of a shard after it registered, so a `stored` that
    /// reads 0 under that lock either was queued before the sweep came by, or the lock has already shown it the 1. It
    /// falls by `Release` and is read by `Acquire`: the `stored` that reads the 0 after a sweep has to be queued behind
    /// that sweep's `cleared`.
    active: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    next: u64,
    sweeps: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    tenant: String,
    interrupted: bool,
}

/// A running sweep's registration. It has to go back to [`SweepTable::end`] or [`SweepTable::cancel`].
#[derive(Debug)]
pub struct SweepToken(u64);

/// How a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepEnd<R> {
    /// Nothing interrupted it; what queueing `cleared` came to.
    Uninterrupted(R),
    /// A `stored` of the tenant was queued while it ran.
    Interrupted,
}

impl SweepTable {
    /// No sweep is running.
    pub fn new() -> Self {
        SweepTable { active: AtomicUsize::new(0), table: Mutex::new(Table { next: 0, sweeps: Vec::new() }) }
    }

    /// Registers a sweep of `tenant`; `None` if there is no memory for it.
    pub fn begin(&self, tenant: &str) -> Option<SweepToken> {
        // Made, like those below are freed, outside the lock, which every `stored` may be waiting for.
        let tenant = copied(tenant)?;
        let mut table = self.table.lock();
        table.sweeps.try_reserve(1).ok()?;
        let id = table.next;
        table.next += 1;
        table.sweeps.push(Entry { id, tenant, interrupted: false });
        self.active.fetch_add(1, Ordering::Relaxed);
        Some(SweepToken(id))
    }

    /// Queues a `stored` of `tenant` by `push`; one that is refused interrupts nothing. Costs one load while no sweep runs.
    #[inline]
    pub fn store<E>(&self, tenant: &[u8], push: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.is_idle() { push() } else { self.store_during_sweeps(tenant, push) }
    }

    /// Whether no sweep runs: then a `stored` may be queued as it is.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.active.load(Ordering::Acquire) == 0
    }

    #[cold]
    fn store_during_sweeps<E>(&self, tenant: &[u8], push: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut table = self.table.lock();
        let is_new = |sweep: &Entry| !sweep.interrupted && sweep.tenant.as_bytes() == tenant;
        if !table.sweeps.iter().any(is_new) {
            drop(table);
            return push();
        }
        // Under the mutex: a sweep that ends looks, and queues its `cleared`, wholly before or wholly after.
        let queued = push();
        if queued.is_ok() {
            table.sweeps.iter_mut().filter(|sweep| is_new(sweep)).for_each(|sweep| sweep.interrupted = true);
        }
        drop(table);
        queued
    }

    /// Ends a sweep: unless a `stored` interrupted it, queues `cleared` by `push_cleared` in the same step.
    pub fn end<R>(&self, token: SweepToken, push_cleared: impl FnOnce() -> R) -> SweepEnd<R> {
        let mut table = self.table.lock();
        let entry = table.remove(token);
        let interrupted = entry.as_ref().is_none_or(|entry| entry.interrupted);
        if fault!(SweepChecksEarly) {
            drop(table);
            let end = if interrupted { SweepEnd::Interrupted } else { SweepEnd::Uninterrupted(push_cleared()) };
            self.active.fetch_sub(1, Ordering::Release);
            return end;
        }
        let end = if interrupted { SweepEnd::Interrupted } else { SweepEnd::Uninterrupted(push_cleared()) };
        // Not before `cleared` is queued: from here on a `stored` of the tenant need not come by the mutex.
        self.active.fetch_sub(1, Ordering::Release);
        drop(table);
        end
    }

    /// Deregisters a sweep that will not end.
    pub fn cancel(&self, token: SweepToken) {
        let mut table = self.table.lock();
        let entry = table.remove(token);
        self.active.fetch_sub(1, Ordering::Release);
        drop(table);
        drop(entry);
    }
}

impl Table {
    /// Takes a sweep out, to be freed outside the lock.
    fn remove(&mut self, SweepToken(id): SweepToken) -> Option<Entry> {
        self.sweeps.iter().position(|sweep| sweep.id == id).map(|at| self.sweeps.swap_remove(at))
    }
}

impl Default for SweepTable {
    fn default() -> Self {
        SweepTable::new()
    }
}
