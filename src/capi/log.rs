//! What the library has to say apart from codes: a few lines at start, and one if the sender dies.

use super::{Code, guard};
use crate::sync::Kept;
use log::{LevelFilter, Log, Metadata, Record};
use std::ffi::{c_char, c_void};

/// Gets a line of the log: 1 is an error, 2 a warning, 3 information; `len` bytes of UTF-8 at `line`, without a NUL.
/// Called from whichever thread has something to say, also the sender's; it must not throw.
pub type LogCallback = Option<unsafe extern "C" fn(level: i32, line: *const c_char, len: usize, user: *mut c_void)>;

/// The C program's logger: the last target counts. All are kept, since another thread may be calling one.
struct ToC(Kept<Option<Target>>);

#[derive(Clone, Copy)]
struct Target {
    callback: unsafe extern "C" fn(i32, *const c_char, usize, *mut c_void),
    user: usize,
}

static LOGGER: ToC = ToC(Kept::new());

impl Log for ToC {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Info
    }

    fn log(&self, record: &Record<'_>) {
        let target = self.0.last().copied().flatten();
        if let Some(Target { callback, user }) = target.filter(|_| self.enabled(record.metadata())) {
            let line = record.args().to_string();
            // SAFETY: the program gave the callback for these arguments, and `user` for it.
            unsafe { callback(record.level() as i32, line.as_ptr().cast(), line.len(), user as *mut c_void) };
        }
    }

    fn flush(&self) {}
}

/// Sends the library's log lines to `callback`, with `user` as its last argument; NULL for silence, as at first. They are
/// few: none on the path of a call. Set it before the first start to hear what that has to warn of.
///
/// KV_EVENTS_SYSTEM: the program is written in Rust and has a logger already, which gets the lines.
#[unsafe(no_mangle)]
pub extern "C" fn kv_events_log_to(callback: LogCallback, user: *mut c_void) -> Code {
    guard(Code::Panicked, || {
        static INSTALLED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        if !INSTALLED.get_or_init(|| log::set_logger(&LOGGER).is_ok()) {
            return Code::System;
        }
        log::set_max_level(if callback.is_some() { LevelFilter::Info } else { LevelFilter::Off });
        LOGGER.0.keep(callback.map(|callback| Target { callback, user: user as usize }));
        Code::Ok
    })
}
