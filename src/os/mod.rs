//! What the crate asks of the operating system.

#[cfg(unix)]
mod held;
#[cfg(unix)]
pub(crate) mod keepalive;
mod resources;
mod scheduling;

#[cfg(unix)]
pub(crate) use held::is_held;
pub use resources::{Needs, prove};
pub(crate) use scheduling::prefer_callers;
