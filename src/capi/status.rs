//! Status and the stop's report, as C reads them.

use super::{Code, SIZE_LIMIT, guard};
use crate::status::{Status, StopReport};
use std::mem::{offset_of, size_of};

/// A publisher's figures at one moment. Set `size` to sizeof before the call, which fills in the rest. The struct grows at
/// its end only: a library that is older than the program's header fills in less, and `size` then says how much. What lies
/// beyond is left as it was.
///
/// Once all calls have returned and the sender is idle, accepted events are `published_events` + `evicted_events` +
/// `failed_events` (+ `abandoned_events` after a stop).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RawStatus {
    /// sizeof of the struct; set by the caller. Afterwards, how much of it was filled in.
    pub size: usize,
    /// Messages whose last frame the socket took, empty batches included.
    pub published_batches: u64,
    /// Events in those messages.
    pub published_events: u64,
    /// Lost after being accepted: evicted + failed + abandoned.
    pub dropped_events: u64,
    /// Held back for want of an object key.
    pub skipped_keyless_events: u64,
    /// Not accepted; the call said so.
    pub refused_events: u64,
    /// Bytes of payload in the published messages.
    pub published_bytes: u64,
    /// Evicted from the full queue, oldest first.
    pub evicted_events: u64,
    /// In messages that the socket did not take.
    pub failed_events: u64,
    /// Left over at stop, or when the sender died.
    pub abandoned_events: u64,
    /// The last number used up: by a message, or by an event that was evicted or failed.
    pub last_sequence: u64,
    /// Events in the queue when the sender last looked.
    pub queue_length: u64,
    /// The longest queue the sender has seen, in events.
    pub queue_high_water: u64,
    /// Events the queue holds at most: the setting, and 2 if that is 1, since a call may have two events.
    pub queue_capacity: u64,
    /// The socket's send high-water mark as read back from it, messages for each subscriber.
    pub send_hwm: u64,
    /// Buffers idle in the pool.
    pub pool_idle: u64,
    /// Buffers that were made because none was idle; fifteen at a time.
    pub pool_misses: u64,
    /// Buffers freed because they had grown over `kv_events_retain_bytes`.
    pub pool_freed: u64,
    /// 1 if the publisher publishes at all.
    pub enabled: u8,
    /// 1 while the sender is well. 0 once it died; a stopped publisher is still well.
    pub healthy: u8,
    /// 1 if `stored` and `removed` are held back by `kv_events_emit_object_key`.
    pub keys_suppressed: u8,
    /// 1 once it was told to stop: calls are refused.
    pub stopped: u8,
    /// Always 0.
    pub reserved: [u8; 4],
    /// Connections that were refused since `kv_events_allow_peers` does not name where they came from.
    pub refused_peers: u64,
    /// How often the endpoint was found to be one that no new subscriber can reach.
    pub endpoint_faults: u64,
    /// 1 while no new subscriber can connect; `kv_events_endpoint_fault` says why. Those that are connected are served.
    pub endpoint_fault: u8,
    /// Always 0.
    pub reserved_2: [u8; 7],
    /// Connections that the native transport closed for want of a descriptor, for a limit, or for what they said.
    pub refused_connections: u64,
    /// Messages that a subscriber of the native transport did not get since too many waited for it; each counts once for each
    /// of them. They count as published.
    pub peer_dropped_messages: u64,
    /// Events in those messages.
    pub peer_dropped_events: u64,
    /// Subscribers of the native transport now.
    pub peers: u64,
}

impl From<Status> for RawStatus {
    fn from(status: Status) -> Self {
        RawStatus {
            size: size_of::<RawStatus>(),
            published_batches: status.published_batches,
            published_events: status.published_events,
            dropped_events: status.dropped_events,
            skipped_keyless_events: status.skipped_keyless_events,
            refused_events: status.refused_events,
            published_bytes: status.published_bytes,
            evicted_events: status.evicted_events,
            failed_events: status.failed_events,
            abandoned_events: status.abandoned_events,
            last_sequence: status.last_sequence,
            queue_length: status.queue_length,
            queue_high_water: status.queue_high_water,
            queue_capacity: status.queue_capacity,
            send_hwm: status.send_hwm,
            pool_idle: status.pool_idle,
            pool_misses: status.pool_misses,
            pool_freed: status.pool_freed,
            enabled: status.enabled.into(),
            healthy: status.healthy.into(),
            keys_suppressed: status.keys_suppressed.into(),
            stopped: status.stopped.into(),
            reserved: [0; 4],
            refused_peers: status.refused_peers,
            endpoint_faults: status.endpoint_faults,
            endpoint_fault: status.endpoint_fault.is_some().into(),
            reserved_2: [0; 7],
            refused_connections: status.refused_connections,
            peer_dropped_messages: status.peer_dropped_messages,
            peer_dropped_events: status.peer_dropped_events,
            peers: status.peers.len() as u64,
        }
    }
}

/// How a stop went. Set `size` to sizeof before the call, which fills in the rest, as for the status.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RawStopReport {
    /// sizeof of the struct; set by the caller. Afterwards, how much of it was filled in.
    pub size: usize,
    /// Events published over the publisher's life.
    pub published: u64,
    /// Events that were accepted and could not be sent before the deadline.
    pub abandoned: u64,
    /// 1 if the socket and its context are gone, so that the endpoint is free. If 0, the sender thread still holds them and
    /// closes them when it can.
    pub closed: u8,
    /// Always 0.
    pub reserved: [u8; 7],
}

impl From<StopReport> for RawStopReport {
    fn from(report: StopReport) -> Self {
        RawStopReport {
            size: size_of::<RawStopReport>(),
            published: report.published,
            abandoned: report.abandoned,
            closed: report.closed.into(),
            reserved: [0; 7],
        }
    }
}

/// What begins with its size and grows at its end.
pub(super) trait Growing: Copy {
    /// The size of its first version: no program has a smaller one.
    const FIRST_SIZE: usize;
}

impl Growing for RawStatus {
    const FIRST_SIZE: usize = offset_of!(RawStatus, reserved) + 4;
}

impl Growing for RawStopReport {
    const FIRST_SIZE: usize = offset_of!(RawStopReport, reserved) + 7;
}

/// Checks that `place`, which begins with its size, has room for the first version of a `T`.
///
/// # Safety
///
/// `place` is null or points to a `usize`.
pub(super) unsafe fn check_room<T: Growing>(place: *const T) -> Result<(), Code> {
    if place.is_null() {
        return Err(Code::InvalidArgument);
    }
    // SAFETY: the caller's promise.
    match unsafe { place.cast::<usize>().read() } {
        size if size < T::FIRST_SIZE => Err(Code::InvalidArgument),
        size if size > SIZE_LIMIT => Err(Code::InvalidLength),
        _ => Ok(()),
    }
}

/// Copies a `T` to a place, as much of it as there is room for, and says there how much that is.
///
/// # Safety
///
/// `place` has passed [`check_room`], and points to as many bytes as it says.
pub(super) unsafe fn put<T: Growing>(place: *mut T, value: T) {
    // SAFETY: the place has as many bytes as its size says, and no more than that is written.
    unsafe {
        let filled = place.cast::<usize>().read().min(size_of::<T>());
        std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), place.cast(), filled);
        place.cast::<usize>().write(filled);
    }
}

/// Fills in the publisher's figures. Takes no lock that a call could be waiting for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_status(
    publisher: *const super::publisher::PublisherHandle,
    status: *mut RawStatus,
) -> Code {
    guard(Code::Panicked, || {
        // SAFETY: the module's rules.
        let publisher = unsafe { super::publisher::PublisherHandle::get(publisher) };
        let Some(publisher) = publisher else { return Code::InvalidHandle };
        // SAFETY: the module's rules.
        if let Err(code) = unsafe { check_room(status) } {
            return code;
        }
        // SAFETY: the module's rules, and there is room.
        unsafe { put(status, RawStatus::from(publisher.status())) };
        Code::Ok
    })
}
