//! What the tests of several packages share: peers, terminals, processes. Nothing here knows the library under test.
#![allow(missing_docs, missing_debug_implementations, clippy::missing_panics_doc, reason = "only tests use it")]

pub mod alone;
#[cfg(unix)]
pub mod pty;
pub mod publisher;
mod python;
mod skipped;
pub mod zmtp;

pub use python::python;
pub use skipped::skipped;
