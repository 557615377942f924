//! What the handles of the C ABI are kept in.

/// A pointer that many threads read until one takes it away for good. Only the C ABI has pointers.
#[derive(Debug)]
pub(crate) struct Slot<T>(std::sync::atomic::AtomicPtr<T>);

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
pub(crate) struct Kept<T: 'static>(std::sync::atomic::AtomicPtr<Link<T>>);

struct Link<T> {
    value: T,
    /// Never read: it keeps the older ones reachable, for those who look for leaks.
    _older: *mut Link<T>,
}

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
