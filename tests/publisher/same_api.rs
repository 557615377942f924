//! The same signatures with and without the feature `zmq`: this file has to compile in both builds.

use kv_events::{
    Before, Config, MediaSet, Medium, Object, Outcome, Publisher, StartError, Status, StopReport, Sweep, SweepOutcome,
};
use std::time::Duration;

#[test]
fn the_calls_of_a_master_are_the_same_in_every_build() {
    let start: fn(Config) -> Result<Publisher, StartError> = Publisher::start;
    let committed: fn(&Publisher, &Object<'_>, MediaSet) -> Outcome = Publisher::committed;
    let changed: fn(&Publisher, &Object<'_>, Before, MediaSet) -> Outcome = Publisher::changed;
    let removed: fn(&Publisher, &Object<'_>, Before) -> Outcome = Publisher::removed;
    let stored_on: fn(&Publisher, &Object<'_>, Medium) -> Outcome = Publisher::stored_on;
    let removed_from: fn(&Publisher, &Object<'_>, Medium) -> Outcome = Publisher::removed_from;
    let cleared: fn(&Publisher, &str) -> Outcome = Publisher::cleared;
    let clone: fn(&Publisher) -> Publisher = Publisher::clone;
    let sweep: fn(&Publisher, &str) -> Sweep = Publisher::sweep;
    let sweep_removed: fn(&Sweep, &Object<'_>, Before) -> Outcome = Sweep::removed;
    let sweep_skipped: fn(&Sweep) = Sweep::skipped;
    let finish: fn(Sweep) -> SweepOutcome = Sweep::finish;
    let status: fn(&Publisher) -> Status = Publisher::status;
    let stop: fn(&Publisher, Duration) -> StopReport = Publisher::stop;
    let bound: fn(&Publisher) -> Option<&str> = Publisher::bound_endpoint;

    let publisher = &clone(&start(Config::default()).unwrap());
    let object = Object::new("t", "k");
    let outcomes = [
        committed(publisher, &object, MediaSet::BOTH),
        changed(publisher, &object, Before::mutation(MediaSet::CPU), MediaSet::DISK),
        removed(publisher, &object, Before::mutation(MediaSet::CPU)),
        stored_on(publisher, &object, Medium::Cpu),
        removed_from(publisher, &object, Medium::Disk),
        cleared(publisher, "t"),
    ];
    assert_eq!(outcomes, [Outcome::Disabled; 6]);
    let begun = sweep(publisher, "t");
    assert_eq!(sweep_removed(&begun, &object, Before::mutation(MediaSet::CPU)), Outcome::Disabled);
    assert_eq!(finish(begun), SweepOutcome::Cleared(Outcome::Disabled));
    let begun = sweep(publisher, "t");
    sweep_skipped(&begun);
    assert_eq!(finish(begun), SweepOutcome::Skipped);
    assert_eq!((status(publisher).enabled, bound(publisher)), (false, None));
    assert!(stop(publisher, Duration::ZERO).closed);

    fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Publisher>();
}
