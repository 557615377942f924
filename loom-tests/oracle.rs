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
    let queued = in_order(log);
    let place: HashMap<Name, usize> = queued.iter().enumerate().map(|(at, (_, name, _))| (*name, at)).collect();
    assert_eq!(place.len(), queued.len(), "I1: a call was queued twice: {log:#?}");
    assert_producers_in_order(&queued, log);
    let events = |from: usize, to: usize| -> u64 { queued[from..to].iter().map(|(_, _, events)| events).sum() };

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
    let mut left = events(next, queued.len());
    if !accounts.told && accounts.evicted > evicted {
        let untold = accounts.evicted - evicted;
        evicted += untold;
        left = left.checked_sub(untold).expect("I3: more was evicted than was lost");
    }
    if accounts.told {
        let untold = log.messages.last().is_some_and(|message| message.failed);
        assert!(!untold, "I4: the last thing that happened is a loss that no message tells of: {log:#?}");
    }
    let found = (evicted, failed, left);
    let Accounts { evicted, failed, abandoned, told: _ } = accounts;
    assert_eq!(found, (evicted, failed, abandoned), "I1, I3, I4: evicted, failed, abandoned do not add up: {log:#?}");
}

/// Events in messages that were sent, for the sequence rule and for I1.
pub fn published(log: &Log) -> u64 {
    let sent = log.messages.iter().filter(|message| !message.failed).flat_map(|message| &message.calls);
    let events: HashMap<Name, u64> = log.queued.iter().map(|&(_, name, events)| (name, events)).collect();
    sent.map(|name| events[name]).sum()
}

/// Accepted calls by position. They tile the positions.
fn in_order(log: &Log) -> Vec<(u64, Name, u64)> {
    let mut queued = log.queued.clone();
    queued.sort_unstable();
    for pair in queued.windows(2) {
        assert_eq!(pair[0].0 + pair[0].2, pair[1].0, "I1: positions are claimed once, and none is left out: {log:#?}");
    }
    queued
}

fn assert_producers_in_order(queued: &[(u64, Name, u64)], log: &Log) {
    let mut latest: HashMap<u8, u32> = HashMap::new();
    for (_, (producer, n), _) in queued {
        let before = latest.insert(*producer, *n);
        assert!(before.is_none_or(|before| before < *n), "I5: producer {producer} overtakes itself: {log:#?}");
    }
}
