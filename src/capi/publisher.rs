//! A publisher's life: start, questions, stop, free.

use super::config::RawConfig;
use super::status::{RawStopReport, check_room, put};
use super::text::Buffer;
use super::{Code, guard};
use crate::config::Config;
use crate::publisher::Publisher;
use crate::sync::{Kept, Slot};
use std::time::Duration;

/// Marks a publisher's handle. No more than 31 bits, since those can be compared with in one instruction.
const KIND: u64 = 0x6b76_7031;

/// A publisher. Any number of threads may use it at once, `kv_events_stop` included; only `kv_events_free` needs it to
/// itself. A handle that was freed is still recognised: calls with it return KV_EVENTS_INVALID_HANDLE.
// In this order, so that the kind is where it is in a handle of the other kind, which may be smaller. The header shall not tell
// the fields, as it does of what it sees to be laid out as in C.
#[cfg_attr(all(), repr(C))]
#[derive(Debug)]
pub struct PublisherHandle {
    kind: u64,
    publisher: Slot<Publisher>,
}

/// Every handle there ever was. They are never freed (a few bytes for each publisher of the process), which is what makes
/// one recognisable that was.
static HANDLES: Kept<&'static PublisherHandle> = Kept::new();

impl PublisherHandle {
    fn new(publisher: Publisher) -> *mut PublisherHandle {
        let slot = Slot::new(Box::into_raw(Box::new(publisher)));
        let handle = Box::into_raw(Box::new(PublisherHandle { kind: KIND, publisher: slot }));
        // SAFETY: it was just made, is never freed, and all that is ever done to it goes through shared references.
        HANDLES.keep(unsafe { &*handle });
        handle
    }

    /// The publisher behind a handle.
    ///
    /// # Safety
    ///
    /// `handle` is null or points to at least the size of a handle, and is not freed within `'a`.
    #[inline]
    pub(super) unsafe fn get<'a>(handle: *const PublisherHandle) -> Option<&'a Publisher> {
        // SAFETY: the caller's promise; any bytes make a handle.
        let handle = unsafe { handle.as_ref() }?;
        if handle.kind != KIND {
            return None;
        }
        // SAFETY: the slot holds null, or a pointer to a publisher that lives until it is freed.
        unsafe { handle.publisher.get().as_ref() }
    }
}

/// Starts a publisher: binds the socket and starts the sender thread. On KV_EVENTS_OK, `*publisher` is its handle.
///
/// With `enable_kv_events` 0, and in a library built without ZeroMQ, it returns KV_EVENTS_DISABLED: `*publisher` is a
/// handle all the same, and every call with it does nothing. A negative code leaves nothing behind, and `*publisher` is
/// NULL. `error`, which may be NULL, gets the reason in words; it is empty on KV_EVENTS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_start(
    config: *const RawConfig,
    publisher: *mut *mut PublisherHandle,
    error: *mut Buffer,
) -> Code {
    // SAFETY: the module's rules.
    unsafe { start_by(|| start(RawConfig::read(config)?), publisher, error) }
}

type Started = Result<(Publisher, Code, &'static str), (Code, String)>;

/// Leaves a handle and an empty text, or null and a reason, even if `start` panics.
///
/// # Safety
///
/// The module's rules.
unsafe fn start_by(start: impl FnOnce() -> Started, publisher: *mut *mut PublisherHandle, error: *mut Buffer) -> Code {
    // SAFETY: the caller's promise.
    let Some(place) = (unsafe { publisher.as_mut() }) else {
        // SAFETY: the caller's promise.
        unsafe { Buffer::put(error, "the place for the publisher is null") };
        return Code::InvalidArgument;
    };
    *place = std::ptr::null_mut();
    let (code, reason) = guard((Code::Panicked, Code::Panicked.text().to_owned()), || match start() {
        Ok((publisher, code, reason)) => {
            *place = PublisherHandle::new(publisher);
            (code, reason.to_owned())
        }
        Err(error) => error,
    });
    // SAFETY: the caller's promise.
    unsafe { Buffer::put(error, &reason) };
    code
}

fn start(config: Config) -> Started {
    let wanted = config.enabled;
    let publisher = Publisher::start(config).map_err(|error| (Code::of_start(&error), error.to_string()))?;
    Ok(match (publisher.is_enabled(), wanted) {
        (true, _) => (publisher, Code::Ok, ""),
        (false, false) => (publisher, Code::Disabled, "enable_kv_events is false"),
        (false, true) => (publisher, Code::Disabled, "the library was built without ZeroMQ (feature `zmq`)"),
    })
}

/// Whether calls publish: false for a handle that is none, if it is disabled, and from the moment it is stopped or its
/// sender dies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_enabled(publisher: *const PublisherHandle) -> bool {
    // SAFETY: the module's rules.
    guard(false, || unsafe { PublisherHandle::get(publisher) }.is_some_and(Publisher::is_open))
}

/// The endpoint really bound (the port, if 0 or `*` was asked for); empty if disabled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_bound_endpoint(publisher: *const PublisherHandle, endpoint: *mut Buffer) -> Code {
    // SAFETY: the module's rules.
    unsafe { answer(publisher, endpoint, |publisher| publisher.bound_endpoint().map(str::to_owned)) }
}

/// What the sender died of; empty while it is well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_unhealthy_reason(publisher: *const PublisherHandle, reason: *mut Buffer) -> Code {
    // SAFETY: the module's rules.
    unsafe { answer(publisher, reason, |publisher| publisher.status().unhealthy_reason) }
}

/// What keeps new subscribers out now (no descriptor is left, the ipc path is gone); empty while nothing does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_endpoint_fault(publisher: *const PublisherHandle, reason: *mut Buffer) -> Code {
    // SAFETY: the module's rules.
    unsafe { answer(publisher, reason, |publisher| publisher.status().endpoint_fault) }
}

/// # Safety
///
/// The module's rules.
unsafe fn answer(
    publisher: *const PublisherHandle,
    buffer: *mut Buffer,
    question: impl FnOnce(&Publisher) -> Option<String>,
) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the caller's promise.
        unsafe { Buffer::put(buffer, "") };
        // SAFETY: the caller's promise.
        let Some(publisher) = (unsafe { PublisherHandle::get(publisher) }) else { return Code::InvalidHandle };
        if buffer.is_null() {
            return Code::InvalidArgument;
        }
        // SAFETY: the caller's promise.
        unsafe { Buffer::put(buffer, &question(publisher).unwrap_or_default()) };
        Code::Ok
    })
}

/// Stops: calls are refused from now on, what was accepted is sent, then the socket lingers, all within `deadline_ms`. What
/// could not be sent is counted as abandoned. `report` may be NULL.
///
/// A second stop changes nothing and reports again. It may be called while other threads publish. The handle stays good for
/// questions until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_stop(
    publisher: *const PublisherHandle,
    deadline_ms: u64,
    report: *mut RawStopReport,
) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let Some(publisher) = (unsafe { PublisherHandle::get(publisher) }) else { return Code::InvalidHandle };
        if !report.is_null() {
            // SAFETY: the module's rules.
            if let Err(code) = unsafe { check_room(report) } {
                return code;
            }
        }
        let stopped = publisher.stop(Duration::from_millis(deadline_ms));
        if !report.is_null() {
            // SAFETY: the module's rules, and there is room.
            unsafe { put(report, RawStopReport::from(stopped)) };
        }
        Code::Ok
    })
}

/// Frees a publisher, after stopping it with a deadline of one second if it was not stopped. NULL is no error. No other call
/// with the handle may be running; later ones return KV_EVENTS_INVALID_HANDLE.
///
/// In a forked child nothing is stopped, waited for or closed: all of that is the parent's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_free(publisher: *mut PublisherHandle) -> Code {
    guard(Code::Panicked, || {
        if publisher.is_null() {
            return Code::Ok;
        }
        // SAFETY: the module's rules.
        if unsafe { PublisherHandle::get(publisher) }.is_none() {
            return Code::InvalidHandle;
        }
        // SAFETY: just checked to be a handle; they are never freed.
        let taken = unsafe { &*publisher }.publisher.take();
        if taken.is_null() {
            return Code::InvalidHandle;
        }
        // SAFETY: a slot's pointer comes from `Box::into_raw`, and it can be taken once.
        let publisher = unsafe { Box::from_raw(taken) };
        // An unfinished sweep keeps the memory, not the socket.
        publisher.retire();
        Code::Ok
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_panics_leaves_null_and_a_reason() {
        let mut room = [b'x'; 64];
        let mut error = Buffer { data: room.as_mut_ptr().cast(), capacity: room.len(), length: usize::MAX };
        let mut handle = std::ptr::dangling_mut();
        // SAFETY: the pointers are those of live variables.
        let code = unsafe { start_by(|| panic!("on purpose"), &mut handle, &mut error) };
        assert_eq!((code, handle), (Code::Panicked, std::ptr::null_mut()));
        let reason = Code::Panicked.text();
        assert_eq!((error.length, &room[..=reason.len()]), (reason.len(), format!("{reason}\0").as_bytes()));
    }
}
