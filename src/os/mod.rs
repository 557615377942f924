//! What the crate asks of the operating system.

#[cfg(all(unix, any(feature = "zmq", feature = "native")))]
mod held;
#[cfg(all(unix, any(feature = "zmq", feature = "native")))]
#[cfg_attr(not(feature = "zmq"), allow(dead_code, reason = "libzmq's, and the subscriber's"))]
pub(crate) mod keepalive;
#[cfg(any(feature = "zmq", feature = "native"))]
#[cfg_attr(not(feature = "zmq"), allow(dead_code, reason = "libzmq's, and the subscriber's"))]
mod resources;
mod scheduling;

#[cfg(all(unix, any(feature = "zmq", feature = "native")))]
pub(crate) use held::is_held;
#[cfg(any(feature = "zmq", feature = "native"))]
pub use resources::{Needs, prove};
pub(crate) use scheduling::use_batch_scheduling;
