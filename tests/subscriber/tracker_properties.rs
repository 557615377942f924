//! The tracker, as properties over streams made up at random; and what the ids of a batch say.

use super::tracker::{NO_IDS, gap, ids, restarted, started};
use kv_events::decode::Timestamp;
use kv_events::tracker::{Base, EventId, EventIds, GapCause, Observed, Tracker, Verdict};
use proptest::prelude::*;

/// What happens to the next message, or before it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Publish(u64),
    Evict(u64),
    LoseOnTheWay(u64),
    Repeat(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..4).prop_map(Step::Publish),
        1 => (1u64..100).prop_map(Step::Evict),
        1 => (1u64..4).prop_map(Step::LoseOnTheWay),
        2 => (0usize..40).prop_map(Step::Repeat),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// One life of a master: every message not repeated is taken, every number not seen lies in exactly one gap, and
    /// the gaps' causes are the ones that happened.
    #[test]
    fn one_life_is_read_as_it_was(steps in steps(), per_ms in 1u64..5) {
        let mut tracker = Tracker::new(Base::MASTER);
        let (mut sequence, mut id, mut clock) = (1u64, 1u64, 0u64);
        let (mut evicted, mut lost) = (false, false);
        let mut arrived: Vec<Observed> = Vec::new();
        let mut missed = Vec::new();
        for step in steps {
            clock += 1;
            match step {
                Step::Evict(n) => { sequence += n; evicted = true; }
                Step::LoseOnTheWay(count) => { sequence += 1; id += count; lost = true; }
                Step::Publish(count) => {
                    let ids = if count == 0 { EventIds::Empty } else { ids(id, count) };
                    let timestamp = Some(Timestamp::Int(i128::from(clock / per_ms)));
                    let message = Observed { sequence, timestamp, ids };
                    match tracker.observe(&message) {
                        Verdict::Started { missed: Some(before) } => {
                            prop_assert!(arrived.is_empty());
                            missed.extend(1..=before);
                        }
                        Verdict::InOrder => prop_assert!(!evicted && !lost),
                        Verdict::Gap { from, to, cause } => {
                            prop_assert!(evicted || lost);
                            match cause {
                                GapCause::Evicted => prop_assert!(!lost),
                                GapCause::Lost => prop_assert!(lost),
                                GapCause::Unknown => {}
                            }
                            missed.extend(from..=to);
                        }
                        other => prop_assert!(false, "{:?} at {:?}", other, message),
                    }
                    arrived.push(message);
                    (evicted, lost) = (false, false);
                    sequence += 1;
                    id += count;
                }
                Step::Repeat(back) => if !arrived.is_empty() {
                    let message = arrived[arrived.len().saturating_sub(1 + back)];
                    prop_assert_eq!(tracker.observe(&message), Verdict::Duplicate);
                }
            }
        }
        let mut all: Vec<u64> = arrived.iter().map(|message| message.sequence).chain(missed).collect();
        all.sort_unstable();
        let last = arrived.last().map_or(0, |message| message.sequence);
        prop_assert_eq!(all, (1..=last).collect::<Vec<_>>());
        prop_assert_eq!(tracker.counters().messages, arrived.len() as u64);
    }

    /// A new life of a master that begins at 1 with later timestamps is noticed at its first message, whatever number
    /// that has, unless that lies behind all numbers and ids of the old life.
    #[test]
    fn restart_is_noticed(
        old in prop::collection::vec(1u64..5, 1..50),
        new_sequence in 1u64..100,
        new_id in 1u64..100,
    ) {
        let mut tracker = Tracker::new(Base::MASTER);
        let mut id = 1;
        for (index, &count) in old.iter().enumerate() {
            let ms = Timestamp::Int(index as i128);
            let _ = tracker.observe(&Observed { sequence: index as u64 + 1, timestamp: Some(ms), ids: ids(id, count) });
            id += count;
        }
        let last = old.len() as u64;
        let late = Timestamp::Int(1000);
        let verdict = tracker.observe(&Observed { sequence: new_sequence, timestamp: Some(late), ids: ids(new_id, 1) });
        if new_sequence <= last || new_id < id {
            prop_assert_eq!(verdict, restarted(last, new_sequence - 1));
        } else if new_sequence > last + 1 {
            prop_assert_eq!(verdict.gap_size(), new_sequence - last - 1);
        }
    }

    /// Anything at all: no panic, no wrapping, and the counters agree with the verdicts.
    #[test]
    fn any_input_is_counted(
        messages in prop::collection::vec((any::<u64>(), any::<Option<f64>>(), any::<u64>(), 0u64..4, 0u8..8), 0..100),
    ) {
        let mut tracker = Tracker::new(Base::Auto);
        let (mut taken, mut missed) = (0u64, 0u64);
        for (sequence, time, first, count, kind) in &messages {
            let ids = match kind {
                0 => EventIds::Unreadable,
                1 => EventIds::Empty,
                2 => EventIds::Absent,
                3 => EventIds::Scattered,
                _ => ids(*first, count + 1),
            };
            // Numbers close together half of the time, so that every rule gets its turn.
            let sequence = if kind % 2 == 0 { *sequence } else { *sequence % 8 };
            let last = tracker.counters().last_sequence;
            let verdict = tracker.observe(&Observed { sequence, timestamp: time.map(Timestamp::Float), ids });
            match verdict {
                Verdict::Gap { from, to, .. } => {
                    prop_assert_eq!(last, from.checked_sub(1));
                    prop_assert_eq!(Some(sequence), to.checked_add(1));
                    prop_assert!(from <= to);
                }
                Verdict::InOrder => prop_assert_eq!(last.and_then(|last| last.checked_add(1)), Some(sequence)),
                Verdict::Duplicate => prop_assert!(last >= Some(sequence)),
                Verdict::Restarted { previous, .. } => prop_assert_eq!(last, Some(previous)),
                Verdict::Started { .. } => prop_assert_eq!(last, None),
            }
            taken += u64::from(verdict != Verdict::Duplicate);
            missed = missed.saturating_add(verdict.gap_size());
        }
        let counters = tracker.counters();
        prop_assert_eq!(counters.messages, taken);
        prop_assert_eq!(counters.duplicates, messages.len() as u64 - taken);
        prop_assert_eq!(counters.missed, missed);
    }
}

/// What a publisher and its connection go through.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Send(u64),
    Lose,
    Repeat(usize),
    LoseConnection,
    /// Begins anew, with the clock set by so many milliseconds.
    Crash(i32),
    SetClock(i32),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        20 => (1u64..4).prop_map(Fate::Send),
        3 => Just(Fate::Lose),
        3 => (0usize..60).prop_map(Fate::Repeat),
        1 => Just(Fate::LoseConnection),
        1 => (-5000..5000).prop_map(Fate::Crash),
        1 => (-5000..5000).prop_map(Fate::SetClock),
    ];
    prop::collection::vec(fate, 1..300)
}

proptest! {
    /// Many lives of a publisher, with ids (a master) or without (an engine), whose clock jumps and whose connection
    /// breaks: only what was seen is withheld, every new life that can be told from the old one is, and gaps are losses.
    #[test]
    fn lives_are_told_apart(fates in fates(), has_ids in any::<bool>()) {
        let mut tracker = Tracker::new(Base::ENGINE);
        let (mut number, mut id, mut clock) = (0u64, 1u64, 1_000_000i128);
        let mut lost = 0;
        let (mut is_anew, mut lives) = (false, 0);
        let mut seen: Vec<Observed> = Vec::new();
        for fate in fates {
            clock += 1;
            match fate {
                Fate::Lose => { number += 1; id += 1; lost += 1; }
                Fate::SetClock(ms) => clock += i128::from(ms),
                Fate::LoseConnection => prop_assert_eq!(tracker.reconnected(), !seen.is_empty()),
                Fate::Crash(ms) => {
                    let _ = tracker.reconnected();
                    clock += i128::from(ms);
                    (number, id, lost, is_anew) = (0, 1, 0, true);
                    lives += 1;
                }
                Fate::Repeat(back) => if !is_anew && !seen.is_empty() {
                    let message = seen[seen.len().saturating_sub(1 + back)];
                    prop_assert_eq!(tracker.observe(&message), Verdict::Duplicate);
                }
                Fate::Send(count) => {
                    let ids = if has_ids { ids(id, count) } else { NO_IDS };
                    // No two lives say the same at the same time.
                    let timestamp = Some(Timestamp::Int(clock * 1000 + lives));
                    let message = Observed { sequence: number, timestamp, ids };
                    let last = tracker.counters().last_sequence;
                    let verdict = tracker.observe(&message);
                    let missed = number;
                    let expected = match last {
                        None => started(missed),
                        Some(last) if is_anew && (number <= last || has_ids) => {
                            // With ids a new life shows by them, unless they have passed the old ones.
                            if number > last && verdict != restarted(last, missed) {
                                let floor = seen.last().and_then(|message| match message.ids {
                                    EventIds::Dense { first, count } => Some(first + count),
                                    _ => None,
                                });
                                prop_assert!(floor.is_some_and(|floor| id >= floor), "{:?}", verdict);
                                verdict
                            } else {
                                restarted(last, missed)
                            }
                        }
                        Some(last) if is_anew => match number - last {
                            1 => Verdict::InOrder,
                            _ => gap(last + 1, number - 1, GapCause::Unknown),
                        },
                        Some(_) if lost == 0 => Verdict::InOrder,
                        Some(_) => {
                            let cause = if has_ids { GapCause::Lost } else { GapCause::Unknown };
                            gap(number - lost, number - 1, cause)
                        }
                    };
                    prop_assert_eq!(verdict, expected, "{:?} after {:?}", message, last);
                    if is_anew {
                        seen.clear();
                    }
                    seen.push(message);
                    (lost, is_anew) = (0, false);
                    (number, id) = (number + 1, id + count);
                }
            }
        }
    }
}

#[test]
fn ids_of_a_batch_are_read_by_their_place() {
    use EventId::{Absent, Id, Unreadable};
    for (events, expected) in [
        (vec![], EventIds::Empty),
        (vec![Id(7)], ids(7, 1)),
        (vec![Id(7), Id(8), Id(9)], ids(7, 3)),
        (vec![Unreadable, Id(8), Unreadable], ids(7, 3)),
        (vec![Id(7), Id(9)], EventIds::Scattered),
        (vec![Id(7), Id(7)], EventIds::Scattered),
        (vec![Id(7), Absent], EventIds::Scattered),
        (vec![Unreadable, Id(0)], EventIds::Scattered),
        (vec![Absent, Absent], EventIds::Absent),
        (vec![Absent, Unreadable], EventIds::Absent),
        (vec![Unreadable, Unreadable], EventIds::Unreadable),
        (vec![Id(u64::MAX), Unreadable], ids(u64::MAX, 2)),
    ] {
        assert_eq!(EventIds::collect(events.clone()), expected, "{events:?}");
    }
}
