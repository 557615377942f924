//! Remove-all sweeps.

use super::ascii::Ascii;
use super::calls::{RawObject, media, refuse};
use super::publisher::PublisherHandle;
use super::text::Text;
use super::{Code, guard};
use crate::media::MediaSet;
use crate::publisher::{Sweep, SweepOutcome};

/// Marks a sweep's handle.
const KIND: u64 = 0x6b76_5f73_7765_6570;

/// A remove-all sweep over one tenant. Threads may share it to tell of their shards' objects; the call that ends it needs
/// it to itself.
// In this order, so that the kind is where it is in a handle of the other kind, which may be smaller. The header shall not tell
// the fields, as it does of what it sees to be laid out as in C.
#[cfg_attr(all(), repr(C))]
#[derive(Debug)]
pub struct SweepHandle {
    kind: u64,
    sweep: Sweep,
}

impl SweepHandle {
    /// # Safety
    ///
    /// `handle` is null or points to at least the size of a handle, and is not ended within `'a`.
    unsafe fn get<'a>(handle: *const SweepHandle) -> Option<&'a SweepHandle> {
        if handle.is_null() {
            return None;
        }
        // SAFETY: the caller's promise. Only the first field is looked at before it is known to be a sweep.
        let kind = unsafe { (&raw const (*handle).kind).read() };
        // SAFETY: it is a sweep.
        (kind == KIND).then(|| unsafe { &*handle })
    }

    /// Takes the sweep out of the caller's variable, which becomes null.
    ///
    /// # Safety
    ///
    /// `place` is null or points to a variable that holds what [`get`](Self::get) takes, and nobody else uses the sweep.
    unsafe fn take(place: *mut *mut SweepHandle) -> Option<Box<SweepHandle>> {
        // SAFETY: the caller's promise.
        let place = unsafe { place.as_mut() }?;
        // SAFETY: the caller's promise.
        unsafe { Self::get(*place) }?;
        let handle = std::mem::replace(place, std::ptr::null_mut());
        // SAFETY: it is a sweep, made by a box, and no other variable is to be used any more.
        unsafe {
            (*handle).kind = 0;
            Some(Box::from_raw(handle))
        }
    }
}

/// What a box of a handle has, but where there is no memory it is null and not the end of the process.
fn room_for_one() -> Option<*mut SweepHandle> {
    // SAFETY: a handle is larger than nothing.
    let room = unsafe { std::alloc::alloc(std::alloc::Layout::new::<SweepHandle>()) };
    (!room.is_null()).then_some(room.cast())
}

/// Begins to remove everything of a tenant (empty is `default`). Begin before the first removal, then take every lock under
/// which the tenant can store, one shard after another; tell of every object that was removed and of every one that was
/// skipped; then finish.
///
/// On KV_EVENTS_OK and KV_EVENTS_DISABLED `*sweep` is a handle, which must be finished or cancelled; a negative code makes
/// it NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_sweep_begin(
    publisher: *const PublisherHandle,
    tenant: Text,
    sweep: *mut *mut SweepHandle,
) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let Some(place) = (unsafe { sweep.as_mut() }) else { return Code::InvalidArgument };
        *place = std::ptr::null_mut();
        // SAFETY: the module's rules.
        let Some(publisher) = (unsafe { PublisherHandle::get(publisher) }) else { return Code::InvalidHandle };
        // SAFETY: the module's rules.
        let tenant = match unsafe { tenant.read() } {
            Ok(tenant) => tenant,
            Err(code) => return code,
        };
        let code = if publisher.is_enabled() { Code::Ok } else { Code::Disabled };
        let Some(room) = room_for_one() else { return Code::OutOfMemory };
        // SAFETY: the room is one handle's, not yet written to, and goes back as the box that it could have come from.
        unsafe { room.write(SweepHandle { kind: KIND, sweep: publisher.sweep(tenant) }) };
        *place = room;
        code
    })
}

/// An object was removed: sends `removed` for every medium of `media_before`. A removal that is suppressed or refused, or of
/// an object that was readable nowhere, counts as one all the same. An object of another tenant is published, and counts
/// for nothing here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_sweep_removed(
    sweep: *const SweepHandle,
    object: *const RawObject,
    media_before: u32,
) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let Some(SweepHandle { sweep, .. }) = (unsafe { SweepHandle::get(sweep) }) else {
            return Code::InvalidHandle;
        };
        let publisher = sweep.publisher();
        // SAFETY: the module's rules.
        let Some(raw) = (unsafe { object.as_ref() }) else { return refuse(publisher, Code::InvalidArgument, 1) };
        // SAFETY: the module's rules.
        let (names, media) = (unsafe { raw.names(Text::EMPTY) }, media(media_before));
        // Even what cannot be told is gone: a `cleared` may still say so.
        // SAFETY: the module's rules.
        if let Some([tenant]) = unsafe { Text::bytes([raw.tenant]) } {
            sweep.count_removed(tenant);
        }
        match (names, media) {
            (Some(names), Some(media)) => Code::of(publisher.names_call(names, media, MediaSet::EMPTY, Ascii::new())),
            (_, None) => refuse(publisher, Code::UnknownMedium, 1),
            (None, Some(media)) => refuse(publisher, raw.fault(Text::EMPTY), media.len() as u8),
        }
    })
}

/// An object was left where it is, for whatever reason: leased, a replica incomplete, a task pending, an oplog slot or
/// append that failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_sweep_skipped(sweep: *const SweepHandle) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let Some(handle) = (unsafe { SweepHandle::get(sweep) }) else { return Code::InvalidHandle };
        handle.sweep.skipped();
        Code::Ok
    })
}

/// Ends the sweep and makes `*sweep` NULL. Sends one `cleared` if at least one object was removed, none was skipped, and no
/// `stored` of the tenant was published meanwhile; the code says which it was. The removals were sent as they came, so
/// without a `cleared` all has been said as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_sweep_finish(sweep: *mut *mut SweepHandle) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let Some(handle) = (unsafe { SweepHandle::take(sweep) }) else { return Code::InvalidHandle };
        let SweepHandle { sweep, .. } = *handle;
        match sweep.finish() {
            SweepOutcome::Cleared(outcome) => Code::of(outcome),
            SweepOutcome::NothingRemoved => Code::Nothing,
            SweepOutcome::Skipped => Code::SweepSkipped,
            SweepOutcome::Interrupted => Code::SweepInterrupted,
        }
    })
}

/// Ends the sweep without `cleared` and makes `*sweep` NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_sweep_cancel(sweep: *mut *mut SweepHandle) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        match unsafe { SweepHandle::take(sweep) } {
            Some(_ended) => Code::Ok,
            None => Code::InvalidHandle,
        }
    })
}
