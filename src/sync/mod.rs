//! The facade: every atomic, cell, lock and park that the lock-free parts use comes from here.
//!
//! In a normal build these are the standard library's. Under `--cfg kv_events_loom` they are loom's.

#[cfg(kv_events_loom)]
mod imp {
    pub(crate) use super::parking::{Thread, current, park, park_timeout};
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

    pub(super) use loom::sync::Mutex as Raw;

    /// A cell that is set once. Like the standard library's, a `get` that does not come after the `set` may find nothing.
    #[derive(Debug)]
    pub struct OnceLock<T> {
        value: std::sync::OnceLock<T>,
        set: loom::sync::atomic::AtomicBool,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            OnceLock { value: std::sync::OnceLock::new(), set: loom::sync::atomic::AtomicBool::new(false) }
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.value.set(value)?;
            self.set.store(true, Ordering::Release);
            Ok(())
        }

        /// The value, if it was set.
        pub fn get(&self) -> Option<&T> {
            if self.set.load(Ordering::Acquire) { self.value.get() } else { None }
        }
    }
}

/// Parking for models. Loom's own `unpark` panics when the thread it is meant for has gone on and waits for a mutex
/// meanwhile, which is a thing that happens; so this is a token that is waited for, as the standard library's is. It
/// returns for no reason once in a while, too.
#[cfg(kv_events_loom)]
pub mod parking {
    use loom::sync::Notify;
    use std::cell::Cell;
    use std::sync::Arc;

    /// Whom to unpark.
    #[derive(Clone, Debug)]
    pub struct Thread(Arc<Notify>);

    /// What a sender may sleep on instead.
    #[derive(Debug)]
    pub struct Token(Arc<Notify>);

    impl Token {
        /// Nobody has woken anyone.
        #[allow(clippy::new_without_default, reason = "for models")]
        pub fn new() -> Self {
            Token(Arc::new(Notify::new()))
        }

        /// Ends a wait.
        pub fn waker(&self) -> impl Fn() + Send + Sync + 'static + use<> {
            let notify = Arc::clone(&self.0);
            move || {
                UNPARKS.set(UNPARKS.get() + 1);
                notify.notify();
            }
        }

        /// Waits for the waker.
        pub fn wait(&self) {
            PARKS.set(PARKS.get() + 1);
            self.0.wait();
        }
    }

    loom::thread_local! {
        static TOKEN: Arc<Notify> = Arc::new(Notify::new());
    }

    thread_local! {
        static PARKS: Cell<u64> = const { Cell::new(0) };
        static UNPARKS: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts from 0 again.
    pub fn reset_counts() {
        PARKS.set(0);
        UNPARKS.set(0);
    }

    /// How many times a thread of this execution parked, and was unparked.
    pub fn counts() -> (u64, u64) {
        (PARKS.get(), UNPARKS.get())
    }

    pub(crate) fn current() -> Thread {
        Thread(TOKEN.with(Arc::clone))
    }

    pub(crate) fn park() {
        PARKS.set(PARKS.get() + 1);
        TOKEN.with(Arc::clone).wait();
    }

    /// Models have no clock: the time is up at once.
    pub(crate) fn park_timeout(_: std::time::Duration) {
        PARKS.set(PARKS.get() + 1);
        loom::thread::yield_now();
    }

    impl Thread {
        pub(crate) fn unpark(&self) {
            UNPARKS.set(UNPARKS.get() + 1);
            self.0.notify();
        }
    }
}

#[cfg(not(kv_events_loom))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use std::sync::{MutexGuard, OnceLock};
    pub(crate) use std::thread::{Thread, current, park, park_timeout};

    pub(super) use std::sync::Mutex as Raw;

    /// The standard library's, with loom's methods.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

pub(crate) use imp::*;

use std::sync::PoisonError;

/// A mutex that is entered even if a thread panicked inside it: what it guards is kept consistent by guards, not by
/// giving up.
#[derive(Debug)]
pub(crate) struct Mutex<T>(imp::Raw<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(imp::Raw::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fence of all memory accesses (`SeqCst`), to come right after a successful exchange.
///
/// On x86-64 an exchange is such a fence already, which saves a third of what queueing a call costs; there it is left to
/// keep the compiler from moving anything. Loom checks the fence that the other processors get.
#[inline(always)]
pub(crate) fn fence_after_exchange() {
    #[cfg(all(target_arch = "x86_64", not(kv_events_loom)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(kv_events_loom))))]
    fence(Ordering::SeqCst);
}

/// Lets others run for a moment: for the sender alone, which may wait for a caller that was held up in mid-call.
pub(crate) fn pause() {
    #[cfg(kv_events_loom)]
    loom::thread::yield_now();
    #[cfg(not(kv_events_loom))]
    std::thread::sleep(std::time::Duration::from_micros(20));
}

/// What a slice of zero bytes can be read as.
///
/// # Safety
///
/// All bits zero must be a value of the type, the one that `zero` returns.
pub(crate) unsafe trait Zero {
    #[cfg_attr(not(kv_events_loom), allow(dead_code))]
    fn zero() -> Self;
}

// SAFETY: an integer that is 0.
unsafe impl Zero for AtomicU64 {
    fn zero() -> Self {
        AtomicU64::new(0)
    }
}

// SAFETY: an integer that is 0.
unsafe impl Zero for u8 {
    fn zero() -> Self {
        0
    }
}

// SAFETY: a pointer that is null.
unsafe impl<T> Zero for std::sync::atomic::AtomicPtr<T> {
    fn zero() -> Self {
        std::sync::atomic::AtomicPtr::new(std::ptr::null_mut())
    }
}

/// `length` zeros; `None` if there is no memory for them. What is never touched costs no memory on systems that hand out
/// pages on demand, so a large queue costs what was ever in it.
pub(crate) fn zeroed<T: Zero>(length: usize) -> Option<Box<[T]>> {
    #[cfg(kv_events_loom)]
    return Some((0..length).map(|_| T::zero()).collect());
    #[cfg(not(kv_events_loom))]
    {
        let layout = std::alloc::Layout::array::<T>(length).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the size is not 0.
        let place = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>();
        if place.is_null() {
            return None;
        }
        // SAFETY: allocated as a boxed slice of that length is, and zeros are values of the type.
        Some(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(place, length)) })
    }
}

pub(crate) use lanes::{LANES, lane};

#[cfg(not(kv_events_loom))]
mod lanes;
#[cfg(kv_events_loom)]
#[path = "model_lanes.rs"]
pub mod lanes;

/// A number that many threads add to. It publishes nothing but itself, so `Relaxed` is enough: whoever needs it exact
/// reads it after synchronising with the threads that count. For the same reason it is not modelled: it stays the
/// standard library's under loom.
#[derive(Debug)]
pub struct Counter(std::sync::atomic::AtomicU64);

impl Counter {
    pub(crate) fn new() -> Self {
        Counter(std::sync::atomic::AtomicU64::new(0))
    }

    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A figure with one writer at a time, read by anyone: no read-modify-write needed. `Relaxed`, and not modelled, for the
/// reasons given at [`Counter`].
#[derive(Debug)]
pub struct Gauge(std::sync::atomic::AtomicU64);

impl Gauge {
    pub(crate) fn new() -> Self {
        Gauge(std::sync::atomic::AtomicU64::new(0))
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn add(&self, n: u64) {
        self.set(self.get() + n);
    }

    /// The figure now.
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A flag that is raised once and stays up. `Relaxed`, and not modelled, for the reasons given at [`Counter`].
#[derive(Debug)]
pub(crate) struct Flag(std::sync::atomic::AtomicBool);

impl Flag {
    pub(crate) fn new() -> Self {
        Flag(std::sync::atomic::AtomicBool::new(false))
    }

    pub(crate) fn raise(&self) {
        // Looked at first, so that threads that raise it all the time share its cache line.
        if !self.is_up() {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A pointer that many threads read until one takes it away for good. Only the C ABI has pointers.
#[cfg(feature = "capi")]
#[derive(Debug)]
pub(crate) struct Slot<T>(std::sync::atomic::AtomicPtr<T>);

#[cfg(feature = "capi")]
impl<T> Slot<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Slot(std::sync::atomic::AtomicPtr::new(pointer))
    }

    /// The pointer; null once it was taken.
    pub(crate) fn get(&self) -> *mut T {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }

    /// The pointer, for the first to ask; null for any other.
    pub(crate) fn take(&self) -> *mut T {
        self.0.swap(std::ptr::null_mut(), std::sync::atomic::Ordering::AcqRel)
    }
}

/// What is kept for ever, for readers that never wait: a list that only grows. No lock, so that a forked child finds it whole.
#[cfg(feature = "capi")]
pub(crate) struct Kept<T: 'static>(std::sync::atomic::AtomicPtr<Link<T>>);

#[cfg(feature = "capi")]
struct Link<T> {
    value: T,
    /// Never read: it keeps the older ones reachable, for those who look for leaks.
    _older: *mut Link<T>,
}

#[cfg(feature = "capi")]
impl<T: Sync> Kept<T> {
    pub(crate) const fn new() -> Self {
        Kept(std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Puts a value behind all that were kept before.
    pub(crate) fn keep(&self, value: T) {
        use std::sync::atomic::Ordering;
        let link = Box::leak(Box::new(Link { value, _older: std::ptr::null_mut() }));
        // Relaxed: nothing of the older ones is looked at.
        let mut older = self.0.load(Ordering::Relaxed);
        loop {
            link._older = older;
            // Release: whoever reads the pointer reads the value behind it (see `last`).
            match self.0.compare_exchange_weak(older, link, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => older = newer,
            }
        }
    }

    /// The value that was kept last.
    pub(crate) fn last(&self) -> Option<&'static T> {
        // SAFETY: null, or a link that was leaked and is never written again. Acquire: pairs with the Release in `keep`.
        unsafe { self.0.load(std::sync::atomic::Ordering::Acquire).as_ref() }.map(|link| &link.value)
    }
}

/// A figure that never goes back, whoever writes it. `Relaxed`: all updates of one figure have one order, and nothing else
/// is read on the strength of it. No lock, so that a forked child cannot find it held.
#[derive(Debug)]
pub(crate) struct Latest(std::sync::atomic::AtomicU64);

impl Latest {
    pub(crate) const fn new() -> Self {
        Latest(std::sync::atomic::AtomicU64::new(0))
    }

    /// `reading`, or, if that is less, the highest there has been.
    pub(crate) fn or_later(&self, reading: u64) -> u64 {
        self.0.fetch_max(reading, std::sync::atomic::Ordering::Relaxed).max(reading)
    }
}
