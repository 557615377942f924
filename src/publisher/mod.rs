//! The publisher: what a master calls.

#[cfg(feature = "capi")]
mod for_c;
#[cfg(unix)]
mod fork;
mod handle;
mod live;
mod payload;
mod shared;
mod sweep;
mod thread;

pub use handle::Publisher;
pub use live::DROP_DEADLINE;
pub use sweep::{Sweep, SweepOutcome};
