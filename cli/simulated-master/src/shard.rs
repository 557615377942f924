//! One shard of the master: objects and their replicas under one lock, and what becomes of them when room is short.

use crate::master::{Client, Tenant};
use crate::recording_publisher::RecordingPublisher;
use kv_events::{Before, MediaSet, Medium, Replica, ReplicaKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Ticks of a shard's clock for which a hit protects an object.
const LEASE: u64 = 16;

/// A replica and the client that holds it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) replica: Replica,
    pub(super) client: Client,
}

impl Held {
    pub(super) fn completed(kind: ReplicaKind, client: Client) -> Self {
        Held { replica: Replica { kind, completed: true }, client }
    }

    pub(super) fn medium(&self) -> Medium {
        self.replica.kind.medium()
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    key: Arc<str>,
    pub(super) replicas: Vec<Held>,
    /// A copy of it is under way.
    pub(super) copying: bool,
    /// The put under way that made it, or replaces its value.
    writer: Option<u64>,
    leased_until: u64,
    /// Its place among the coldest, on each medium it is readable on.
    rank: [Option<u64>; 2],
}

impl Entry {
    pub(super) fn media(&self) -> MediaSet {
        MediaSet::of_replicas(self.replicas.iter().map(|held| held.replica))
    }
}

/// A put under way: who may end it.
#[derive(Debug)]
pub struct Put {
    pub(super) tenant: Tenant,
    pub(super) key: Arc<str>,
    writer: u64,
}

/// Every mutation is published before the shard's lock is let go: it is in the caller's hands, as the `&mut`.
#[derive(Debug)]
pub(super) struct Shard {
    tenants: [HashMap<Arc<str>, Entry>; Tenant::ALL.len()],
    coldest_first: [BTreeMap<u64, (Tenant, Arc<str>)>; 2],
    capacity: [usize; 2],
    clock: u64,
}

impl Shard {
    /// A shard that keeps so many objects in memory and so many on disk.
    pub(super) fn new(capacity: [usize; 2]) -> Self {
        Shard { tenants: Default::default(), coldest_first: Default::default(), capacity, clock: 0 }
    }

    pub(super) fn get(&self, tenant: Tenant, key: &str) -> Option<&Entry> {
        self.tenants[tenant as usize].get(key)
    }

    pub(super) fn objects(&self, tenant: Tenant) -> impl Iterator<Item = (&Arc<str>, &Entry)> {
        self.tenants[tenant as usize].iter()
    }

    /// Keys of the tenant's objects that are as `wanted`.
    pub(super) fn keys(&self, tenant: Tenant, wanted: impl Fn(&Arc<str>, &Entry) -> bool) -> Vec<Arc<str>> {
        self.objects(tenant).filter(|(key, entry)| wanted(key, entry)).map(|(key, _)| Arc::clone(key)).collect()
    }

    /// The coldest objects in memory.
    pub(super) fn coldest(&self, count: usize) -> Vec<(Tenant, Arc<str>)> {
        self.coldest_first[Medium::Cpu as usize].values().take(count).cloned().collect()
    }

    /// Whether the object is there, not leased, and no put or task is under way for it.
    pub(super) fn is_idle(&self, tenant: Tenant, key: &str) -> bool {
        self.get(tenant, key).is_some_and(|entry| !self.is_busy(entry))
    }

    fn is_busy(&self, entry: &Entry) -> bool {
        entry.copying || entry.writer.is_some() || entry.leased_until > self.clock
    }

    /// Begins a copy of an idle object; says whether it was one.
    pub(super) fn begin_copy(&mut self, tenant: Tenant, key: &str) -> bool {
        let is_idle = self.is_idle(tenant, key);
        if is_idle {
            self.alter_silently(tenant, key, |entry| entry.copying = true);
        }
        is_idle
    }

    /// A hit: the object is the warmest again and leased for a while.
    pub(super) fn refresh(&mut self, tenant: Tenant, key: &str) {
        self.clock += 1;
        let Some(entry) = self.tenants[tenant as usize].get_mut(key) else { return };
        entry.leased_until = self.clock + LEASE;
        for (order, rank) in self.coldest_first.iter_mut().zip(&mut entry.rank) {
            if let Some(place) = rank.and_then(|old| order.remove(&old)) {
                order.insert(self.clock, place);
                *rank = Some(self.clock);
            }
        }
    }

    /// Ends all leases by letting time pass.
    pub(super) fn outwait_leases(&mut self) {
        self.clock += LEASE;
    }

    /// Begins a put or, with `replace`, an upsert: the old value is unreadable from here on. `None` if the object is there
    /// already, or busy.
    pub(super) fn begin_put(
        &mut self,
        voice: &mut RecordingPublisher<'_>,
        (tenant, key): (Tenant, &str),
        kinds: &[ReplicaKind],
        client: Client,
        replace: bool,
    ) -> Option<Put> {
        self.clock += 1;
        let writer = self.clock;
        let incomplete = |kind: &ReplicaKind| Held { replica: Replica { kind: *kind, completed: false }, client };
        let replicas: Vec<Held> = kinds.iter().map(incomplete).collect();
        let key = match self.get(tenant, key) {
            Some(entry) if !replace || self.is_busy(entry) => return None,
            Some(entry) => {
                let key = Arc::clone(&entry.key);
                let before = Before::mutation(entry.media());
                self.alter_silently(tenant, &key, |entry| {
                    entry.replicas = replicas;
                    entry.writer = Some(writer);
                });
                voice.removed(tenant.name(), &key, before);
                key
            }
            None => {
                let key: Arc<str> = key.into();
                let entry = Entry {
                    key: Arc::clone(&key),
                    replicas,
                    copying: false,
                    writer: Some(writer),
                    leased_until: 0,
                    rank: [None; 2],
                };
                self.tenants[tenant as usize].insert(Arc::clone(&key), entry);
                key
            }
        };
        Some(Put { tenant, key, writer })
    }

    /// Commits a put, unless a stale client took it along.
    pub(super) fn end_put(&mut self, voice: &mut RecordingPublisher<'_>, put: &Put) {
        if !self.is_writer(put) {
            return;
        }
        let now = self.alter_silently(put.tenant, &put.key, |entry| {
            entry.writer = None;
            entry.replicas.iter_mut().for_each(|held| held.replica.completed = true);
        });
        voice.committed(put.tenant.name(), &put.key, now);
        self.make_room(voice);
    }

    /// A put that failed: nobody has been told of its value, so nobody is told that it is gone.
    pub(super) fn revoke_put(&mut self, put: &Put) {
        if self.is_writer(put) {
            self.alter_silently(put.tenant, &put.key, |entry| entry.replicas.clear());
        }
    }

    fn is_writer(&self, put: &Put) -> bool {
        self.get(put.tenant, &put.key).is_some_and(|entry| entry.writer == Some(put.writer))
    }

    /// Changes an object's replicas and publishes the difference. An object without replicas is no more.
    pub(super) fn alter(
        &mut self,
        voice: &mut RecordingPublisher<'_>,
        tenant: Tenant,
        key: &str,
        change: impl FnOnce(&mut Entry),
    ) {
        let Some(entry) = self.get(tenant, key) else { return };
        let before = Before::mutation(entry.media());
        let now = self.alter_silently(tenant, key, change);
        voice.changed(tenant.name(), key, before, now);
    }

    /// Removes an object if it is idle.
    pub(super) fn remove(&mut self, voice: &mut RecordingPublisher<'_>, tenant: Tenant, key: &str) {
        if !self.is_idle(tenant, key) {
            return;
        }
        if let Some(before) = self.erase(tenant, key) {
            voice.removed(tenant.name(), key, before);
        }
    }

    /// Takes an object away; what it was readable on has to be published.
    pub(super) fn erase(&mut self, tenant: Tenant, key: &str) -> Option<Before> {
        let before = Before::mutation(self.get(tenant, key)?.media());
        self.alter_silently(tenant, key, |entry| entry.replicas.clear());
        Some(before)
    }

    /// Changes an object, keeps the places of the coldest true, and drops it if no replica is left. The media it is
    /// readable on now.
    fn alter_silently(&mut self, tenant: Tenant, key: &str, change: impl FnOnce(&mut Entry)) -> MediaSet {
        let Some(entry) = self.tenants[tenant as usize].get_mut(key) else { return MediaSet::EMPTY };
        change(entry);
        let now = entry.media();
        for (medium, order) in Medium::ALL.into_iter().zip(&mut self.coldest_first) {
            let rank = &mut entry.rank[medium as usize];
            match *rank {
                None if now.contains(medium) && tenant.can_be_evicted() => {
                    self.clock += 1;
                    order.insert(self.clock, (tenant, Arc::clone(&entry.key)));
                    *rank = Some(self.clock);
                }
                Some(old) if !now.contains(medium) => {
                    order.remove(&old);
                    *rank = None;
                }
                _ => {}
            }
        }
        if entry.replicas.is_empty() {
            self.tenants[tenant as usize].remove(key);
        }
        now
    }

    /// Evicts the coldest objects of a full tier: from memory to disk, from disk to nowhere. One that drops its last
    /// replica is gone with the same call.
    pub(super) fn make_room(&mut self, voice: &mut RecordingPublisher<'_>) {
        for medium in Medium::ALL {
            let to_disk = medium == Medium::Cpu && self.capacity[Medium::Disk as usize] > 0;
            while let Some((tenant, key)) = self.evictable(medium) {
                self.alter(voice, tenant, &key, |entry| {
                    let client = entry.replicas[0].client;
                    entry.replicas.retain(|held| held.medium() != medium);
                    if to_disk && entry.replicas.is_empty() {
                        entry.replicas.push(Held::completed(ReplicaKind::LocalDisk, client));
                    }
                });
            }
        }
    }

    /// The coldest object that may go from a tier that holds too many; leased ones and those in work stay for now.
    fn evictable(&self, medium: Medium) -> Option<(Tenant, Arc<str>)> {
        let order = &self.coldest_first[medium as usize];
        if order.len() <= self.capacity[medium as usize] {
            return None;
        }
        order.values().find(|(tenant, key)| self.is_idle(*tenant, key)).cloned()
    }
}
