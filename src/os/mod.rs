//! What the crate asks of the operating system.

mod resources;
mod scheduling;

pub use resources::{Needs, prove};
pub(crate) use scheduling::prefer_callers;
