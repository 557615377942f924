//! What the crate asks of the operating system.

#[cfg(all(unix, feature = "zmq"))]
mod held;
#[cfg(all(unix, feature = "zmq"))]
pub(crate) mod keepalive;
#[cfg(feature = "zmq")]
mod resources;
mod scheduling;

#[cfg(all(unix, feature = "zmq"))]
pub(crate) use held::is_held;
#[cfg(feature = "zmq")]
pub use resources::{Needs, prove};
pub(crate) use scheduling::use_batch_scheduling;
