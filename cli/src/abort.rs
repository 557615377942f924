//! What the tools do where a library gives up: where there is no memory left Rust's standard library and libzmq say so and
//! abort the process. The tools end by an exit status then, not by a signal.

/// The exit status of a tool that a library gave up in: the BSDs' number for a failure inside.
const GAVE_UP: libc::c_int = 70;

/// From here on an abort ends the process by that status.
pub fn exit_instead() {
    extern "C" fn exit(_: libc::c_int) {
        const WORDS: &[u8] = b"kv-events: ended by what is said above\n";
        // SAFETY: the words are valid for their length and only read; both calls may be made in a signal's handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
            libc::_exit(GAVE_UP)
        }
    }
    // SAFETY: the handler makes only calls that may be made in one, and does not return to what was interrupted.
    unsafe { libc::signal(libc::SIGABRT, exit as extern "C" fn(libc::c_int) as libc::sighandler_t) };
}
