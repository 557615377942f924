//! What the clients of a master ask of it, and what it does of its own accord: every way in which a view can change.

use crate::master::{Client, Leases, Master, Tenant};
use crate::recording_publisher::RecordingPublisher;
use kv_events::{Medium, Outcome, ReplicaKind, SweepOutcome};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// Clients that come and go.
const CLIENTS: u8 = 8;
/// The client of [`Tenant::Solo`], which stays.
const STEADY: Client = Client(CLIENTS);
/// Objects put at once by a BatchPut, removed at once by a BatchRemove.
const AT_ONCE: usize = 8;

/// Something that happens now and then.
#[derive(Clone, Copy, Debug)]
enum Chore {
    Upsert,
    FailedPut,
    Copy,
    Move,
    Offload,
    ReplicaClear,
    Remove,
    BatchRemove,
    RegexRemove,
    RemoveAll,
    StaleClient,
}

/// How often each chore comes up. Those that go over all shards are rare.
const CHORES: [(Chore, u32); 11] = [
    (Chore::Upsert, 200),
    (Chore::FailedPut, 150),
    (Chore::Copy, 150),
    (Chore::Move, 100),
    (Chore::Offload, 100),
    (Chore::ReplicaClear, 100),
    (Chore::Remove, 150),
    (Chore::BatchRemove, 30),
    (Chore::RegexRemove, 2),
    (Chore::RemoveAll, 8),
    (Chore::StaleClient, 2),
];

/// The object of a block id: its tenant and its key.
fn object(id: u64) -> (Tenant, String) {
    let tenant = match id % 8 {
        0..=4 => Tenant::Unnamed,
        5 | 6 => Tenant::TeamA,
        _ => Tenant::TeamB,
    };
    (tenant, format!("replay-model/512/{id:016x}"))
}

/// One producer at work.
#[derive(Debug)]
pub struct Worker<'p> {
    pub master: &'p Master,
    pub voice: RecordingPublisher<'p>,
    pub rng: SmallRng,
    /// One touch in so many is followed by a chore.
    pub chore_every: u32,
}

impl Worker<'_> {
    /// A request touches its blocks in order: a hit refreshes an object, a miss puts it. Some misses are put together.
    pub fn request(&mut self, ids: &[u64]) {
        for batch in ids.chunks(AT_ONCE) {
            if self.rng.random_ratio(1, 4) {
                self.put_missing(batch);
            } else {
                batch.chunks(1).for_each(|id| self.put_missing(id));
            }
            for _ in batch {
                if self.rng.random_ratio(1, self.chore_every) {
                    self.chore(ids);
                }
            }
        }
    }

    fn put_missing(&mut self, ids: &[u64]) {
        let mut begun = Vec::with_capacity(ids.len());
        for id in ids {
            let (tenant, key) = object(*id);
            let client = self.client();
            if !self.master.get(&mut self.voice, tenant, &key, client) {
                let kinds = self.kinds();
                begun.extend(self.master.begin_put(&mut self.voice, (tenant, &key), kinds, client));
            }
        }
        for put in &begun {
            self.master.end_put(&mut self.voice, put);
        }
    }

    fn chore(&mut self, ids: &[u64]) {
        let Some((tenant, key)) = ids.choose(&mut self.rng).copied().map(object) else { return };
        let Ok((chore, _)) = CHORES.choose_weighted(&mut self.rng, |(_, weight)| *weight) else { return };
        let client = self.client();
        let (master, voice) = (self.master, &mut self.voice);
        match chore {
            Chore::Upsert => {
                let kinds = self.kinds();
                if let Some(put) = master.begin_upsert(&mut self.voice, (tenant, &key), kinds, client) {
                    master.end_put(&mut self.voice, &put);
                }
            }
            Chore::FailedPut => {
                let (tenant, key) = object(self.rng.random());
                let kinds = self.kinds();
                if let Some(put) = master.begin_put(&mut self.voice, (tenant, &key), kinds, client) {
                    master.revoke_put(&put);
                }
            }
            Chore::Copy => {
                let kind = if self.rng.random() { ReplicaKind::Memory } else { ReplicaKind::NofSsd };
                if master.begin_copy(tenant, &key) {
                    master.end_copy(voice, tenant, &key, kind, client);
                }
            }
            Chore::Move => master.relocate(voice, tenant, &key, ReplicaKind::Dfs, client),
            Chore::Offload => master.offload(voice, (tenant, &key), AT_ONCE, client),
            Chore::ReplicaClear => {
                let medium = if self.rng.random() { Medium::Cpu } else { Medium::Disk };
                master.clear_replicas(voice, tenant, &key, medium);
            }
            Chore::Remove => master.remove(voice, tenant, &key),
            Chore::BatchRemove => {
                for id in ids.choose_multiple(&mut self.rng, AT_ONCE) {
                    let (tenant, key) = object(*id);
                    master.remove(voice, tenant, &key);
                }
            }
            Chore::RegexRemove => master.remove_matching(voice, tenant, |other| other.ends_with(&key[key.len() - 1..])),
            Chore::RemoveAll => {
                let tenant = if self.rng.random() { Tenant::TeamA } else { Tenant::TeamB };
                let leases = if self.rng.random_ratio(3, 4) { Leases::Ignored } else { Leases::Respected };
                let oplog_is_flaky = self.rng.random_ratio(1, 8);
                let rng = &mut self.rng;
                master.remove_all(voice, tenant, leases, || oplog_is_flaky && rng.random_ratio(1, 64));
            }
            Chore::StaleClient => master.lose_client(voice, client),
        }
    }

    /// Fills and sweeps the tenant that nobody else touches, so that each sweep can end in one way only, and fills it
    /// again: its objects were stored behind a `cleared`.
    pub fn solo_rounds(&mut self) {
        let expect = |worker: &Self, outcome: SweepOutcome, expected: fn(&SweepOutcome) -> bool| {
            if !expected(&outcome) {
                worker.voice.complain(|| format!("a sweep that nobody disturbed ended as {outcome:?}"));
            }
        };
        self.put_solo(6);
        let copied = solo_key(0);
        let is_copying = self.master.begin_copy(Tenant::Solo, &copied);
        let skipping = self.sweep_solo();
        expect(self, skipping, |outcome| *outcome == SweepOutcome::Skipped);
        if is_copying {
            self.master.end_copy(&mut self.voice, Tenant::Solo, &copied, ReplicaKind::Memory, STEADY);
        }
        let full = self.sweep_solo();
        expect(self, full, |outcome| matches!(outcome, SweepOutcome::Cleared(Outcome::Accepted { .. })));
        let empty = self.sweep_solo();
        expect(self, empty, |outcome| *outcome == SweepOutcome::NothingRemoved);
        self.put_solo(3);
    }

    fn put_solo(&mut self, objects: usize) {
        for number in 0..objects {
            let kinds = self.kinds();
            let key = solo_key(number);
            if let Some(put) = self.master.begin_upsert(&mut self.voice, (Tenant::Solo, &key), kinds, STEADY) {
                self.master.end_put(&mut self.voice, &put);
            }
        }
    }

    fn sweep_solo(&mut self) -> SweepOutcome {
        self.master.remove_all(&mut self.voice, Tenant::Solo, Leases::Ignored, || false)
    }

    fn client(&mut self) -> Client {
        Client(self.rng.random_range(0..CLIENTS))
    }

    /// Where a new value is put: mostly in memory, sometimes twice there, sometimes on disk as well.
    fn kinds(&mut self) -> &'static [ReplicaKind] {
        match self.rng.random_range(0..16) {
            0 => &[ReplicaKind::Memory, ReplicaKind::Memory],
            1 | 2 => &[ReplicaKind::Memory, ReplicaKind::Disk],
            _ => &[ReplicaKind::Memory],
        }
    }
}

fn solo_key(number: usize) -> String {
    format!("solo/{number}")
}
