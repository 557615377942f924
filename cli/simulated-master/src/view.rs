//! Which object is readable on which medium: what a subscriber builds from the stream, and what it should be.

use kv_events::{MediaSet, Medium};
use std::collections::HashMap;
use std::sync::Arc;

/// Media by tenant (its name on the wire) and object key. Objects that are readable nowhere are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    tenants: HashMap<Box<str>, HashMap<Arc<str>, MediaSet>>,
}

impl View {
    pub fn stored(&mut self, tenant: &str, key: &str, medium: Medium) {
        if let Some(media) = self.tenants.get_mut(tenant).and_then(|objects| objects.get_mut(key)) {
            *media = media.with(medium);
        } else {
            self.insert(tenant, key.into(), medium.into());
        }
    }

    pub fn removed(&mut self, tenant: &str, key: &str, medium: Medium) {
        let Some(objects) = self.tenants.get_mut(tenant) else { return };
        let Some(media) = objects.get_mut(key) else { return };
        *media = media.without(medium);
        if media.is_empty() {
            objects.remove(key);
        }
        if objects.is_empty() {
            self.tenants.remove(tenant);
        }
    }

    pub fn cleared(&mut self, tenant: &str) {
        self.tenants.remove(tenant);
    }

    /// Puts in a whole object, as a snapshot does.
    pub fn insert(&mut self, tenant: &str, key: Arc<str>, media: MediaSet) {
        match self.tenants.get_mut(tenant) {
            Some(objects) => {
                objects.insert(key, media);
            }
            None => {
                self.tenants.insert(tenant.into(), HashMap::from([(key, media)]));
            }
        }
    }

    /// Objects in the view.
    pub fn len(&self) -> usize {
        self.tenants.values().map(HashMap::len).sum()
    }

    /// Whether no object is readable anywhere.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first object, in the order of names, on which this view and the master's differ.
    pub fn first_difference(&self, master: &View) -> Option<String> {
        let media = |view: &View, tenant: &str, key: &str| {
            view.tenants.get(tenant).and_then(|objects| objects.get(key)).copied().unwrap_or_default()
        };
        let mut all: Vec<(&str, &str)> = [self, master]
            .into_iter()
            .flat_map(|view| &view.tenants)
            .flat_map(|(tenant, objects)| objects.keys().map(|key| (&**tenant, &**key)))
            .filter(|(tenant, key)| media(self, tenant, key) != media(master, tenant, key))
            .collect();
        all.sort_unstable();
        all.dedup();
        let (tenant, key) = all.first()?;
        Some(format!(
            "{} of the master's {} objects differ, first {key} of {tenant}: the view says {:?}, the master {:?}",
            all.len(),
            master.len(),
            media(self, tenant, key),
            media(master, tenant, key)
        ))
    }
}
