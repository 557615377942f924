//! The tracker, as tables of what it is told and what it answers.

use kv_events::decode::Timestamp;
use kv_events::tracker::{Base, Counters, EventIds, GapCause, Observed, Tracker, Verdict};

pub const NO_IDS: EventIds = EventIds::Absent;

pub const fn ids(first: u64, count: u64) -> EventIds {
    EventIds::Dense { first, count }
}

pub const fn started(missed: u64) -> Verdict {
    Verdict::Started { missed: Some(missed) }
}

pub const fn gap(from: u64, to: u64, cause: GapCause) -> Verdict {
    Verdict::Gap { from, to, cause }
}

pub const fn restarted(previous: u64, missed: u64) -> Verdict {
    Verdict::Restarted { previous, missed: Some(missed) }
}

/// Runs a tracker with the masters' base over `(sequence, milliseconds, ids, verdict)`.
#[track_caller]
fn check(rows: &[(u64, i128, EventIds, Verdict)]) -> Counters {
    let mut tracker = Tracker::new(Base::MASTER);
    for (row, &(sequence, ms, ids, expected)) in rows.iter().enumerate() {
        let message = Observed { sequence, timestamp: Some(Timestamp::Int(ms)), ids };
        assert_eq!(tracker.observe(&message), expected, "row {row}: {message:?}");
    }
    *tracker.counters()
}

#[test]
fn first_message_starts_the_source_and_says_what_lies_before_it() {
    // The base is a setting; a first number below it has nothing before it.
    let first = |base, sequence, ids| {
        Tracker::new(base).observe(&Observed { sequence, timestamp: Some(Timestamp::Int(7)), ids })
    };
    assert_eq!(Base::default(), Base::Auto);
    for (base, sequence, ids, missed) in [
        (Base::MASTER, 1, NO_IDS, Some(0)),
        (Base::MASTER, 101, ids(400, 2), Some(100)),
        (Base::MASTER, 0, NO_IDS, Some(0)),
        (Base::ENGINE, 0, NO_IDS, Some(0)),
        (Base::ENGINE, 100, NO_IDS, Some(100)),
        (Base::ENGINE, u64::MAX, NO_IDS, Some(u64::MAX)),
        (Base::At(50), 60, NO_IDS, Some(10)),
        (Base::Unknown, 1, ids(1, 1), None),
        (Base::Auto, 1, ids(1, 1), Some(0)),
        (Base::Auto, 3, EventIds::Scattered, Some(2)),
        (Base::Auto, 3, NO_IDS, Some(3)),
        (Base::Auto, 3, EventIds::Empty, None),
        (Base::Auto, 3, EventIds::Unreadable, None),
    ] {
        assert_eq!(first(base, sequence, ids), Verdict::Started { missed }, "{base:?} {sequence} {ids:?}");
    }
}

#[test]
fn gap_is_placed_and_sized_between_its_neighbours() {
    let counters = check(&[
        (1, 10, NO_IDS, started(0)),
        (2, 10, NO_IDS, Verdict::InOrder),
        (5, 11, NO_IDS, gap(3, 4, GapCause::Unknown)),
        (6, 12, NO_IDS, Verdict::InOrder),
        (8, 12, NO_IDS, gap(7, 7, GapCause::Unknown)),
    ]);
    assert_eq!((counters.messages, counters.gaps, counters.missed), (5, 2, 3));
    assert_eq!((counters.first_sequence, counters.last_sequence), (Some(1), Some(8)));
}

#[test]
fn ids_tell_eviction_from_loss_on_the_way() {
    let counters = check(&[
        (1, 10, ids(1, 3), started(0)),
        (2, 10, ids(4, 1), Verdict::InOrder),
        (12, 11, ids(5, 2), gap(3, 11, GapCause::Evicted)),
        (14, 12, ids(9, 1), gap(13, 13, GapCause::Lost)),
        // An empty batch uses no id and shows none: whose loss it announces can't be told ...
        (16, 13, EventIds::Empty, gap(15, 15, GapCause::Unknown)),
        // ... and so the ids may have moved on behind it, which is no restart.
        (17, 14, ids(30, 1), Verdict::InOrder),
        (18, 15, EventIds::Empty, Verdict::InOrder),
        (20, 16, ids(31, 1), gap(19, 19, GapCause::Evicted)),
        // After an unreadable payload the next id is open, unless nothing was published in it at all.
        (21, 17, EventIds::Unreadable, Verdict::InOrder),
        (23, 18, ids(40, 1), gap(22, 22, GapCause::Unknown)),
        (24, 19, EventIds::Unreadable, Verdict::InOrder),
        (26, 20, ids(41, 1), gap(25, 25, GapCause::Evicted)),
    ]);
    assert_eq!((counters.missed, counters.missed_evicted, counters.missed_lost), (14, 11, 1));
    assert_eq!(counters.restarts, 0);
}

#[test]
fn replayed_numbers_are_duplicates_each_delivered_once_in_order() {
    // 1..=5 replayed while 4..=8 are live, with and without ids, whatever the interleaving.
    for with_ids in [false, true] {
        let message = |sequence: u64| Observed {
            sequence,
            timestamp: Some(Timestamp::Int(1000 + i128::from(sequence))),
            ids: if with_ids { ids(sequence * 2 - 1, 2) } else { NO_IDS },
        };
        for arrival in [
            [1, 2, 3, 4, 4, 5, 5, 6, 7, 8],
            [1, 2, 3, 4, 5, 4, 5, 6, 7, 8],
            [1, 2, 3, 4, 5, 6, 4, 7, 5, 8],
            [1, 2, 3, 4, 5, 6, 7, 8, 4, 5],
        ] {
            let mut tracker = Tracker::new(Base::MASTER);
            let delivered: Vec<u64> = arrival
                .into_iter()
                .filter(|&sequence| match tracker.observe(&message(sequence)) {
                    Verdict::Started { missed: Some(0) } | Verdict::InOrder => true,
                    Verdict::Duplicate => false,
                    other => panic!("{other:?} at {sequence} of {arrival:?}"),
                })
                .collect();
            assert_eq!(delivered, [1, 2, 3, 4, 5, 6, 7, 8], "{arrival:?}, ids: {with_ids}");
            assert_eq!(tracker.counters().duplicates, 2);
        }
    }
    // Live first, as an engine's replay does: what lies before the first message is told as missed, and stays so.
    check(&[
        (4, 104, NO_IDS, started(3)),
        (1, 101, NO_IDS, Verdict::Duplicate),
        (5, 105, NO_IDS, Verdict::InOrder),
        (2, 102, NO_IDS, Verdict::Duplicate),
        (4, 104, NO_IDS, Verdict::Duplicate),
        (6, 106, NO_IDS, Verdict::InOrder),
    ]);
}

#[test]
fn missed_number_that_comes_late_is_a_duplicate() {
    check(&[
        (1, 10, ids(1, 2), started(0)),
        (4, 13, ids(7, 2), gap(2, 3, GapCause::Lost)),
        (2, 11, ids(3, 2), Verdict::Duplicate),
        (3, 12, ids(5, 2), Verdict::Duplicate),
        (5, 14, ids(9, 1), Verdict::InOrder),
    ]);
}

#[test]
fn later_timestamp_at_an_old_number_is_a_restart() {
    let counters = check(&[
        (1, 10, NO_IDS, started(0)),
        (2, 20, NO_IDS, Verdict::InOrder),
        (3, 30, NO_IDS, Verdict::InOrder),
        (1, 31, NO_IDS, restarted(3, 0)),
        (2, 32, NO_IDS, Verdict::InOrder),
        // The same number again, later: it restarted once more.
        (2, 33, NO_IDS, restarted(2, 1)),
        (2, 33, NO_IDS, Verdict::Duplicate),
        // An empty batch restarts as well.
        (1, 34, EventIds::Empty, restarted(2, 0)),
    ]);
    assert_eq!((counters.restarts, counters.duplicates), (3, 1));
}

#[test]
fn remembered_number_with_another_timestamp_or_other_ids_is_a_restart() {
    // The clock may be behind.
    let counters = check(&[
        (1, 1000, NO_IDS, started(0)),
        (2, 1001, NO_IDS, Verdict::InOrder),
        (3, 1002, NO_IDS, Verdict::InOrder),
        (2, 1001, NO_IDS, Verdict::Duplicate),
        (2, 7, NO_IDS, restarted(3, 1)),
        (3, 8, NO_IDS, Verdict::InOrder),
        (3, 8, EventIds::Empty, restarted(3, 2)),
        (3, 8, EventIds::Unreadable, restarted(3, 2)),
        (3, 8, EventIds::Unreadable, Verdict::Duplicate),
        // One that is not remembered has nothing but its clock to be judged by.
        (2, 8, NO_IDS, Verdict::Duplicate),
        (2, 9, NO_IDS, restarted(3, 1)),
    ]);
    assert_eq!((counters.restarts, counters.duplicates), (4, 3));
}

#[test]
fn stream_that_begins_anew_with_its_clock_an_hour_behind_is_read_from_its_first_message() {
    const HOUR: f64 = 3600.0;
    for is_reconnect_told in [false, true] {
        let mut tracker = Tracker::new(Base::ENGINE);
        let see = |tracker: &mut Tracker, sequence: u64, begun: f64| {
            let timestamp = Some(Timestamp::Float(begun + sequence as f64 * 0.01));
            tracker.observe(&Observed { sequence, timestamp, ids: NO_IDS })
        };
        for sequence in 0..400 {
            let expected = if sequence == 0 { started(0) } else { Verdict::InOrder };
            assert_eq!(see(&mut tracker, sequence, 1_764_460_800.0), expected);
        }
        if is_reconnect_told {
            assert!(tracker.reconnected());
        }
        for sequence in 0..400 {
            let expected = if sequence == 0 { restarted(399, 0) } else { Verdict::InOrder };
            assert_eq!(see(&mut tracker, sequence, 1_764_460_800.0 - HOUR), expected, "{sequence}");
        }
    }
}

#[test]
fn lost_connection_makes_an_old_number_a_restart_unless_the_message_is_known() {
    let see = |tracker: &mut Tracker, sequence, ms| {
        tracker.observe(&Observed { sequence, timestamp: Some(Timestamp::Int(ms)), ids: NO_IDS })
    };
    let mut tracker = Tracker::new(Base::MASTER);
    assert!(!tracker.reconnected(), "nothing was seen, so nothing was lost");
    assert_eq!(see(&mut tracker, 5000, 100), started(4999));
    assert_eq!(see(&mut tracker, 3, 50), Verdict::Duplicate);
    assert!(tracker.reconnected());
    assert_eq!(see(&mut tracker, 5000, 100), Verdict::Duplicate, "remembered");
    assert_eq!(see(&mut tracker, 3, 50), restarted(5000, 2));
    assert_eq!(see(&mut tracker, 2, 50), Verdict::Duplicate, "a message has come since");
    assert!(tracker.reconnected());
    assert_eq!(see(&mut tracker, 6, 60), gap(4, 5, GapCause::Unknown));
    assert_eq!(see(&mut tracker, 4, 55), Verdict::Duplicate);
    assert_eq!(tracker.counters().reconnections, 2);
}

#[test]
fn ids_that_go_back_are_a_restart_whatever_number_and_clock_say() {
    let life =
        [(1, 50, ids(1, 2), started(0)), (2, 51, ids(3, 2), Verdict::InOrder), (3, 52, ids(5, 2), Verdict::InOrder)];
    for (sequence, ms, ids, missed) in [
        (4, 60, ids(1, 1), 3),  // looks in order
        (4, 40, ids(6, 9), 3),  // back by one, and by the clock
        (9, 60, ids(2, 1), 8),  // looks like a gap
        (3, 40, ids(1, 3), 2),  // the last number, the clock stepped back
        (2, 51, ids(1, 2), 1),  // number 2 had other ids
        (1, 40, ids(1, 2), 0),  // what number 1 had, but not its time
        (1, 40, ids(1, 1), 0),  // fewer events than number 1 had
        (2, 40, ids(99, 1), 1), // an old number with ids never seen
    ] {
        let mut rows = life.to_vec();
        rows.push((sequence, ms, ids, restarted(3, missed)));
        check(&rows);
    }
}

#[test]
fn number_from_before_all_memory_with_ids_below_it_is_a_restart() {
    check(&[(100, 50, ids(500, 1), started(99)), (1, 20, ids(1, 1), restarted(100, 0))]);
    // Far behind what is remembered, but seen once: a message of the old life is taken for a new one, not the reverse.
    let mut rows = vec![(1, 1000, ids(1, 1), started(0))];
    rows.extend((2..=3000).map(|n| (n, 1000, ids(n, 1), Verdict::InOrder)));
    rows.push((1977, 1000, ids(1977, 1), Verdict::Duplicate));
    rows.push((1976, 1000, ids(1976, 1), restarted(3000, 1975)));
    check(&rows);
}

#[test]
fn ids_that_jump_ahead_in_order_are_another_life_once_they_were_dense() {
    check(&[
        (1, 10, ids(1, 2), started(0)),
        (2, 11, ids(3, 2), Verdict::InOrder),
        (3, 99, ids(30, 1), restarted(2, 2)),
        (4, 99, ids(31, 1), Verdict::InOrder),
    ]);
    // Never seen to run on: not dense, so they are no witness, not even when they go back.
    check(&[
        (1, 10, ids(10, 1), started(0)),
        (2, 11, ids(20, 1), Verdict::InOrder),
        (3, 12, ids(5, 1), Verdict::InOrder),
        (5, 13, ids(6, 1), gap(4, 4, GapCause::Unknown)),
        (4, 9, ids(1, 1), Verdict::Duplicate),
        (4, 14, ids(1, 1), restarted(5, 3)),
    ]);
    check(&[
        (1, 10, EventIds::Scattered, started(0)),
        (2, 11, ids(20, 2), Verdict::InOrder),
        (3, 12, ids(5, 1), Verdict::InOrder),
    ]);
}

#[test]
fn heartbeat_is_told_from_a_message_with_events_under_its_number() {
    check(&[
        (1, 10, ids(1, 1), started(0)),
        (2, 11, EventIds::Empty, Verdict::InOrder),
        (2, 11, EventIds::Empty, Verdict::Duplicate),
        (3, 12, ids(2, 1), Verdict::InOrder),
        // Number 2 was empty: with events it is another message.
        (2, 11, ids(2, 1), restarted(3, 1)),
    ]);
}

#[test]
fn clock_stepping_back_within_a_life_makes_no_restart() {
    // The repeated message is later than the last one's timestamp, but is known to have been seen.
    check(&[
        (1, 100, NO_IDS, started(0)),
        (2, 90, NO_IDS, Verdict::InOrder),
        (1, 100, NO_IDS, Verdict::Duplicate),
        (3, 80, NO_IDS, Verdict::InOrder),
    ]);
}

#[test]
fn unreadable_payload_takes_its_number() {
    let mut tracker = Tracker::new(Base::ENGINE);
    assert_eq!(tracker.observe(&Observed::unreadable(0)), started(0));
    assert_eq!(tracker.observe(&Observed::unreadable(1)), Verdict::InOrder);
    assert_eq!(tracker.observe(&Observed::unreadable(3)), gap(2, 2, GapCause::Unknown));
    assert_eq!(tracker.observe(&Observed::unreadable(3)), Verdict::Duplicate);
    assert_eq!(tracker.observe(&Observed::unreadable(0)), Verdict::Duplicate);
}

#[test]
fn timestamp_is_remembered_across_an_unreadable_payload() {
    for (timestamp, expected) in [(100, Verdict::Duplicate), (101, restarted(7, 5))] {
        let mut tracker = Tracker::new(Base::MASTER);
        let seen = |sequence, timestamp| Observed { sequence, timestamp: Some(Timestamp::Int(timestamp)), ids: NO_IDS };
        assert_eq!(tracker.observe(&seen(5, 100)), started(4));
        assert_eq!(tracker.observe(&Observed::unreadable(7)), gap(6, 6, GapCause::Unknown));
        // A number that was missed: whether it is late or another life's is for the clock to say.
        assert_eq!(tracker.observe(&seen(6, timestamp)), expected, "{timestamp}");
    }
}

#[test]
fn ends_of_the_number_range_do_not_wrap() {
    check(&[
        (u64::MAX - 1, 10, ids(u64::MAX - 1, 1), started(u64::MAX - 2)),
        (u64::MAX, 11, ids(u64::MAX, 1), Verdict::InOrder),
        (u64::MAX, 11, ids(u64::MAX, 1), Verdict::Duplicate),
        (0, 12, ids(0, 1), restarted(u64::MAX, 0)),
        (u64::MAX, 13, ids(1, u64::MAX), gap(1, u64::MAX - 1, GapCause::Evicted)),
        (u64::MAX, 13, ids(1, u64::MAX), Verdict::Duplicate),
    ]);
    let counters = check(&[
        (0, 1, NO_IDS, started(0)),
        (u64::MAX, 2, NO_IDS, gap(1, u64::MAX - 1, GapCause::Unknown)),
        (0, 3, NO_IDS, restarted(u64::MAX, 0)),
        (u64::MAX, 4, NO_IDS, gap(1, u64::MAX - 1, GapCause::Unknown)),
    ]);
    assert_eq!(counters.missed, u64::MAX, "saturates");
    assert_eq!(gap(1, u64::MAX - 1, GapCause::Lost).gap_size(), u64::MAX - 1);
    assert_eq!(Verdict::InOrder.gap_size(), 0);
}

#[test]
fn timestamps_compare_by_value_across_kinds() {
    use Timestamp::{Float, Int};
    for (a, b, later) in [
        (Int(2), Int(1), true),
        (Int(1), Int(1), false),
        (Float(1.5), Float(1.25), true),
        (Float(1.5), Int(1), true),
        (Int(1), Float(1.5), false),
        (Int(2), Float(1.5), true),
        (Float(1.0), Int(1), false),
        (Int(1), Float(1.0), false),
        (Int(-1), Float(-1.5), true),
        (Float(-1.5), Int(-1), false),
        (Int((1 << 53) + 1), Float((1u64 << 53) as f64), true),
        (Float(f64::INFINITY), Int(i128::from(u64::MAX)), true),
        (Int(0), Float(f64::NEG_INFINITY), true),
        (Float(f64::NAN), Int(0), false),
        (Int(0), Float(f64::NAN), false),
        (Float(f64::NAN), Float(0.0), false),
    ] {
        let mut tracker = Tracker::new(Base::ENGINE);
        assert_eq!(tracker.observe(&Observed { sequence: 5, timestamp: Some(b), ids: NO_IDS }), started(5));
        let verdict = tracker.observe(&Observed { sequence: 3, timestamp: Some(a), ids: NO_IDS });
        assert_eq!(verdict, if later { restarted(5, 3) } else { Verdict::Duplicate }, "{a:?} after {b:?}");
    }
    // An engine's float seconds.
    let mut tracker = Tracker::new(Base::ENGINE);
    let mut see =
        |sequence, seconds| tracker.observe(&Observed { sequence, timestamp: Some(Float(seconds)), ids: NO_IDS });
    assert_eq!(see(0, 1764460800.25), started(0));
    assert_eq!(see(1, 1764460800.5), Verdict::InOrder);
    assert_eq!(see(0, 1764460800.25), Verdict::Duplicate);
    assert_eq!(see(0, 1764460800.5000002), restarted(1, 0));
}
