//! Remove-all sweeps against stores that race with them: no `cleared` stands behind a `stored` of its tenant that is not
//! removed, for it would wipe that from every view.
//!
//! A small master: shards with locks, mutation and publish under the shard's lock, and a sweep that takes one shard after
//! another. The judge replays the queue as a subscriber would, and compares.

use crate::support::{Model, Name, Seen};
use kv_events::internals::{SweepEnd, SweepTable};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// Calls' names say what they are: what happened, and to which shard's object.
const STORED: u8 = 1;
const REMOVED: u8 = 2;
const CLEARED: u8 = 3;

const TENANT: &str = "a";

/// A master whose shards hold one object each, of the tenant `a`.
struct Master {
    shards: Vec<Mutex<bool>>,
    sweeps: SweepTable,
    /// What the ring does first: claims a position.
    claimed: AtomicU64,
    /// What was queued, with its position; no step of the model.
    queued: std::sync::Mutex<Vec<(u64, Name)>>,
}

impl Master {
    /// With an object in the first shard, of which the view knows.
    fn new(shards: usize) -> Arc<Self> {
        Arc::new(Master {
            shards: (0..shards).map(|shard| Mutex::new(shard == 0)).collect(),
            sweeps: SweepTable::new(),
            claimed: AtomicU64::new(0),
            queued: std::sync::Mutex::new(Vec::new()),
        })
    }

    fn publish(&self, what: u8, shard: usize) {
        // Relaxed, as in the ring.
        let at = self.claimed.fetch_add(1, Ordering::Relaxed);
        self.queued.lock().unwrap().push((at, (what, shard as u32)));
    }

    fn store(&self, tenant: &str, shard: usize) {
        let mut object = self.shards[shard].lock().unwrap();
        if tenant == TENANT {
            *object = true;
        }
        let stored = self.sweeps.store(tenant.as_bytes(), || -> Result<(), ()> {
            if tenant == TENANT {
                self.publish(STORED, shard);
            }
            Ok(())
        });
        stored.unwrap();
    }

    /// Removes everything; `true` if it could say so.
    fn sweep(&self) -> bool {
        let token = self.sweeps.begin(TENANT).unwrap();
        let mut removed = false;
        for (shard, object) in self.shards.iter().enumerate() {
            let mut object = object.lock().unwrap();
            if std::mem::take(&mut *object) {
                removed = true;
                self.publish(REMOVED, shard);
            }
        }
        if !removed {
            self.sweeps.cancel(token);
            return false;
        }
        self.sweeps.end(token, || self.publish(CLEARED, 0)) == SweepEnd::Uninterrupted(())
    }

    fn judge(&self) {
        let mut queued = self.queued.lock().unwrap().clone();
        queued.sort_unstable();
        let mut view: Vec<bool> = (0..self.shards.len()).map(|shard| shard == 0).collect();
        for (_, name) in &queued {
            match *name {
                (STORED, shard) => view[shard as usize] = true,
                (REMOVED, shard) => view[shard as usize] = false,
                _ => view.fill(false),
            }
        }
        let master: Vec<bool> = self.shards.iter().map(|object| *object.lock().unwrap()).collect();
        assert_eq!(view, master, "the view is what the master has: {queued:?}");
    }
}

/// One sweep (or two) and stores, each a tenant and a shard.
fn check(model: Model, shards: usize, sweeps: usize, stores: &'static [(&'static str, usize)]) {
    model.check(move |counts| {
        let master = Master::new(shards);
        let sweepers: Vec<_> = (0..sweeps)
            .map(|_| {
                let master = Arc::clone(&master);
                thread::spawn(move || master.sweep())
            })
            .collect();
        let storers: Vec<_> = stores
            .iter()
            .map(|&(tenant, shard)| {
                let master = Arc::clone(&master);
                thread::spawn(move || master.store(tenant, shard))
            })
            .collect();
        storers.into_iter().for_each(|storer| storer.join().unwrap());
        let said = sweepers.into_iter().map(|sweeper| sweeper.join().unwrap()).filter(|said| *said).count();
        counts.note(Seen::Refused, said < sweeps);
        counts.note(Seen::Special, said > 0);
        master.judge();
    });
}

/// A store into the shard that is swept, and one into a shard that is swept later.
#[test]
fn one_store() {
    let must_see = &[Seen::Refused, Seen::Special];
    check(Model { name: "sweep_one_store", bound: None, floor: 50, must_see }, 1, 1, &[(TENANT, 0)]);
}

#[test]
fn two_stores() {
    let must_see = &[Seen::Refused, Seen::Special];
    let model = Model { name: "sweep_two_stores", bound: Some(3), floor: 1000, must_see };
    check(model, 2, 1, &[(TENANT, 0), (TENANT, 1)]);
}

/// Two sweeps of one tenant do not know of each other, and the store that interrupts both is one.
#[test]
fn two_sweeps() {
    let must_see = &[Seen::Refused, Seen::Special];
    check(Model { name: "sweep_two_sweeps", bound: Some(3), floor: 1000, must_see }, 1, 2, &[(TENANT, 0)]);
}

/// A store that is refused interrupts nothing, and one sweep that is given up leaves the other as it was.
#[test]
fn refused_and_cancelled() {
    let model = Model { name: "sweep_refused_and_cancelled", bound: None, floor: 10, must_see: &[Seen::Special] };
    model.check(|counts| {
        let master = Master::new(1);
        let sweeper = thread::spawn({
            let master = Arc::clone(&master);
            move || assert!(master.sweep(), "what was not queued interrupts nothing")
        });
        let other = thread::spawn({
            let master = Arc::clone(&master);
            move || {
                let token = master.sweeps.begin(TENANT).unwrap();
                assert_eq!(master.sweeps.store(TENANT.as_bytes(), || Err("refused")), Err("refused"));
                master.sweeps.cancel(token);
            }
        });
        sweeper.join().unwrap();
        other.join().unwrap();
        assert!(master.sweeps.is_idle(), "all have gone");
        counts.note(Seen::Special, true);
        master.judge();
    });
}

/// Sweeps of different tenants: a store interrupts its own tenant's alone.
#[test]
fn sweeps_of_two_tenants() {
    let model = Model { name: "sweep_two_tenants", bound: Some(3), floor: 100, must_see: &[Seen::Special] };
    model.check(|counts| {
        let master = Master::new(1);
        let sweeper = thread::spawn({
            let master = Arc::clone(&master);
            move || assert!(master.sweep(), "a store of another tenant interrupts nothing")
        });
        let other = thread::spawn({
            let master = Arc::clone(&master);
            move || {
                let token = master.sweeps.begin("b").unwrap();
                master.store("b", 0);
                master.sweeps.end(token, || ())
            }
        });
        sweeper.join().unwrap();
        assert_eq!(other.join().unwrap(), SweepEnd::Interrupted, "its own tenant's does");
        counts.note(Seen::Special, true);
        master.judge();
    });
}

/// A store of another tenant interrupts nothing.
#[test]
fn another_tenant() {
    Model { name: "sweep_another_tenant", bound: None, floor: 10, must_see: &[Seen::Special] }.check(|counts| {
        let master = Master::new(1);
        let sweeper = thread::spawn({
            let master = Arc::clone(&master);
            move || assert!(master.sweep(), "a store of another tenant interrupts nothing")
        });
        let storer = thread::spawn({
            let master = Arc::clone(&master);
            move || master.store("b", 0)
        });
        storer.join().unwrap();
        sweeper.join().unwrap();
        counts.note(Seen::Special, true);
        master.judge();
    });
}
