//! The table "publication points" of the design, row by row, through the public calls.
#![cfg(feature = "zmq")]

use crate::common::briefs;
use crate::common::sub::{Sub, loopback};
use kv_events::{Before, MediaSet, Object, Outcome, Publisher, Replica, ReplicaKind, SweepOutcome};

struct Row {
    publisher: Publisher,
    sub: Sub,
}

const OBJECT: Object<'static> = Object::new("tenant", "key");

fn row() -> Row {
    let publisher = Publisher::start(loopback()).unwrap();
    let sub = Sub::of(&publisher);
    Row { publisher, sub }
}

impl Row {
    /// The events published are exactly these: an end mark is published behind them.
    fn publishes(&self, expected: &[&str]) {
        self.publisher.cleared("end");
        let mut seen = briefs(&self.sub.events(expected.len() + 1));
        assert_eq!(seen.pop().as_deref(), Some("cleared"));
        assert_eq!(seen, expected);
    }
}

fn completed(kind: ReplicaKind) -> Replica {
    Replica { kind, completed: true }
}

#[test]
fn put_commit_stores_on_every_completed_medium() {
    let row = row();
    let replicas = [
        completed(ReplicaKind::Memory),
        completed(ReplicaKind::Memory),
        Replica { kind: ReplicaKind::Dfs, completed: false },
    ];
    row.publisher.committed(&OBJECT, MediaSet::of_replicas(replicas));
    row.publisher.committed(&OBJECT, MediaSet::BOTH);
    row.publishes(&["stored cpu key", "stored cpu key", "stored disk key"]);
}

#[test]
fn upsert_removes_the_unreadable_value_and_stores_the_new_one() {
    let row = row();
    row.publisher.removed(&OBJECT, Before::mutation(MediaSet::BOTH));
    row.publisher.committed(&OBJECT, MediaSet::CPU);
    row.publishes(&["removed cpu key", "removed disk key", "stored cpu key"]);
}

#[test]
fn copy_and_move_tell_the_difference() {
    let row = row();
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::CPU), MediaSet::CPU); // a copy within memory
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::CPU), MediaSet::DISK); // a move between tiers
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::DISK), MediaSet::CPU);
    row.publishes(&["removed cpu key", "stored disk key", "removed disk key", "stored cpu key"]);
}

#[test]
fn offload_and_promotion_store_when_the_medium_first_appears() {
    let row = row();
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::CPU), MediaSet::BOTH);
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::BOTH), MediaSet::BOTH);
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::DISK), MediaSet::BOTH);
    row.publishes(&["stored disk key", "stored cpu key"]);
}

#[test]
fn replica_clear_and_eviction_remove_when_the_last_replica_goes() {
    let row = row();
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::BOTH), MediaSet::DISK);
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::DISK), MediaSet::EMPTY);
    row.publishes(&["removed cpu key", "removed disk key"]);
}

#[test]
fn stale_handles_tell_the_difference() {
    let row = row();
    let after = MediaSet::of_replicas([completed(ReplicaKind::NofSsd)]);
    row.publisher.changed(&OBJECT, Before::mutation(MediaSet::BOTH), after);
    row.publishes(&["removed cpu key"]);
}

#[test]
fn remove_removes_from_every_medium_and_a_duplicate_is_passed_on() {
    let row = row();
    row.publisher.removed(&OBJECT, Before::mutation(MediaSet::BOTH));
    row.publisher.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    row.publishes(&["removed cpu key", "removed disk key", "removed cpu key"]);
}

#[test]
fn remove_all_ends_in_cleared_if_everything_went() {
    let row = row();
    let sweep = row.publisher.sweep("tenant");
    sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    sweep.removed(&Object::new("tenant", "other"), Before::mutation(MediaSet::BOTH));
    assert_eq!(sweep.finish(), SweepOutcome::Cleared(Outcome::Accepted { events: 1 }));
    row.publishes(&["removed cpu key", "removed cpu other", "removed disk other", "cleared"]);
}

#[test]
fn remove_all_of_nothing_and_remove_all_with_a_skip_end_without() {
    let row = row();
    assert_eq!(row.publisher.sweep("tenant").finish(), SweepOutcome::NothingRemoved);
    let sweep = row.publisher.sweep("tenant");
    sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    sweep.skipped();
    assert_eq!(sweep.finish(), SweepOutcome::Skipped);
    let dropped = row.publisher.sweep("tenant");
    dropped.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    drop(dropped);
    row.publishes(&["removed cpu key", "removed cpu key"]);
}

#[test]
fn a_store_that_races_with_remove_all_keeps_cleared_away() {
    let row = row();
    let sweep = row.publisher.sweep("");
    sweep.removed(&Object::new("default", "key"), Before::mutation(MediaSet::CPU));
    row.publisher.committed(&Object::new("default", "late"), MediaSet::CPU);
    assert_eq!(sweep.finish(), SweepOutcome::Interrupted);
    row.publishes(&["removed cpu key", "stored cpu late"]);
}

#[test]
fn what_does_not_store_for_the_tenant_does_not_interrupt() {
    let row = row();
    let sweep = row.publisher.sweep("tenant");
    let twin = row.publisher.sweep("tenant");
    sweep.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    row.publisher.committed(&Object::new("another", "key"), MediaSet::CPU);
    row.publisher.committed(&Object::new("tenant", ""), MediaSet::CPU); // suppressed
    row.publisher.committed(&Object::new("tenant", &"k".repeat(20_000)), MediaSet::CPU); // refused
    row.publisher.removed(&OBJECT, Before::mutation(MediaSet::CPU));
    assert_eq!(sweep.finish(), SweepOutcome::Cleared(Outcome::Accepted { events: 1 }));
    twin.removed(&Object::new("another", "key"), Before::mutation(MediaSet::CPU));
    assert_eq!(twin.finish(), SweepOutcome::NothingRemoved, "an object of another tenant does not count");
    row.publishes(&["removed cpu key", "stored cpu key", "removed cpu key", "cleared", "removed cpu key"]);
}

#[test]
fn a_suppressed_removal_is_no_skip() {
    let row = row();
    let sweep = row.publisher.sweep("tenant");
    sweep.removed(&Object::new("tenant", ""), Before::mutation(MediaSet::CPU));
    assert_eq!(sweep.finish(), SweepOutcome::Cleared(Outcome::Accepted { events: 1 }));
    row.publishes(&["cleared"]);
}

#[test]
fn a_failed_put_says_nothing() {
    let row = row();
    assert_eq!(row.publisher.committed(&OBJECT, MediaSet::EMPTY), Outcome::Nothing);
    Before::mutation(MediaSet::CPU).discard();
    row.publishes(&[]);
}
