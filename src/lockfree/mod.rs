//! The parts that many threads touch at once. They import their atomics, locks, parking and queue from `crate::sync`
//! alone, know nothing of events or sockets, and are compiled under loom exactly as they ship.
//!
//! # What holds, and where it is checked
//!
//! | | invariant | models (`loom-tests/`) | stress tests (`loom-tests/stress.rs`) |
//! |---|---|---|---|
//! | I1 | every accepted event is exactly once published, evicted, failed or abandoned | `queue`, `stop`, `pipeline` | `taken_or_evicted_exactly_once`, `fifty_stops_in_mid_flood` |
//! | I2 | a loss stands in the sequence between what is older and what is younger | `queue`, `pipeline` | `every_jump_is_a_gap` |
//! | I3 | the gaps add up to what was evicted and what failed | `queue`, `pipeline` | `every_jump_is_a_gap`, `taken_or_evicted_exactly_once` |
//! | I4 | no loss is left untold once the sender is idle | `queue`, `pipeline` | `every_jump_is_a_gap` |
//! | I5 | each producer's order holds, the sequence rises | `queue`, `pipeline` | `taken_or_evicted_exactly_once`, `every_jump_is_a_gap` |
//! | I6 | no wake-up is lost, none is made while the sender is awake | `wake` | `every_call_wakes_a_sleeper` |
//! | I7 | stop drains, counts the rest, never hangs, refuses from the moment it begins | `stop`, `pipeline` | `every_jump_is_a_gap_when_stopped`, `fifty_stops_in_mid_flood` |
//! | I8 | no buffer is lost or doubled | `pool`, `pipeline` | all that stop a sender, by what is in the pool afterwards |
//! | | no `cleared` stands behind a racing `stored` | `sweep` | `no_cleared_behind_a_racing_stored` |
//!
//! Two clauses lie beyond models: that an idle sender does not spin (it parks, which `wake` sees; its processor time is
//! looked at in `tests/status.rs`), and that no event costs an allocation (counted in the benches).
//!
//! After stop, too, the sequence accounts for every eviction: the sender's last act on the queue is to
//! [seal](EvictingQueue::seal) it, and what goes afterwards is abandoned instead.
//!
//! **The oracle** judges placement. The stand-in queues say in which order calls got in; each message has to hold
//! neighbours of that order, and the numbers it skips have to be the events of the calls between it and the message before.
//! Totals alone would pass designs that tell of a loss in the wrong place.
//!
//! **Bounds.** Each model runs to the end within the number of preemptions that it names: none for the smallest, 2 or 3 for
//! the protocol, 1 where many threads or the many-step ring allow no more. Each fails if it explored fewer executions than
//! it should, or if what it is there for (an eviction, a park, a refusal) happened in none. Threads are few and queues
//! short: 2 or 3 producers and capacities of 1 and 2, or one more than is removed under one hold of the mutex.
//!
//! **The models are checked in turn** by faults put in on purpose (`src/faults.rs`): `loom-tests/faults.sh` runs the models
//! against each, and every one has to be caught. All are, by loom.
//!
//! # What is trusted
//!
//! - *crossbeam's `ArrayQueue`*: that it is a linearizable bounded queue whose items arrive with their contents. Loom cannot
//!   see into it, so models run on two stand-ins (`model_queue`): one whose operations are one step and hand nothing over, so
//!   that the protocol is seen to need no more; and a port of the ring algorithm, whose orderings loom does check. The real
//!   one is behind every stress test.
//! - *Loom's idea of memory*: it lets loads be stale but no write overtake another of its thread, and takes a
//!   sequentially consistent fence for a bit more than the language does. So some orderings stand on the argument beside
//!   them alone: `Release` and `Acquire` of the count of sweeps.
//! - *Statistics* (`Counter`, `Gauge`) are not modelled; nothing is decided by them.
//! - *The clock*: in models the time of a timed park is up at once; deadlines have passed or are not there.
//! - No miri (it is no part of a stable toolchain), no ThreadSanitizer (without a rebuilt standard library it reports
//!   falsely, and it does not model fences), no helgrind (the same): loom and the stress tests have to do.

mod frames;
mod pipe;
mod pool;
pub mod prefetch;
mod ring;
mod stack;
mod sweep;
mod wake;

pub use frames::{Call, Frames, Held, RUN};
pub use pipe::{Batch, Consumer, Pipe};
pub use pool::{Pool, Returns};
pub use ring::{CHUNK, Limits, Ring, Taken, Taker};
pub use sweep::{SweepEnd, SweepTable, SweepToken};
pub use wake::{Closed, Wake};
