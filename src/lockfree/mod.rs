//! The parts that many threads touch at once. They import their atomics, locks, parking and queue from `crate::sync`
//! alone, know nothing of events or sockets, and are compiled under loom exactly as they ship.

mod pipe;
mod pool;
mod queue;
mod sweep;
mod wake;

#[cfg(all(loom, feature = "loom"))]
pub mod model_queue;

pub use pipe::Pipe;
pub use pool::Pool;
pub use queue::{CHUNK, EvictingQueue, Limits};
pub use sweep::{SweepEnd, SweepTable, SweepToken};
pub use wake::{Closed, Wake};

/// What travels through the queue: one call of a producer, 1 or 2 events in one buffer.
pub trait Call {
    /// Events in the call.
    fn events(&self) -> u64;

    /// Bytes the call puts into a message.
    fn bytes(&self) -> usize;

    /// Bytes of memory its buffer holds on to.
    fn footprint(&self) -> usize;

    /// Tells the processor that the call's bytes are about to be read.
    fn prefetch(&self) {}

    /// Tells it that it has its place in the queue, behind all that were told so before it: for models, which judge by
    /// the order in the queue.
    #[cfg(all(loom, feature = "loom"))]
    fn placed(&self) {}

    /// A second handle to the same buffer, where a model can make one: for the fault that returns a buffer twice.
    #[cfg(feature = "__faults")]
    fn twin(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}
