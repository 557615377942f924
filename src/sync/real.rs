//! What the parts are built from outside models: the standard library.

use super::Zero;

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

/// A fence of all memory accesses (`SeqCst`), to come right after a successful exchange.
///
/// On x86-64 an exchange is such a fence already, which saves a third of what queueing a call costs; there it is left to
/// keep the compiler from moving anything. Loom checks the fence that the other processors get.
#[inline(always)]
pub(crate) fn fence_after_exchange() {
    if cfg!(target_arch = "x86_64") {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Lets others run for a moment: for the sender alone, which may wait for a caller that was held up in mid-call.
pub(crate) fn pause() {
    std::thread::sleep(std::time::Duration::from_micros(20));
}

/// `length` zeros; `None` if there is no memory for them. What is never touched costs no memory on systems that hand out
/// pages on demand, so a large queue costs what was ever in it.
pub(crate) fn zeroed<T: Zero>(length: usize) -> Option<Box<[T]>> {
    let layout = std::alloc::Layout::array::<T>(length).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    let place = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>();
    if place.is_null() {
        return None;
    }
    // SAFETY: allocated as a boxed slice of that length is, and zeros are values of the type.
    Some(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(place, length)) })
}
