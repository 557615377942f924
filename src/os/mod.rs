//! What the crate asks of the operating system.

#[cfg(unix)]
pub(crate) mod keepalive;
mod resources;
mod scheduling;

pub use resources::{Needs, prove};
pub(crate) use scheduling::prefer_callers;
