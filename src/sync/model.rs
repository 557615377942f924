//! What the parts are built from in models: loom.

use super::Zero;

pub(crate) use self::parking::{Thread, current, park, park_timeout};
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

/// The fence that processors other than x86-64 get.
pub(crate) fn fence_after_exchange() {
    fence(Ordering::SeqCst);
}

/// Lets other threads run.
pub(crate) fn pause() {
    loom::thread::yield_now();
}

/// `length` zeros.
pub(crate) fn zeroed<T: Zero>(length: usize) -> Option<Box<[T]>> {
    Some((0..length).map(|_| T::zero()).collect())
}

/// Parking for models. Loom's own `unpark` panics when the thread it is meant for has gone on and waits for a mutex
/// meanwhile, which is a thing that happens; so this is a token that is waited for, as the standard library's is. It
/// returns for no reason once in a while, too.
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
