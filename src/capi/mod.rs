//! The C ABI: `include/kv_events.h` is made of this module, `include/kv_events.hpp` is a C++ class over it.
//!
//! The crate's `unsafe` is here, but for one call to the operating system: pointers come from C, and all that can be
//! checked of them is whether they are null and whether a handle is one. Every function keeps to these rules, which the
//! header tells its readers:
//!
//! - A pointer is null or points to a live object of its type. Null gives a code, or is allowed where it says so.
//! - A text is UTF-8 with a length; whatever a call needs of it is copied before the call returns.
//! - Nothing unwinds into C: a panic becomes [`Code::Panicked`].
//! - A publisher's handle stays readable for the life of the process, so that one used after [`kv_events_free`] gives a
//!   code. A sweep's does not: its last call takes the caller's variable and makes it null.
//!
//! [`kv_events_free`]: publisher::kv_events_free

// The rules above are the safety section of every function here; C has no other kind of function.
#![allow(clippy::missing_safety_doc)]

mod ascii;
pub mod calls;
pub mod config;
pub mod log;
pub mod publisher;
pub mod status;
pub mod sweep;
pub mod text;

use crate::error::StartError;
use crate::outcome::{Outcome, Refusal};
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call came to. Negative: it was not done, and nothing was queued. Ignoring it is fine for the calls that
/// publish: whatever it says is in the status too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Done. From a call that publishes: its events are queued.
    Ok = 0,
    /// There was nothing to say: no medium, no difference, or a sweep that removed nothing.
    Nothing = 1,
    /// Held back and counted in `skipped_keyless_events`: the key is empty, or keys are switched off.
    Suppressed = 2,
    /// The publisher is disabled, or the library was built without ZeroMQ: every call does nothing.
    Disabled = 3,
    /// The sweep ended without `cleared`, since something was skipped.
    SweepSkipped = 4,
    /// The sweep ended without `cleared`, since something of the tenant was stored meanwhile.
    SweepInterrupted = 5,
    /// The publisher is stopping or has stopped. Counted in `refused_events`.
    Stopped = -1,
    /// The sender thread died; `kv_events_unhealthy_reason` says of what. Counted in `refused_events`.
    SenderDead = -2,
    /// An event would be larger than `kv_events_max_event_bytes`. Counted in `refused_events`.
    TooLarge = -3,
    /// A text is not UTF-8. Counted in `refused_events`.
    NotUtf8 = -4,
    /// A pointer is null, or a size too small. A call that publishes counts it in `refused_events`.
    InvalidArgument = -5,
    /// The handle is null, of another kind, or was freed.
    InvalidHandle = -6,
    /// A setting cannot be used; the text says which and what to do.
    Config = -7,
    /// The endpoint cannot be bound; the text says why.
    Endpoint = -8,
    /// The operating system refused a thread or a socket; the text says in which words.
    System = -9,
    /// The library panicked, and the call may have been done in part. A bug: please report it.
    Panicked = -10,
    /// Refused: this process was forked from the one that started the publisher, and has no sender.
    Forked = -11,
    /// A medium is neither `cpu` nor `disk`. Counted in `refused_events`, as one event.
    UnknownMedium = -12,
    /// The system lacks descriptors, threads or memory to start; the text says which and how many.
    Resources = -13,
    /// There is no memory for an event's buffer, which is counted in `refused_events`, or for a sweep.
    OutOfMemory = -14,
    /// A length or a size is above anything there can be: it was not initialized, or is a negative number. A call that
    /// publishes counts it in `refused_events`.
    InvalidLength = -15,
}

impl Code {
    const ALL: [Code; 21] = [
        Code::Ok,
        Code::Nothing,
        Code::Suppressed,
        Code::Disabled,
        Code::SweepSkipped,
        Code::SweepInterrupted,
        Code::Stopped,
        Code::SenderDead,
        Code::TooLarge,
        Code::NotUtf8,
        Code::InvalidArgument,
        Code::InvalidHandle,
        Code::Config,
        Code::Endpoint,
        Code::System,
        Code::Panicked,
        Code::Forked,
        Code::UnknownMedium,
        Code::Resources,
        Code::OutOfMemory,
        Code::InvalidLength,
    ];

    /// The code in words, with a NUL at the end.
    const fn words(self) -> &'static std::ffi::CStr {
        match self {
            Code::Ok => c"done",
            Code::Nothing => c"there was nothing to say",
            Code::Suppressed => c"held back: the object has no key, or keys are switched off",
            Code::Disabled => c"the publisher is disabled, or the library was built without ZeroMQ",
            Code::SweepSkipped => c"no `cleared`: something was skipped",
            Code::SweepInterrupted => c"no `cleared`: something of the tenant was stored meanwhile",
            Code::Stopped => c"refused: the publisher has been stopped",
            Code::SenderDead => c"refused: the sender thread is dead; kv_events_unhealthy_reason says why",
            Code::TooLarge => {
                c"refused: an event would be above kv_events_max_event_bytes; shorten the key or raise the setting"
            }
            Code::NotUtf8 => c"refused: a text is not UTF-8",
            Code::InvalidArgument => c"a pointer is null, or a size too small",
            Code::InvalidHandle => c"the handle is null, of another kind, or was freed",
            Code::Config => c"a setting cannot be used",
            Code::Endpoint => c"the endpoint cannot be bound",
            Code::System => c"the operating system refused a thread or a socket",
            Code::Panicked => c"the library panicked; please report it",
            Code::Forked => c"refused: this process was forked from the publisher's; start one here",
            Code::UnknownMedium => c"refused: a medium is neither cpu nor disk",
            Code::OutOfMemory => c"refused: there is no memory for it",
            Code::Resources => c"the system lacks descriptors, threads or memory to start",
            Code::InvalidLength => c"a length or a size is above anything there can be; initialize it",
        }
    }

    /// The code in words.
    fn text(self) -> &'static str {
        self.words().to_str().unwrap_or_default()
    }

    #[inline]
    fn of(outcome: Outcome) -> Code {
        match outcome {
            Outcome::Accepted { .. } => Code::Ok,
            Outcome::Nothing => Code::Nothing,
            Outcome::Suppressed { .. } => Code::Suppressed,
            Outcome::Disabled => Code::Disabled,
            Outcome::Refused(Refusal::Stopped) => Code::Stopped,
            Outcome::Refused(Refusal::SenderDead) => Code::SenderDead,
            Outcome::Refused(Refusal::TooLarge { .. }) => Code::TooLarge,
            Outcome::Refused(Refusal::NotUtf8) => Code::NotUtf8,
            Outcome::Refused(Refusal::Forked) => Code::Forked,
            Outcome::Refused(Refusal::OutOfMemory) => Code::OutOfMemory,
        }
    }

    fn of_start(error: &StartError) -> Code {
        match error {
            StartError::Config(_) => Code::Config,
            StartError::Endpoint { .. } => Code::Endpoint,
            StartError::Thread(_) | StartError::Socket(_) => Code::System,
            StartError::Resources(_) | StartError::QueueMemory { .. } => Code::Resources,
        }
    }
}

/// The code in words: a static string with a NUL at the end, never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn kv_events_code_text(code: i32) -> *const c_char {
    let known = Code::ALL.into_iter().find(|known| *known as i32 == code);
    known.map_or(c"not a code of this library", Code::words).as_ptr()
}

/// The library's version, such as "0.1.0": a static string with a NUL at the end.
#[unsafe(no_mangle)]
pub extern "C" fn kv_events_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A struct that says it is larger was not initialized.
const SIZE_LIMIT: usize = 64 << 10;

/// Runs `body`; what it would unwind with ends here.
#[inline(always)]
fn guard<T>(panicked: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(guard(Code::Panicked, || panic!("on purpose")), Code::Panicked);
    }

    #[test]
    fn every_code_has_its_own_words() {
        let words: std::collections::HashSet<_> = Code::ALL.into_iter().map(Code::words).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
