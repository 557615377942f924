//! Many producers: nobody's order is lost, no call is torn, no number goes back, `cleared` overtakes nothing.
#![cfg(feature = "zmq")]

use crate::common::sub::{Sub, loopback};
use kv_events::{Before, MediaSet, Object, Publisher, SweepOutcome};
use std::collections::HashMap;
use std::time::Duration;

const PRODUCERS: usize = 8;
const CALLS: usize = 2_000;

#[test]
fn eight_producers_keep_their_order() {
    let publisher = Publisher::start(loopback().send_hwm(0)).unwrap();
    let sub = Sub::of(&publisher);
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let publisher = &publisher;
            scope.spawn(move || {
                let tenant = format!("p{producer}");
                for n in 0..CALLS {
                    let key = n.to_string();
                    let object = Object::new(&tenant, &key);
                    publisher.changed(&object, Before::mutation(MediaSet::CPU), MediaSet::DISK);
                }
            });
        }
    });
    let mut last_sequence = 0;
    let mut next: HashMap<String, usize> = HashMap::new();
    for message in sub.events(PRODUCERS * CALLS * 2) {
        assert!(message.sequence > last_sequence);
        last_sequence = message.sequence;
        for call in message.events.chunks(2) {
            let [removed, stored] = call else { panic!("a torn call: {call:?}") };
            assert_eq!((removed.text("event_type"), removed.text("medium")), ("removed", "cpu"));
            assert_eq!((stored.text("event_type"), stored.text("medium")), ("stored", "disk"));
            assert_eq!(removed.text("object_key"), stored.text("object_key"));
            let next = next.entry(removed.text("tenant_id").to_owned()).or_default();
            assert_eq!(removed.text("object_key"), next.to_string());
            *next += 1;
        }
    }
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    assert_eq!(publisher.status().evicted_events, 0);
}

#[test]
fn cleared_comes_behind_every_removal_of_its_sweep() {
    let publisher = Publisher::start(loopback().send_hwm(0)).unwrap();
    let sub = Sub::of(&publisher);
    let sweeps = 200;
    std::thread::scope(|scope| {
        for producer in 0..4 {
            let publisher = &publisher;
            scope.spawn(move || {
                let tenant = format!("p{producer}");
                for _ in 0..sweeps {
                    let sweep = publisher.sweep(&tenant);
                    for key in ["a", "b", "c"] {
                        sweep.removed(&Object::new(&tenant, key), Before::mutation(MediaSet::CPU));
                    }
                    assert!(matches!(sweep.finish(), SweepOutcome::Cleared(_)));
                }
            });
        }
    });
    let mut removed: HashMap<String, usize> = HashMap::new();
    for message in sub.events(4 * sweeps * 4) {
        for event in message.events {
            let count = removed.entry(event.text("tenant_id").to_owned()).or_default();
            match event.text("event_type") {
                "removed" => *count += 1,
                "cleared" => assert_eq!(std::mem::take(count), 3),
                other => panic!("{other}"),
            }
        }
    }
}
