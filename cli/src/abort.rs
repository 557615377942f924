//! What the tools do where a library gives up: where there is no memory left Rust's standard library and libzmq say so and
//! abort the process. The tools end by an exit status then, not by a signal, and leave the terminal as it was.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The exit status of a tool that a library gave up in: the BSDs' number for a failure inside.
const GAVE_UP: libc::c_int = 70;
/// Longest time that a terminal is waited for, ms.
const PATIENCE: libc::c_int = 500;

/// A terminal that was taken over, and what its settings were.
struct Taken {
    terminal: RawFd,
    settings: libc::termios,
}

/// Null while there is none. What it points to is never freed: the handler may be looking.
static TAKEN: AtomicPtr<Taken> = AtomicPtr::new(ptr::null_mut());

/// From here on an abort ends the process by that status.
pub fn exit_instead() {
    extern "C" fn exit(_: libc::c_int) {
        const WORDS: &[u8] = b"kv-events: ended by what is said above\n";
        give_terminal_back();
        // SAFETY: the words are valid for their length and only read; both calls may be made in a signal's handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
            libc::_exit(GAVE_UP)
        }
    }
    // SAFETY: the handler makes only calls that may be made in one, and does not return to what was interrupted.
    unsafe { libc::signal(libc::SIGABRT, exit as extern "C" fn(libc::c_int) as libc::sighandler_t) };
}

/// Has an abort give the terminal back, which is about to be taken over: `terminal` is its descriptor, which stays open until
/// [`forget_terminal`] is called.
pub fn remember_terminal(terminal: RawFd) {
    let mut settings = std::mem::MaybeUninit::uninit();
    // SAFETY: `settings` is valid for the call to write to.
    if unsafe { libc::tcgetattr(terminal, settings.as_mut_ptr()) } == 0 {
        // SAFETY: written by the call, which succeeded.
        let settings = unsafe { settings.assume_init() };
        TAKEN.store(Box::leak(Box::new(Taken { terminal, settings })), Ordering::Release);
    }
}

/// It was given back.
pub fn forget_terminal() {
    TAKEN.store(ptr::null_mut(), Ordering::Release);
}

/// Makes only calls that may be made in a signal's handler.
fn give_terminal_back() {
    // Leaves the other screen, and shows the cursor.
    const SEQUENCE: &[u8] = b"\x1b[?1049l\x1b[?25h";
    // SAFETY: null, or leaked and never written to again.
    let Some(taken) = (unsafe { TAKEN.swap(ptr::null_mut(), Ordering::AcqRel).as_ref() }) else { return };
    let mut output = libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: all that the calls are given is valid for them; the sequence is only read.
    unsafe {
        libc::tcsetattr(taken.terminal, libc::TCSANOW, &taken.settings);
        if libc::poll(&mut output, 1, PATIENCE) > 0 {
            libc::write(libc::STDOUT_FILENO, SEQUENCE.as_ptr().cast(), SEQUENCE.len());
        }
    }
}
