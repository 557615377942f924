#![cfg_attr(feature = "zmq", doc = include_str!("../README.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]
//! # Data flow
//!
//! ```text
//! event, config      what a master says, and with what settings
//! capi               the same for C and C++
//! publisher          the calls                       caller's thread
//!   wire::encode     event -> bytes in a pooled buffer     |
//!   lockfree         pool, evicting ring, wake, sweep      v
//!   sender           batches, numbers, account       sender thread
//!   wire::message    batch -> payload                      |
//!   transport        payload -> PUB socket                 v
//!
//! decode             payload -> batch -> events      any thread; pure
//! engine             events as engines write them
//!
//! subscriber         connections -> messages, in order with
//!   tracker          what they say of loss and restarts       reader's thread
//! ```

#[cfg(not(target_has_atomic = "64"))]
compile_error!("kv-events counts in 64-bit atomics, which this target lacks");

#[cfg(feature = "capi")]
mod capi;
mod config;
pub mod decode;
pub mod engine;
mod error;
mod event;
#[cfg(doctest)]
mod forbidden;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod network;
mod publisher;
mod say;
mod status;
#[cfg(all(feature = "zmq", unix))]
pub mod subscriber;
pub mod tracker;
pub mod transport;

mod clock;
#[cfg(feature = "zmq")]
mod endpoint;
mod faults;
mod lockfree;
mod memory;
mod os;
mod rarely;
mod sender;
mod sync;
mod wire;
#[cfg(all(feature = "zmq", unix))]
mod zmtp;

pub use config::{
    Config, MAX_BATCH_EVENTS, MAX_EVENT_BYTES, MAX_NAP, MAX_QUEUE_CAPACITY, WaitStrategy, recommended_eviction_burst,
};
pub use error::{ConfigError, EndpointError, Shortage, StartError};
pub use event::{Before, DEFAULT_TENANT, MediaSet, Medium, Object, Outcome, Refusal, Replica, ReplicaKind};
pub use publisher::{DROP_DEADLINE, Publisher, Sweep, SweepOutcome};
pub use status::{Status, StopReport};

/// The parts, for this workspace's own benches, models, tests and tool. Not part of the public interface: anything here may
/// change at any time.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "capi")]
    pub mod capi {
        pub use crate::capi::{Code, calls, config, publisher, status, text};
    }
    #[cfg(kv_events_faults)]
    pub use crate::faults::{Fault, active as active_fault};
    pub use crate::lockfree::*;
    #[cfg(feature = "zmq")]
    pub use crate::os::{Needs, prove};
    /// What reads a publisher's bytes.
    #[cfg(all(feature = "zmq", unix))]
    pub mod zmtp {
        pub use crate::subscriber::zmtp::{Arrival, Budget, Heard, Limits, Machine};
        pub use crate::zmtp::Broken;
    }
    pub use crate::sender::*;
    #[cfg(kv_events_loom)]
    pub use crate::sync::{lanes, parking};
    pub use crate::wire::encode::{Context, EncodedCall, Encoder};
    pub use crate::wire::frame::Frame;
    pub use crate::wire::message::{Header, PayloadWriter};
}
