//! What the crate says to the program's logger. That is the program's own code: one that panics must end no thread of the
//! crate and take no delivery with it.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the logger; where it panics the line is lost, and nothing else.
pub(crate) fn quietly(log: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(log)) {
        // Dropping it could panic again.
        std::mem::forget(panic);
    }
}

/// `log::warn!`, for a logger that may panic.
macro_rules! warning {
    ($($text:tt)*) => { $crate::logging::quietly(|| log::warn!($($text)*)) };
}
pub(crate) use warning;

/// `log::error!`, for a logger that may panic.
macro_rules! failure {
    ($($text:tt)*) => { $crate::logging::quietly(|| log::error!($($text)*)) };
}
pub(crate) use failure;
