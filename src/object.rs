//! An object as a master names it, and what it was readable on before a mutation.

use crate::media::MediaSet;
use std::sync::Once;

/// Tenant that an empty tenant name stands for.
pub const DEFAULT_TENANT: &str = "default";

/// One cached object, as the master names it.
///
/// Nothing here is parsed: the key goes to the wire verbatim. An empty `tenant` becomes [`DEFAULT_TENANT`], an empty
/// `group` becomes nil, and an object with an empty `key` is suppressed (counted, not sent), since no subscriber could
/// act on it. An empty `session` is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object<'a> {
    /// Tenant that owns the object (`tenant_id` on the wire).
    pub tenant: &'a str,
    /// The store's key (`object_key` on the wire).
    pub key: &'a str,
    /// The store's group identity (`group_id` on the wire); empty for none.
    pub group: &'a str,
    /// The session that stored the object (`session_id` on the wire, on `stored` only); empty for none, and then the key
    /// is absent from the event.
    pub session: &'a str,
}

impl<'a> Object<'a> {
    /// An object without a group or a session.
    #[must_use]
    pub const fn new(tenant: &'a str, key: &'a str) -> Self {
        Object { tenant, key, group: "", session: "" }
    }

    /// The same object in a group.
    #[must_use]
    pub const fn in_group(self, group: &'a str) -> Self {
        Object { group, ..self }
    }

    /// The same object, stored by a session. Calls that emit no `stored` do not look at it.
    #[must_use]
    pub const fn in_session(self, session: &'a str) -> Self {
        Object { session, ..self }
    }
}

/// The name a tenant has on the wire: `""` is [`DEFAULT_TENANT`].
pub(crate) const fn tenant_or_default(tenant: &str) -> &str {
    if tenant.is_empty() { DEFAULT_TENANT } else { tenant }
}

/// The media an object was readable on *before* a mutation.
///
/// The publisher keeps no state per object, so what a mutation changed can only be told by whoever saw the object
/// before it. Take one before you touch the metadata, then give it to the call that publishes
/// ([`Publisher::changed`](crate::Publisher::changed), [`Publisher::removed`](crate::Publisher::removed)), which
/// consumes it, or say [`discard`](Before::discard) if the mutation did not happen. It is neither `Copy` nor `Clone`,
/// so one mutation cannot be announced twice by mistake.
///
/// ```compile_fail,E0382
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// let publisher = Publisher::disabled();
/// let before = Before::mutation(MediaSet::CPU);
/// publisher.removed(&Object::new("t", "k"), before);
/// publisher.removed(&Object::new("t", "k"), before); // moved: does not compile
/// ```
///
/// Dropping one that was neither published nor discarded is a mistake: subscribers do not learn of the mutation. The first
/// such drop in a process is logged as a warning.
///
/// What makes it hard to forget is one function that every mutation of an object's replicas goes through:
///
/// ```
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// # struct Entry { media: MediaSet }
/// fn mutate(publisher: &Publisher, key: &str, entry: &mut Entry, change: impl FnOnce(&mut Entry)) {
///     let before = Before::mutation(entry.media);
///     change(entry);
///     publisher.changed(&Object::new("tenant-a", key), before, entry.media);
/// }
/// # mutate(&Publisher::disabled(), "k", &mut Entry { media: MediaSet::CPU }, |entry| entry.media = MediaSet::DISK);
/// ```
#[derive(Debug)]
#[must_use = "give it to the call that publishes the mutation, or `discard` it"]
pub struct Before(MediaSet);

impl Before {
    /// Remembers the media an object is readable on now, just before it is mutated.
    pub const fn mutation(media_now: MediaSet) -> Before {
        Before(media_now)
    }

    /// The media remembered.
    #[must_use]
    pub const fn media(&self) -> MediaSet {
        self.0
    }

    /// Says that the mutation did not happen, so there is nothing to publish.
    pub fn discard(self) {
        self.spend();
    }

    pub(crate) fn spend(self) -> MediaSet {
        let media = self.0;
        std::mem::forget(self);
        media
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        static WARNED: Once = Once::new();
        if !std::thread::panicking() {
            WARNED.call_once(|| {
                crate::logging::warning!(
                    "kv-events: a `Before` was dropped, so a mutation was not published; publish it, or call `discard` \
                     (logged once)"
                );
            });
        }
    }
}
