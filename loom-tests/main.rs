//! Models of the lock-free parts, run by loom: `loom-tests/models.sh`. What is checked where is in the documentation of
//! `src/lockfree/mod.rs`.
//!
//! Every model keeps the main thread out of the race (it only joins, then judges), names its bound on preemptions, and
//! fails if it explored too little or if the thing it is there for never happened.

#![cfg(kv_events_loom)]
// All threads of a model run on one thread of the system; the standard library's `Arc` is no step of the model.
#![allow(clippy::arc_with_non_send_sync)]

mod oracle;
mod pipeline;
mod pool;
mod rig;
mod ring;
mod stop;
mod support;
mod sweep;
mod wake;

const _: () =
    assert!(cfg!(debug_assertions), "the models want debug assertions; Cargo.toml has them in the release profile");
