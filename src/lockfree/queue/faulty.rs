//! The queue as it must not be: the ways of accounting for evictions that do not work, for the checks that must notice.

use super::{EvictingQueue, Limits};
use crate::faults::fault;
use crate::lockfree::Call;

pub(super) fn accounts_outside() -> bool {
    fault!(GapAfterEviction) || fault!(GapBeforeEviction)
}

pub(super) fn takes_wrongly() -> bool {
    fault!(PopOutsideLock) || fault!(CarryOver)
}

impl<T: Call> EvictingQueue<T> {
    pub(super) fn push_accounting_outside(&self, call: T, mut recycle: impl FnMut(T)) {
        let expected = call.events();
        if fault!(GapBeforeEviction) {
            self.removals.lock().count(expected);
        }
        let Some(victim) = self.ring.force_push(call) else {
            if fault!(GapBeforeEviction) {
                let mut removals = self.removals.lock();
                removals.gap = removals.gap.saturating_sub(expected);
                removals.evicted -= expected;
            }
            return;
        };
        let mut removals = self.removals.lock();
        if fault!(GapBeforeEviction) {
            // Totals come out right, as they do in the real thing; only the place is wrong.
            removals.evicted = removals.evicted + victim.events() - expected;
            removals.gap = (removals.gap + victim.events()).saturating_sub(expected);
        } else {
            removals.count(victim.events());
        }
        self.publish_counts(&removals);
        drop(removals);
        recycle(victim);
    }

    pub(super) fn carries(&self) -> bool {
        self.carried().is_some()
    }

    /// The standard library's mutex, so that it is no step of a model.
    fn carried(&self) -> std::sync::MutexGuard<'_, Option<T>> {
        self.carried.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn take_wrongly(&self, limits: Limits, batch: &mut Vec<T>) -> u64 {
        let mut held = if fault!(PopOutsideLock) { None } else { Some(self.removals.lock()) };
        let (mut events, mut bytes) = (0, 0);
        if let Some(call) = self.carried().take() {
            events = call.events();
            batch.push(call);
        }
        while events < limits.events && bytes < limits.bytes {
            let Some(call) = self.ring.pop() else { break };
            if events + call.events() > limits.events {
                *self.carried() = Some(call);
                break;
            }
            events += call.events();
            bytes += call.bytes();
            batch.push(call);
        }
        if batch.is_empty() {
            return 0;
        }
        let mut removals = held.take().unwrap_or_else(|| self.removals.lock());
        std::mem::take(&mut removals.gap)
    }
}
