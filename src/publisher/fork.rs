//! What a fork makes of the publishers of a process: the child has their memory, but not their threads, and every lock as
//! some other thread may have left it. So in the child they are disowned, and their calls are refused before any lock.

use super::shared::Shared;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

type Started = Vec<Weak<Shared>>;

static STARTED: Mutex<Started> = Mutex::new(Vec::new());

thread_local! {
    /// Held by the forking thread from before the fork until after it, so that the child finds the list whole.
    static HELD: Cell<Option<MutexGuard<'static, Started>>> = const { Cell::new(None) };
}

/// Has a publisher disowned in every child that is forked from now on.
pub(super) fn watch(shared: &Arc<Shared>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers run on the forking thread, have no arguments, and do not unwind; the child's makes no system
        // call, allocates nothing and takes no lock but the one that its own thread holds.
        let failure = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
        if failure != 0 {
            crate::logging::warning!("kv-events: forked children will not be noticed; nothing may be published in one");
        }
    });
    let mut started = lock();
    started.retain(|shared| shared.strong_count() > 0);
    started.push(Arc::downgrade(shared));
}

fn lock() -> MutexGuard<'static, Started> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn before() {
    let started = lock();
    // Fails on a thread that is ending; then nobody holds the list.
    let _ = HELD.try_with(|held| held.set(Some(started)));
}

extern "C" fn after_in_parent() {
    let _ = HELD.try_with(Cell::take);
}

extern "C" fn after_in_child() {
    let Ok(held) = HELD.try_with(Cell::take) else { return };
    for shared in held.iter().flat_map(|started| started.iter()).filter_map(Weak::upgrade) {
        shared.pipe.disown();
        // Not given back: were it the last, dropping it would free what another thread was using.
        std::mem::forget(shared);
    }
}
