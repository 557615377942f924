//! The parts that many threads touch at once. They import their atomics, cells, locks and parking from `crate::sync`
//! alone, know nothing of events or sockets, and are compiled under loom exactly as they ship (runs of frames are shorter
//! there, and a ring may be smaller).
//!
//! # What waits for what
//!
//! - *Queueing a call* ([`Ring::push`]) is wait-free: one addition, one exchange, and at most two more for each claim that was
//!   outstanding when its own was made. A caller that is stopped in mid-call holds up nobody: an evictor skips its position,
//!   and it finds that out when it comes back.
//! - *Taking and giving back a frame* ([`Pool`]) touches nothing shared, or a lock-free stack: some thread always gets on.
//!   When no frame is idle a run of them is allocated; the allocator may lock.
//! - *The sender* waits for calls, which is its work, and for nothing else: it ends its batch at a position that is claimed and
//!   not yet written. At stop it looks again every 20 us until such a caller has come or the deadline is over.
//! - *A `stored` while a sweep is open* takes the mutex of the [`SweepTable`]; so do the begin and the end of a sweep.
//! - *Stop* takes a mutex against a second stop. No call does.
//!
//! # What holds, and where it is checked
//!
//! | | invariant | models (`loom-tests/`) | stress tests (`loom-tests/stress.rs`) |
//! |---|---|---|---|
//! | I1 | every accepted event is exactly once published, evicted, failed or abandoned | `ring`, `stop`, `pipeline` | `taken_or_evicted_exactly_once`, `fifty_stops_in_mid_flood` |
//! | I2 | a loss stands in the sequence between what is older and what is younger | `ring`, `pipeline` | `every_jump_is_a_gap` |
//! | I3 | the gaps add up to what was evicted and what failed | `ring`, `pipeline` | `every_jump_is_a_gap`, `taken_or_evicted_exactly_once` |
//! | I4 | no loss is left untold once the sender is idle | `ring`, `pipeline`, `stop` | `every_jump_is_a_gap` |
//! | I5 | each producer's order holds, the sequence rises | `ring`, `pipeline` | `taken_or_evicted_exactly_once`, `every_jump_is_a_gap` |
//! | I6 | no wake-up is lost, none is made while the sender is awake | `wake` | `every_call_wakes_a_sleeper` |
//! | I7 | stop drains, counts the rest, never hangs, refuses from the moment it begins | `stop`, `pipeline` | `every_jump_is_a_gap_when_stopped`, `fifty_stops_in_mid_flood` |
//! | I8 | no frame is lost or doubled | `pool`, `pipeline`, `stop` | all that stop a sender, by what is in the pool afterwards |
//! | | no `cleared` stands behind a racing `stored` | `sweep` | `no_cleared_behind_a_racing_stored` |
//!
//! Two clauses lie beyond models: that an idle sender does not spin (it parks, which `wake` sees; its processor time is
//! looked at in `tests/publisher/status.rs`), and that no event costs an allocation (`tests/publisher/no_alloc.rs`).
//!
//! **The account is three positions**: where the ring began, `head`, and where `tail` was closed. What lies between the first
//! two was taken or evicted, what lies between the last two is abandoned, and all of it adds up by construction.
//!
//! **The oracle** judges placement. Positions say in which order calls were accepted; each message has to hold neighbours of
//! that order, and the numbers it skips have to be the events of the calls between it and the message before. Totals alone
//! would pass designs that tell of a loss in the wrong place.
//!
//! **Bounds.** Each model runs to the end within the number of preemptions that it names: none for the smallest, 2 or 3 for
//! most, 1 where many threads allow no more. Each fails if it explored fewer executions than it should, or if what it is there
//! for (an eviction, a skip, a park, a refusal) happened in none. Threads are few and rings small: 2 or 3 producers and
//! capacities of 2 and 3.
//!
//! **The models are checked in turn** by faults put in on purpose (`src/faults.rs`), among them every ordering that publishes
//! something made `Relaxed`: `loom-tests/faults.sh` runs the models against each, and every one has to be caught.
//!
//! # What is trusted
//!
//! - *Loom's idea of memory*: it lets loads be stale but no write overtake another of its thread, and takes a
//!   sequentially consistent fence for a bit more than the language does. So some orderings stand on the argument beside
//!   them alone: `Release` and `Acquire` of the count of sweeps.
//! - *x86-64*, where the fence between a call's word and the look at the sender's state is left out
//!   (`sync::fence_after_exchange`): that an exchange is a full fence there. Loom checks the fence that the others get.
//! - *Laps* do not wrap: a slot would have to be gone round 2^44 times or more.
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

pub use frames::Frames;
pub use frames::{Call, Held, RUN};
pub use pipe::{Batch, Consumer, Pipe};
pub use pool::{Pool, Returns};
pub use ring::Limits;
pub use ring::{CHUNK, Ring, Taken, Taker};
pub use sweep::{SweepEnd, SweepTable, SweepToken};
pub use wake::{Closed, Wake, Waker};
