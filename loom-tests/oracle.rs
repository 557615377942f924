//! Judges a finished execution by where the gaps stand, not by totals alone: totals come out right in designs that tell of
//! a loss at the wrong place.

use crate::support::{Log, Name};
use std::collections::HashMap;

/// What the counters said at the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounts {
    pub evicted: u64,
    pub failed: u64,
    pub abandoned: u64,
    /// Whether the sender could tell of everything. If not (it died, or stop's deadline had passed), the last evictions
    /// have used up their numbers and no message came to show it.
    pub told: bool,
}

/// Asserts I1 to I5, that is all but sleeping, stopping and buffers.
///
/// With the queue order known, every message must hold neighbours, in order, and the numbers it skips must be exactly the
/// events of the calls that lie between it and the message before. An empty message skips what was evicted since.
/// Nothing may be left over but what was abandoned: an eviction that no number tells of fails here.
pub fn judge(log: &Log, accounts: Accounts) {
    let place: HashMap<Name, usize> = log.queued.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    assert_eq!(place.len(), log.queued.len(), "I1: a call was queued twice: {log:#?}");
    assert_producers_in_order(log);
    let events = |from: usize, to: usize| -> u64 { log.queued[from..to].iter().map(|(_, events)| events).sum() };

    // The place after the last one accounted for, the last number used up, and what went where.
    let (mut next, mut last, mut evicted, mut failed) = (0, 0, 0, 0);
    for message in &log.messages {
        let skipped = message.sequence.checked_sub(last + 1);
        let skipped = skipped.unwrap_or_else(|| panic!("I5: the sequence does not rise at {message:?}: {log:#?}"));
        let from = next;
        match message.calls.first() {
            Some(first) => next = place[first],
            None => {
                while events(from, next) < skipped {
                    next += 1
                }
            }
        }
        assert!(next >= from, "I1, I5: {message:?} is out of order, or sent again: {log:#?}");
        assert_eq!(skipped, events(from, next), "I2, I3: the gap before {message:?} is not what was lost: {log:#?}");
        evicted += skipped;
        for name in &message.calls {
            assert_eq!(place[name], next, "I2, I5: {message:?} carries both sides of a loss: {log:#?}");
            next += 1;
        }
        let carried = events(next - message.calls.len(), next);
        if !message.failed {
            last = message.sequence;
        } else if carried > 0 {
            last = message.sequence + carried - 1;
            failed += carried;
        }
    }
    let mut left = events(next, log.queued.len());
    if !accounts.told && accounts.evicted > evicted {
        let untold = accounts.evicted - evicted;
        evicted += untold;
        left = left.checked_sub(untold).expect("I3: more was evicted than was lost");
    }
    let found = (evicted, failed, left);
    let Accounts { evicted, failed, abandoned, told: _ } = accounts;
    assert_eq!(found, (evicted, failed, abandoned), "I1, I3, I4: evicted, failed, abandoned do not add up: {log:#?}");
}

/// Events in messages that were sent, for the sequence rule and for I1.
pub fn published(log: &Log) -> u64 {
    let sent = log.messages.iter().filter(|message| !message.failed).flat_map(|message| &message.calls);
    let events: HashMap<Name, u64> = log.queued.iter().copied().collect();
    sent.map(|name| events[name]).sum()
}

fn assert_producers_in_order(log: &Log) {
    let mut latest: HashMap<u8, u32> = HashMap::new();
    for ((producer, n), _) in &log.queued {
        let before = latest.insert(*producer, *n);
        assert!(before.is_none_or(|before| before < *n), "I5: producer {producer} overtakes itself: {log:#?}");
    }
}
