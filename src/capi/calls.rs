//! The calls that publish. They take no lock and do not allocate, the same as from Rust.

use super::ascii::Ascii;
use super::publisher::PublisherHandle;
use super::text::Text;
use super::{Code, guard};
use crate::media::MediaSet;
use crate::names::Names;
use crate::publisher::Publisher;

/// In a set of media: memory.
pub const KV_EVENTS_CPU: u32 = 1;
/// In a set of media: everything that is not memory.
pub const KV_EVENTS_DISK: u32 = 2;

const _: () = assert!(KV_EVENTS_CPU == MediaSet::CPU.bits() as u32 && KV_EVENTS_DISK == MediaSet::DISK.bits() as u32);

/// One cached object, as the master names it. Nothing here is parsed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawObject {
    /// Tenant that owns the object; empty is `default`.
    pub tenant: Text,
    /// The store's key. An object with an empty key is suppressed.
    pub key: Text,
    /// The store's group identity; empty for none.
    pub group: Text,
}

impl RawObject {
    /// The names and the session, which may not be UTF-8; `None` if one of them cannot be.
    ///
    /// # Safety
    ///
    /// The texts are texts, and stay as they are for `'a`.
    #[inline(always)]
    pub(super) unsafe fn names<'a>(&self, session: Text) -> Option<Names<'a>> {
        // SAFETY: the caller's promise.
        let [tenant, key, group, session] = unsafe { Text::bytes([self.tenant, self.key, self.group, session]) }?;
        Some(Names { tenant, key, group, session })
    }

    /// Why there are no [`names`](Self::names).
    #[cold]
    pub(super) fn fault(&self, session: Text) -> Code {
        Text::fault([self.tenant, self.key, self.group, session])
    }
}

/// The set with those bits; `None` if there are others.
#[inline]
pub(super) fn media(bits: u32) -> Option<MediaSet> {
    MediaSet::from_bits(u8::try_from(bits).ok()?)
}

/// Media that went and media that came, of one call.
type Difference = (MediaSet, MediaSet);

/// What a commit comes to.
#[inline(always)]
fn committed(media_now: u32) -> Option<Difference> {
    media(media_now).map(|now| (MediaSet::EMPTY, now))
}

/// What a change comes to.
#[inline(always)]
fn changed(media_before: u32, media_now: u32) -> Option<Difference> {
    match (media(media_before), media(media_now)) {
        (Some(before), Some(now)) => Some((before.minus(now), now.minus(before))),
        _ => None,
    }
}

/// A value was committed (Put, Upsert, BatchPut): `stored` for every medium of `media_now`, whether or not it was readable
/// there before. With one medium it is that one event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_committed(
    publisher: *const PublisherHandle,
    object: *const RawObject,
    media_now: u32,
) -> Code {
    // SAFETY: the module's rules.
    guard(Code::Panicked, || unsafe { publish(publisher, object, Text::EMPTY, committed(media_now)) })
}

/// The same for an object that a session stored: its `stored` carry `session` as `session_id`. An empty session is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_committed_in_session(
    publisher: *const PublisherHandle,
    object: *const RawObject,
    session: Text,
    media_now: u32,
) -> Code {
    // SAFETY: the module's rules.
    guard(Code::Panicked, || unsafe { publish(publisher, object, session, committed(media_now)) })
}

/// An object's replicas changed (copy, move, offload, promotion, replica clear, eviction, stale handles): `removed` for the
/// media that went, `stored` for those that came, nothing for the rest. `media_before` is what the object was readable on
/// before the mutation: remember it before you touch the metadata, since nobody else does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_changed(
    publisher: *const PublisherHandle,
    object: *const RawObject,
    media_before: u32,
    media_now: u32,
) -> Code {
    // SAFETY: the module's rules.
    guard(Code::Panicked, || unsafe { publish(publisher, object, Text::EMPTY, changed(media_before, media_now)) })
}

/// The same for an object that a session stored: the `stored` carries `session` as `session_id`, if there is one. An empty
/// session is none, and where nothing is stored it is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_changed_in_session(
    publisher: *const PublisherHandle,
    object: *const RawObject,
    session: Text,
    media_before: u32,
    media_now: u32,
) -> Code {
    // SAFETY: the module's rules.
    guard(Code::Panicked, || unsafe { publish(publisher, object, session, changed(media_before, media_now)) })
}

/// An object was removed, or its old value became unreadable under an Upsert: `removed` for every medium of
/// `media_before`. With one medium it is that one event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_removed(
    publisher: *const PublisherHandle,
    object: *const RawObject,
    media_before: u32,
) -> Code {
    // SAFETY: the module's rules.
    guard(Code::Panicked, || unsafe {
        publish(publisher, object, Text::EMPTY, media(media_before).map(|before| (before, MediaSet::EMPTY)))
    })
}

/// One `cleared`: everything of the tenant is gone from every medium.
///
/// Nothing guards it: a `stored` that another thread publishes just before it is wiped from every view although the object
/// is there. To remove everything shard by shard use a sweep, which looks out for that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_cleared(publisher: *const PublisherHandle, tenant: Text) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let Some(publisher) = (unsafe { PublisherHandle::get(publisher) }) else { return Code::InvalidHandle };
        // SAFETY: the module's rules.
        match unsafe { tenant.read() } {
            Ok(tenant) => Code::of(publisher.cleared(tenant)),
            Err(code) => refuse(publisher, code, 1),
        }
    })
}

/// Part of each call, so that what a call leaves out costs it nothing.
///
/// # Safety
///
/// The module's rules.
#[inline(always)]
unsafe fn publish(
    publisher: *const PublisherHandle,
    object: *const RawObject,
    session: Text,
    difference: Option<Difference>,
) -> Code {
    // SAFETY: the caller's promise.
    let Some(publisher) = (unsafe { PublisherHandle::get(publisher) }) else { return Code::InvalidHandle };
    if !publisher.is_enabled() {
        return Code::Disabled;
    }
    // SAFETY: the caller's promise.
    let Some(object) = (unsafe { object.as_ref() }) else { return refuse(publisher, Code::InvalidArgument, 1) };
    let Some((removed, stored)) = difference else { return refuse(publisher, Code::UnknownMedium, 1) };
    // SAFETY: the caller's promise.
    match unsafe { object.names(session) } {
        Some(names) => Code::of(publisher.names_call(names, removed, stored, Ascii::new())),
        None => refuse(publisher, object.fault(session), (removed.len() + stored.len()) as u8),
    }
}

/// Counts what never became a call; a disabled publisher does nothing, and says so.
#[cold]
pub(super) fn refuse(publisher: &Publisher, code: Code, events: u8) -> Code {
    if publisher.count_refused(events) { code } else { Code::Disabled }
}
