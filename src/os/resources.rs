//! Whether the system has what a socket takes, found out before one is made.
//!
//! libzmq ends the process where it cannot have a descriptor, a thread or memory for its context. So all of that is taken
//! first, the way libzmq takes it, then given back, and only then is the context made. What another thread takes in
//! between, a tenth of a millisecond or so, is not covered, nor is what is missing later: a cgroup's limit of memory, which
//! shows only when pages are used, the kernel's limit of what one user may watch by epoll, and memory for connections and
//! messages while the socket is in use.

use crate::error::Shortage;

/// What is needed.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(unix), allow(dead_code))]
pub struct Needs {
    descriptors: usize,
    threads: usize,
    bytes: usize,
}

/// Memory that is free before a socket is made, bytes: more than it takes at the start, so that the first connections find
/// some too.
const BYTES: usize = 16 << 20;

impl Needs {
    /// A context of libzmq with its two threads: three wake-up channels of two descriptors, and two of epoll.
    const CONTEXT: Needs = Needs { descriptors: 8, threads: 2, bytes: BYTES };

    /// A context and one socket with a wake-up channel, and its listener or connection.
    pub const SOCKET: Needs = Needs { descriptors: Self::CONTEXT.descriptors + 3, ..Self::CONTEXT };

    /// What a publisher takes: a socket, `more` descriptors for what else it opens, and the sender's thread.
    pub(crate) const fn publisher(more: usize) -> Needs {
        Needs { descriptors: Self::SOCKET.descriptors + more, threads: Self::SOCKET.threads + 1, bytes: BYTES }
    }

    /// What a publisher without libzmq takes: these descriptors and the sender's thread.
    #[cfg(feature = "native")]
    pub(crate) const fn native(descriptors: usize) -> Needs {
        Needs { descriptors, threads: 1, bytes: BYTES }
    }

    /// What `count` endpoints of a subscriber take: a connection or a listener each.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there is no subscriber"))]
    pub(crate) const fn endpoints(count: usize) -> Needs {
        Needs { descriptors: count, threads: 0, bytes: BYTES }
    }

    /// What a subscriber takes: what it waits on, what wakes it, and its endpoints.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there is no subscriber"))]
    pub(crate) const fn subscriber(endpoints: usize) -> Needs {
        Needs { descriptors: endpoints.saturating_add(2), ..Self::endpoints(endpoints) }
    }
}

/// Whether all of it can be had at once. Takes it, and gives it back.
///
/// # Errors
///
/// What is missing, and how much of it.
#[cfg(unix)]
pub fn prove(needs: Needs) -> Result<(), Shortage> {
    // First, so that there is memory for what is done here.
    drop(unix::Memory::take(needs.bytes)?);
    let _descriptors = unix::descriptors(needs.descriptors)?;
    let _threads = unix::Threads::take(needs.threads)?;
    // Again, beside the stacks of those threads and what the allocator sets aside for each.
    unix::Memory::take(needs.bytes).map(drop)
}

/// Elsewhere nothing is known of such an end.
#[cfg(not(unix))]
pub fn prove(_: Needs) -> Result<(), Shortage> {
    Ok(())
}

#[cfg(unix)]
mod unix {
    use crate::error::Shortage;
    use std::ffi::c_void;
    use std::io;
    use std::os::unix::net::UnixDatagram;
    use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

    /// Sockets of the kind that libzmq makes its wake-up channels of, one descriptor each.
    pub(super) fn descriptors(count: usize) -> Result<Vec<UnixDatagram>, Shortage> {
        let mut taken = Vec::new();
        while taken.len() < count {
            match UnixDatagram::unbound() {
                Ok(socket) => taken.push(socket),
                Err(cause) => return Err(Shortage::Descriptors { more: count - taken.len(), cause }),
            }
        }
        Ok(taken)
    }

    /// Address space that may be written to. Mapped, not asked of the allocator, whose habits a large block would change
    /// for the whole process.
    pub(super) struct Memory {
        start: *mut c_void,
        bytes: usize,
    }

    impl Memory {
        pub(super) fn take(bytes: usize) -> Result<Memory, Shortage> {
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
            // SAFETY: a new mapping where the system likes, of no file; nothing else knows of it.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
            if start == libc::MAP_FAILED {
                return Err(Shortage::Memory { bytes, cause: io::Error::last_os_error() });
            }
            Ok(Memory { start, bytes })
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the mapping that `take` made; nobody has a pointer into it.
            unsafe { libc::munmap(self.start, self.bytes) };
        }
    }

    /// Threads as libzmq makes them: with the stack that the process's limits say. The standard library's end the process
    /// where there is no memory for the stack of their signal handlers.
    pub(super) struct Threads {
        gate: Arc<Gate>,
        ids: Vec<libc::pthread_t>,
    }

    struct Gate {
        state: Mutex<State>,
        changed: Condvar,
    }

    #[derive(Default)]
    struct State {
        arrived: usize,
        open: bool,
    }

    impl Gate {
        fn state(&self) -> MutexGuard<'_, State> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn wait_while(&self, waits: impl Fn(&State) -> bool) {
            let waited = self.changed.wait_while(self.state(), |state| waits(state));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    impl Threads {
        pub(super) fn take(count: usize) -> Result<Threads, Shortage> {
            let gate = Arc::new(Gate { state: Mutex::default(), changed: Condvar::new() });
            let mut threads = Threads { gate, ids: Vec::with_capacity(count) };
            while threads.ids.len() < count {
                let mut id = std::mem::MaybeUninit::uninit();
                let gate = Arc::as_ptr(&threads.gate).cast_mut().cast();
                // SAFETY: `id` is valid for the call to write to; the gate lives until the thread, which shares it,
                // has been joined.
                let error = unsafe { libc::pthread_create(id.as_mut_ptr(), std::ptr::null(), pass, gate) };
                if error != 0 {
                    let more = count - threads.ids.len();
                    return Err(Shortage::Threads { more, cause: io::Error::from_raw_os_error(error) });
                }
                // SAFETY: written by the call, which succeeded.
                threads.ids.push(unsafe { id.assume_init() });
            }
            threads.gate.wait_while(|state| state.arrived < count);
            Ok(threads)
        }
    }

    impl Drop for Threads {
        fn drop(&mut self) {
            self.gate.state().open = true;
            self.gate.changed.notify_all();
            for id in &self.ids {
                // SAFETY: made by `take`, joined nowhere else.
                unsafe { libc::pthread_join(*id, std::ptr::null_mut()) };
            }
        }
    }

    /// A thread's life: it lets the allocator set aside what it does for each thread that uses it, tells that it is there,
    /// and stays until the gate is open.
    extern "C" fn pass(gate: *mut c_void) -> *mut c_void {
        // SAFETY: `Threads::take` passes its gate, and `Threads` outlives this thread.
        let gate = unsafe { &*gate.cast::<Gate>() };
        // SAFETY: whatever `malloc` returns may be freed, once.
        unsafe { libc::free(std::hint::black_box(libc::malloc(64))) };
        gate.state().arrived += 1;
        gate.changed.notify_all();
        gate.wait_while(|state| !state.open);
        std::ptr::null_mut()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_can_be_had_again_and_again() {
        for _ in 0..20 {
            prove(Needs::publisher(0)).unwrap();
            prove(Needs::subscriber(3)).unwrap();
        }
    }

    #[test]
    fn memory_that_cannot_be_had_is_named() {
        let lack = prove(Needs { bytes: usize::MAX / 2, ..Needs::publisher(0) }).unwrap_err();
        assert!(matches!(lack, Shortage::Memory { bytes, .. } if bytes == usize::MAX / 2), "{lack:?}");
    }
}
