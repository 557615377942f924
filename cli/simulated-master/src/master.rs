//! A small master: shards with locks of their own, no lock over a tenant, so a remove-all sweep races with puts.

use crate::recording_publisher::RecordingPublisher;
use crate::shard::{Entry, Held, Put, Shard};
use crate::view::View;
use kv_events::{DEFAULT_TENANT, Medium, ReplicaKind, SweepOutcome};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most shards a master has.
const SHARDS: usize = 16;

/// The tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tenant {
    /// Has no name, so the wire calls it `default`.
    Unnamed,
    TeamA,
    TeamB,
    /// Touched by the thread alone that sweeps it: not evicted, its client never stale.
    Solo,
}

impl Tenant {
    pub const ALL: [Tenant; 4] = [Tenant::Unnamed, Tenant::TeamA, Tenant::TeamB, Tenant::Solo];

    /// The name the master gives to the publisher.
    pub const fn name(self) -> &'static str {
        match self {
            Tenant::Unnamed => "",
            Tenant::TeamA => "team-a",
            Tenant::TeamB => "team-b",
            Tenant::Solo => "solo",
        }
    }

    const fn name_on_the_wire(self) -> &'static str {
        match self {
            Tenant::Unnamed => DEFAULT_TENANT,
            named => named.name(),
        }
    }

    pub(super) fn can_be_evicted(self) -> bool {
        self != Tenant::Solo
    }
}

/// Who holds a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client(pub u8);

/// What a remove-all sweep respects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leases {
    Respected,
    Ignored,
}

/// See the module's documentation. Every call takes the lock of one shard, or those of all shards one after another, and
/// publishes under it what it changed.
#[derive(Debug)]
pub struct Master {
    shards: Vec<Mutex<Shard>>,
}

impl Master {
    /// A master for so many objects in memory (at least 1) and on disk.
    pub fn new(cpu_objects: usize, disk_objects: usize) -> Self {
        let shards = cpu_objects.clamp(1, SHARDS);
        let share = |total: usize, shard: usize| total / shards + usize::from(shard < total % shards);
        let shard = |shard| Mutex::new(Shard::new([share(cpu_objects.max(1), shard), share(disk_objects, shard)]));
        Master { shards: (0..shards).map(shard).collect() }
    }

    fn shard(&self, tenant: Tenant, key: &str) -> MutexGuard<'_, Shard> {
        let mut hasher = DefaultHasher::new();
        (tenant, key).hash(&mut hasher);
        lock(&self.shards[(hasher.finish() % self.shards.len() as u64) as usize])
    }

    fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(lock)
    }

    /// What is readable where, each shard as it is when its turn comes.
    ///
    /// A subscriber that takes this after it received message M, and then applies M and all that follow, ends up with the
    /// master's view. For one object on one medium the last word counts. Publishing happens under the shard's lock, so
    /// what was said of it before M was received is in the snapshot; of what was said between M and the snapshot the last
    /// word is both in the snapshot and, applied again, in the view; what was said after the snapshot is applied in order.
    /// A `cleared` at or behind M that takes away what the snapshot knows is followed by that object's `stored`: the sweep
    /// took its shard's lock after the sweep began, so an object stored before it was removed, and one stored while it ran
    /// keeps the `cleared` from being sent. Losing any of those words shows as another gap, hence another snapshot.
    pub fn snapshot(&self) -> View {
        let mut view = View::default();
        for shard in self.shards() {
            for tenant in Tenant::ALL {
                for (key, entry) in shard.objects(tenant) {
                    let media = entry.media();
                    if !media.is_empty() {
                        view.insert(tenant.name_on_the_wire(), Arc::clone(key), media);
                    }
                }
            }
        }
        view
    }

    /// Get: a hit refreshes the object, and promotes it if it is on disk alone. Says whether it was one.
    pub fn get(&self, voice: &mut RecordingPublisher<'_>, tenant: Tenant, key: &str, client: Client) -> bool {
        let mut shard = self.shard(tenant, key);
        let Some(media) = shard.get(tenant, key).map(Entry::media) else { return false };
        if media.is_empty() {
            // Somebody is putting it.
            return true;
        }
        shard.refresh(tenant, key);
        if !media.contains(Medium::Cpu) {
            shard.alter(voice, tenant, key, |entry| {
                entry.replicas.push(Held::completed(ReplicaKind::Memory, client));
            });
            shard.make_room(voice);
        }
        true
    }

    /// PutStart; `None` if the object is there.
    pub fn begin_put(
        &self,
        voice: &mut RecordingPublisher<'_>,
        (tenant, key): (Tenant, &str),
        kinds: &[ReplicaKind],
        client: Client,
    ) -> Option<Put> {
        self.shard(tenant, key).begin_put(voice, (tenant, key), kinds, client, false)
    }

    /// UpsertStart; `None` if the object is busy.
    pub fn begin_upsert(
        &self,
        voice: &mut RecordingPublisher<'_>,
        (tenant, key): (Tenant, &str),
        kinds: &[ReplicaKind],
        client: Client,
    ) -> Option<Put> {
        self.shard(tenant, key).begin_put(voice, (tenant, key), kinds, client, true)
    }

    /// PutEnd or UpsertEnd.
    pub fn end_put(&self, voice: &mut RecordingPublisher<'_>, put: &Put) {
        self.shard(put.tenant, &put.key).end_put(voice, put);
    }

    /// PutRevoke: the put failed.
    pub fn revoke_put(&self, put: &Put) {
        self.shard(put.tenant, &put.key).revoke_put(put);
    }

    /// CopyStart: says whether the object is there and idle.
    pub fn begin_copy(&self, tenant: Tenant, key: &str) -> bool {
        self.shard(tenant, key).begin_copy(tenant, key)
    }

    /// CopyEnd: one more replica. A second one on the same medium is no news.
    pub fn end_copy(
        &self,
        voice: &mut RecordingPublisher<'_>,
        tenant: Tenant,
        key: &str,
        kind: ReplicaKind,
        client: Client,
    ) {
        let mut shard = self.shard(tenant, key);
        shard.alter(voice, tenant, key, |entry| {
            if std::mem::take(&mut entry.copying) {
                entry.replicas.push(Held::completed(kind, client));
            }
        });
        shard.make_room(voice);
    }

    /// MoveEnd: all replicas in memory become one of another kind.
    pub fn relocate(
        &self,
        voice: &mut RecordingPublisher<'_>,
        tenant: Tenant,
        key: &str,
        kind: ReplicaKind,
        client: Client,
    ) {
        let mut shard = self.shard(tenant, key);
        if !shard.is_idle(tenant, key) {
            return;
        }
        shard.alter(voice, tenant, key, |entry| {
            let held = entry.replicas.len();
            entry.replicas.retain(|held| held.medium() != Medium::Cpu);
            if entry.replicas.len() < held {
                entry.replicas.push(Held::completed(kind, client));
            }
        });
        shard.make_room(voice);
    }

    /// Offload: the coldest objects in memory of the shard that `key` is in get a replica on disk.
    pub fn offload(&self, voice: &mut RecordingPublisher<'_>, near: (Tenant, &str), count: usize, client: Client) {
        let mut shard = self.shard(near.0, near.1);
        for (tenant, key) in shard.coldest(count) {
            shard.alter(voice, tenant, &key, |entry| {
                if !entry.media().contains(Medium::Disk) {
                    entry.replicas.push(Held::completed(ReplicaKind::LocalDisk, client));
                }
            });
        }
        shard.make_room(voice);
    }

    /// Replica clear: all replicas of an idle object on one medium go.
    pub fn clear_replicas(&self, voice: &mut RecordingPublisher<'_>, tenant: Tenant, key: &str, medium: Medium) {
        let mut shard = self.shard(tenant, key);
        if shard.is_idle(tenant, key) {
            shard.alter(voice, tenant, key, |entry| entry.replicas.retain(|held| held.medium() != medium));
        }
    }

    /// A client went stale: its replicas are gone, finished or not, leased or not.
    pub fn lose_client(&self, voice: &mut RecordingPublisher<'_>, client: Client) {
        for mut shard in self.shards() {
            for tenant in Tenant::ALL {
                let affected = shard.keys(tenant, |_, entry| entry.replicas.iter().any(|held| held.client == client));
                for key in affected {
                    shard.alter(voice, tenant, &key, |entry| entry.replicas.retain(|held| held.client != client));
                }
            }
        }
    }

    /// Remove. An object that is leased or in work stays.
    pub fn remove(&self, voice: &mut RecordingPublisher<'_>, tenant: Tenant, key: &str) {
        self.shard(tenant, key).remove(voice, tenant, key);
    }

    /// Regex remove, the matching being the caller's.
    pub fn remove_matching(&self, voice: &mut RecordingPublisher<'_>, tenant: Tenant, matches: impl Fn(&str) -> bool) {
        for mut shard in self.shards() {
            for key in shard.keys(tenant, |key, _| matches(key)) {
                shard.remove(voice, tenant, &key);
            }
        }
    }

    /// RemoveAll. Objects in work are skipped, leased ones too if that is respected, and so is one whose oplog append
    /// fails.
    pub fn remove_all(
        &self,
        voice: &mut RecordingPublisher<'_>,
        tenant: Tenant,
        leases: Leases,
        mut oplog_fails: impl FnMut() -> bool,
    ) -> SweepOutcome {
        let mut sweep = voice.sweep(tenant.name());
        for mut shard in self.shards() {
            if leases == Leases::Ignored {
                shard.outwait_leases();
            }
            for key in shard.keys(tenant, |_, _| true) {
                if !shard.is_idle(tenant, &key) || oplog_fails() {
                    sweep.skipped();
                } else if let Some(before) = shard.erase(tenant, &key) {
                    voice.swept(&mut sweep, tenant.name(), &key, before);
                }
            }
        }
        voice.finish(sweep)
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
