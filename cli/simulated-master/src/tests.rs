//! The publication points of a master, row by row: how many events each has to say, and what is readable afterwards.

use super::master::{Client, Leases, Master, Tenant};
use super::operations::Worker;
use super::recording_publisher::{Ledger, RecordingPublisher};
use super::view::View;
use kv_events::{Config, MediaSet, Medium, Outcome, Publisher, ReplicaKind, SweepOutcome};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::time::Instant;

const TENANT: Tenant = Tenant::TeamA;
const CLIENT: Client = Client(0);
const OTHER: Client = Client(1);
/// Enough in every shard.
const ROOM: [usize; 2] = [400, 400];
const MEMORY: &[ReplicaKind] = &[ReplicaKind::Memory];

/// Runs `test` with a master for so many objects and a voice that really publishes, then sees that nothing came to
/// anything else than it should have.
fn with_master(objects: [usize; 2], test: impl FnOnce(&mut Worker<'_>)) {
    let publisher = Publisher::start(Config::new("tcp://127.0.0.1:0", "master")).unwrap();
    let ledger = Ledger::default();
    let master = Master::new(objects[0], objects[1]);
    let voice = RecordingPublisher::new(&publisher, &ledger, 0, Instant::now());
    let mut worker = Worker { master: &master, voice, rng: SmallRng::seed_from_u64(1), chore_every: 1 };
    test(&mut worker);
    assert!(ledger.read().failures.is_empty(), "{}", ledger.read().failures);
}

impl Worker<'_> {
    /// Events that `act` says.
    fn events(&mut self, act: impl FnOnce(&Master, &mut RecordingPublisher<'_>)) -> u64 {
        let before = self.voice.accepted();
        act(self.master, &mut self.voice);
        self.voice.accepted() - before
    }

    fn put(&mut self, key: &str, kinds: &[ReplicaKind]) -> u64 {
        self.events(|master, voice| {
            let put = master.begin_put(voice, (TENANT, key), kinds, CLIENT).unwrap();
            master.end_put(voice, &put);
        })
    }

    fn must_hold(&self, objects: &[(&str, MediaSet)]) {
        let mut expected = View::default();
        for (key, media) in objects {
            expected.insert(TENANT.name(), (*key).into(), *media);
        }
        assert_eq!(self.master.snapshot(), expected);
    }
}

#[test]
fn put_commit_tells_all_media_and_a_failed_put_none() {
    with_master(ROOM, |worker| {
        assert_eq!(worker.put("a", &[ReplicaKind::Memory, ReplicaKind::Disk]), 2);
        assert_eq!(worker.put("b", &[ReplicaKind::Memory, ReplicaKind::Memory]), 1);
        let failed = worker.events(|master, voice| {
            assert!(master.begin_put(voice, (TENANT, "a"), MEMORY, CLIENT).is_none(), "it is there");
            let put = master.begin_put(voice, (TENANT, "c"), MEMORY, CLIENT).unwrap();
            assert!(master.get(voice, TENANT, "c", CLIENT), "somebody is at it");
            master.revoke_put(&put);
            master.end_put(voice, &put);
        });
        assert_eq!(failed, 0);
        worker.must_hold(&[("a", MediaSet::BOTH), ("b", MediaSet::CPU)]);
    });
}

#[test]
fn upsert_tells_that_the_old_value_goes_and_the_new_one_comes() {
    with_master(ROOM, |worker| {
        worker.put("a", &[ReplicaKind::Memory, ReplicaKind::Disk]);
        let mut put = None;
        assert_eq!(worker.events(|master, voice| put = master.begin_upsert(voice, (TENANT, "a"), MEMORY, CLIENT)), 2);
        worker.must_hold(&[]);
        assert_eq!(worker.events(|master, voice| master.end_put(voice, &put.unwrap())), 1);
        worker.must_hold(&[("a", MediaSet::CPU)]);
    });
}

#[test]
fn copy_move_offload_promotion_and_replica_clear_tell_the_difference() {
    with_master(ROOM, |worker| {
        worker.put("a", MEMORY);
        for (kind, events) in [(ReplicaKind::Memory, 0), (ReplicaKind::NofSsd, 1)] {
            let said = worker.events(|master, voice| {
                assert!(master.begin_copy(TENANT, "a"));
                assert!(!master.begin_copy(TENANT, "a"), "one is under way");
                master.end_copy(voice, TENANT, "a", kind, OTHER);
            });
            assert_eq!(said, events, "{kind:?}");
        }
        let clear = |worker: &mut Worker<'_>, medium| {
            worker.events(|master, voice| master.clear_replicas(voice, TENANT, "a", medium))
        };
        assert_eq!(clear(worker, Medium::Disk), 1);
        assert_eq!(clear(worker, Medium::Disk), 0);
        worker.must_hold(&[("a", MediaSet::CPU)]);
        let offload =
            |master: &Master, voice: &mut RecordingPublisher<'_>| master.offload(voice, (TENANT, "a"), 8, OTHER);
        assert_eq!(worker.events(offload), 1);
        assert_eq!(worker.events(offload), 0);
        worker.must_hold(&[("a", MediaSet::BOTH)]);
        assert_eq!(clear(worker, Medium::Disk), 1);
        let relocate = |master: &Master, voice: &mut RecordingPublisher<'_>| {
            master.relocate(voice, TENANT, "a", ReplicaKind::Dfs, CLIENT);
        };
        assert_eq!(worker.events(relocate), 2);
        worker.must_hold(&[("a", MediaSet::DISK)]);
        assert_eq!(worker.events(|master, voice| assert!(master.get(voice, TENANT, "a", CLIENT))), 1);
        worker.must_hold(&[("a", MediaSet::BOTH)]);
    });
}

#[test]
fn eviction_offloads_and_then_drops_the_coldest() {
    with_master([1, 1], |worker| {
        assert_eq!(worker.put("a", MEMORY), 1);
        assert_eq!(worker.put("b", MEMORY), 3, "b comes, a goes to disk");
        worker.must_hold(&[("a", MediaSet::DISK), ("b", MediaSet::CPU)]);
        assert_eq!(worker.put("c", MEMORY), 4, "c comes, b goes to disk, a goes for good");
        worker.must_hold(&[("b", MediaSet::DISK), ("c", MediaSet::CPU)]);
    });
    with_master([1, 0], |worker| {
        worker.put("a", MEMORY);
        assert_eq!(worker.put("b", MEMORY), 2, "without a disk a goes for good");
        worker.must_hold(&[("b", MediaSet::CPU)]);
    });
}

#[test]
fn a_stale_client_takes_its_replicas_along() {
    with_master(ROOM, |worker| {
        worker.put("a", MEMORY);
        worker.put("b", MEMORY);
        worker.events(|master, voice| {
            assert!(master.begin_copy(TENANT, "b"));
            master.end_copy(voice, TENANT, "b", ReplicaKind::Memory, OTHER);
        });
        let said = worker.events(|master, voice| {
            let put = master.begin_put(voice, (TENANT, "c"), MEMORY, CLIENT).unwrap();
            master.lose_client(voice, CLIENT);
            master.end_put(voice, &put);
        });
        assert_eq!(said, 1, "a is gone, b has another replica, c was never there");
        worker.must_hold(&[("b", MediaSet::CPU)]);
    });
}

#[test]
fn removes_tell_every_medium_and_leave_what_is_leased() {
    with_master(ROOM, |worker| {
        for key in ["a", "x1", "x2", "leased"] {
            worker.put(key, &[ReplicaKind::Memory, ReplicaKind::Disk]);
        }
        worker.events(|master, voice| assert!(master.get(voice, TENANT, "leased", CLIENT)));
        let said = worker.events(|master, voice| {
            master.remove(voice, TENANT, "leased");
            master.remove(voice, TENANT, "unheard of");
            master.remove(voice, TENANT, "a");
        });
        assert_eq!(said, 2);
        assert_eq!(worker.events(|master, voice| master.remove_matching(voice, TENANT, |key| key.starts_with('x'))), 4);
        worker.must_hold(&[("leased", MediaSet::BOTH)]);
    });
}

#[test]
fn remove_all_ends_in_cleared_only_if_nothing_was_skipped() {
    with_master(ROOM, |worker| {
        let sweep = |worker: &mut Worker<'_>, leases, oplog_fails: bool| {
            let mut outcome = None;
            let said = worker.events(|master, voice| {
                outcome = Some(master.remove_all(voice, TENANT, leases, || oplog_fails));
            });
            (outcome.unwrap(), said)
        };
        assert_eq!(sweep(worker, Leases::Ignored, false), (SweepOutcome::NothingRemoved, 0));
        worker.put("a", MEMORY);
        worker.put("b", MEMORY);
        worker.events(|master, voice| assert!(master.get(voice, TENANT, "b", CLIENT)));
        assert_eq!(sweep(worker, Leases::Respected, false), (SweepOutcome::Skipped, 1));
        assert_eq!(sweep(worker, Leases::Ignored, true), (SweepOutcome::Skipped, 0));
        worker.must_hold(&[("b", MediaSet::CPU)]);
        let cleared = SweepOutcome::Cleared(Outcome::Accepted { events: 1 });
        assert_eq!(sweep(worker, Leases::Ignored, false), (cleared, 2));
        worker.must_hold(&[]);
        worker.solo_rounds();
    });
}
