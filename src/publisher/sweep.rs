//! Removing everything of a tenant, and saying so only if it is true.

use super::handle::Publisher;
use crate::lockfree::SweepToken;
use crate::memory::copied;
use crate::object::{Before, DEFAULT_TENANT, Object, tenant_or_default};
use crate::outcome::Outcome;
use crate::sync::Flag;

/// A remove-all sweep over one tenant, which decides for itself whether it may end in `cleared`.
///
/// Begin it ([`Publisher::sweep`]) before the first removal, then take every lock under which the tenant can store,
/// one shard after another; tell it of every object that was [removed](Sweep::removed) and of every one that was
/// [skipped](Sweep::skipped); then [finish](Sweep::finish) it. It sends one `cleared` if at least one object was removed,
/// none was skipped, and no `stored` of the tenant was published meanwhile, which the `cleared` would wipe from every
/// view. The removals are sent as they come, so without a `cleared` all has been said as well.
///
/// Threads that share the shards out between them share the sweep by reference, and one finishes it when all are done.
///
/// A sweep that is dropped unfinished sends no `cleared`, and says nothing about it: the removals have told all. Neither does
/// one for which there was no memory when it began: it ends as one that skipped something. Two sweeps of one tenant do not
/// know of each other.
#[derive(Debug)]
#[must_use = "a sweep that is dropped sends no `cleared`; call `finish`"]
pub struct Sweep {
    pub(super) publisher: Publisher,
    tenant: String,
    token: Option<SweepToken>,
    removed_any: Flag,
    skipped_any: Flag,
}

/// How a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SweepOutcome {
    /// Everything was removed; what the `cleared` came to. After a stop, say, it is refused and not sent.
    Cleared(Outcome),
    /// The tenant held nothing: no `cleared`.
    NothingRemoved,
    /// At least one object was skipped: no `cleared`.
    Skipped,
    /// Something of the tenant was stored meanwhile: no `cleared`.
    Interrupted,
}

impl Publisher {
    /// Begins to remove everything of a tenant; see [`Sweep`]. `""` is the tenant `default`.
    pub fn sweep(&self, tenant: &str) -> Sweep {
        Sweep::begin(self, tenant)
    }
}

impl Sweep {
    pub(super) fn begin(publisher: &Publisher, tenant: &str) -> Self {
        let tenant = tenant_or_default(tenant);
        let mut sweep = Sweep {
            publisher: publisher.clone(),
            tenant: String::new(),
            token: None,
            removed_any: Flag::new(),
            skipped_any: Flag::new(),
        };
        let token = publisher.live.as_ref().map_or(Ok(None), |live| live.begin_sweep(tenant));
        match (token, copied(tenant)) {
            (Ok(token), Some(tenant)) => (sweep.token, sweep.tenant) = (token, tenant),
            // Nobody looks out for it, so it must not end in `cleared`.
            (token, _) => {
                sweep.token = token.ok().flatten();
                sweep.skipped_any.raise();
            }
        }
        sweep
    }

    /// An object was removed: sends `removed` for every medium it was readable on. A removal that is suppressed for want
    /// of a key, or that was readable nowhere, counts as one all the same.
    ///
    /// An object of another tenant is published, and counts for nothing here.
    pub fn removed(&self, object: &Object<'_>, before: Before) -> Outcome {
        self.count_removed(object.tenant.as_bytes());
        self.publisher.removed(object, before)
    }

    /// Something of `tenant` was removed.
    pub(crate) fn count_removed(&self, tenant: &[u8]) {
        let tenant = if tenant.is_empty() { DEFAULT_TENANT.as_bytes() } else { tenant };
        if tenant == self.tenant.as_bytes() {
            self.removed_any.raise();
        }
    }

    /// An object was left where it is, for whatever reason: leased, a replica incomplete, a task pending, an oplog slot or
    /// append that failed.
    pub fn skipped(&self) {
        self.skipped_any.raise();
    }

    /// Ends the sweep, with a `cleared` if one is due.
    pub fn finish(mut self) -> SweepOutcome {
        if self.skipped_any.is_up() {
            return SweepOutcome::Skipped;
        }
        if !self.removed_any.is_up() {
            return SweepOutcome::NothingRemoved;
        }
        let Some(live) = &self.publisher.live else { return SweepOutcome::Cleared(Outcome::Disabled) };
        match live.end_sweep(self.token.take(), &self.tenant) {
            Some(outcome) => SweepOutcome::Cleared(outcome),
            None => SweepOutcome::Interrupted,
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        if let (Some(live), Some(token)) = (&self.publisher.live, self.token.take()) {
            live.cancel_sweep(token);
        }
    }
}
