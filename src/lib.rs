//! KV-cache events: who can read what, where. (The map is drawn in README.md.)

#![forbid(clippy::unwrap_in_result)]

pub mod decode;
pub mod engine;
mod event;

pub use event::{Before, DEFAULT_TENANT, MediaSet, Medium, Object, Outcome, Refusal, Replica, ReplicaKind};
