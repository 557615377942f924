//! KV-cache events: which object of a distributed cache is readable where, published by a master and read by routers.
//!
//! A master calls a [`Publisher`] wherever its metadata changes. A call encodes the event into a pooled buffer, pushes it on a
//! lock-free queue and returns; one thread batches the events and sends them. When the queue is full the oldest events are
//! evicted, and the sequence number of the next message says how many were lost and between which events.
//!
//! ```
//! use kv_events::transport::memory::Recorder;
//! use kv_events::{Before, Config, MediaSet, Object, Publisher};
//! use std::time::Duration;
//!
//! // `Publisher::start` sends over ZeroMQ; a test of a master records in memory.
//! let recorder = Recorder::new();
//! let publisher = Publisher::start_with(Config::new("memory", "master-0"), recorder.transport())?;
//!
//! let object = Object::new("tenant-a", "llama/7f3a/0");
//! publisher.committed(&object, MediaSet::CPU);
//! let before = Before::mutation(MediaSet::CPU); // taken before the object moves to disk
//! publisher.changed(&object, before, MediaSet::DISK);
//!
//! let report = publisher.stop(Duration::from_secs(5));
//! assert_eq!((report.published, report.abandoned), (3, 0)); // stored on cpu, removed from cpu, stored on disk
//! # Ok::<(), kv_events::StartError>(())
//! ```
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | publish | [`Publisher`], [`Config`], [`Object`], [`Outcome`], [`Sweep`], [`Status`] |
//! | send over something else, or test without a socket | [`transport`] |
//! | receive | `subscriber` (feature `zmq`, on Unix) |
//! | tell loss from order and from restarts | [`tracker`] |
//! | read events of masters and of engines | [`decode`] |
//! | write events as engines do | [`engine`] |
//!
//! # From a call to the socket
//!
//! | module | | thread |
//! |---|---|---|
//! | `object`, `media`, `config`, `outcome` | what a master says, and its settings | the caller's |
//! | `capi` | the same for C and C++ | |
//! | `publisher` | the calls, and what of them is queued | |
//! | `wire` | an event as bytes: every key and value | |
//! | `lockfree`, on `sync` | buffers, the evicting queue, wake-up, sweeps | |
//! | `sender` | batches, sequence numbers, gaps | the sender's |
//! | `transport` | the payload on a socket, and the socket's options | |
//!
//! # Features
//!
//! | feature | default | |
//! |---|---|---|
//! | `zmq` | yes | the ZeroMQ transport and the subscriber; compiles libzmq, which takes a C++ compiler |
//! | `serde` | | settings by their flag names; status, reports and decoded events as JSON and the like |
//! | `capi` | | the C ABI |
//! | `metrics` | | the status through the `metrics` facade |
//!
//! The [README](https://github.com/kv-events/kv-events) has results, guarantees and the command-line tool; its `docs` folder
//! has pages on operation, settings, C++, the wire and the design.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("kv-events counts in 64-bit atomics, which this target lacks");

#[cfg(all(feature = "native", not(target_os = "linux")))]
compile_error!("the native transport of kv-events waits by epoll, which is Linux's; leave the feature `native` out");

#[cfg(feature = "capi")]
mod capi;
#[cfg(doctest)]
mod compile_fail;
mod config;
pub mod decode;
pub mod engine;
mod error;
mod logging;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod network;
mod publisher;
mod status;
#[cfg(all(feature = "zmq", unix))]
pub mod subscriber;
pub mod tracker;
pub mod transport;

mod clock;
#[cfg(any(feature = "zmq", feature = "native"))]
mod endpoint;
mod faults;
mod lockfree;
mod log_throttle;
mod media;
mod memory;
mod object;
mod os;
mod outcome;
mod sender;
mod sync;
mod wire;
#[cfg(any(feature = "native", all(feature = "zmq", unix)))]
#[cfg_attr(not(feature = "zmq"), allow(dead_code, unused_imports, reason = "the subscriber's"))]
mod zmtp;

/// Compiles and runs the code blocks of the pages.
#[cfg(all(doctest, feature = "zmq"))]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/settings.md")]
    struct Settings;
}

pub use config::{
    Config, MAX_BATCH_EVENTS, MAX_EVENT_BYTES, MAX_NAP, MAX_QUEUE_CAPACITY, TransportKind, WaitStrategy,
    recommended_eviction_burst,
};
pub use error::{ConfigError, EndpointError, Shortage, StartError};
pub use media::{MediaSet, Medium, Replica, ReplicaKind};
pub use object::{Before, DEFAULT_TENANT, Object};
pub use outcome::{Outcome, Refusal};
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
    /// What reads a subscriber's bytes.
    #[cfg(feature = "native")]
    pub mod native {
        pub use crate::transport::native::parser::{Bad, Parser, opening};
    }
    pub use crate::sender::*;
    #[cfg(kv_events_loom)]
    pub use crate::sync::{imp::parking, lanes};
    pub use crate::wire::encode::{CallLayout, Context, Encoder};
    pub use crate::wire::frame::Frame;
    pub use crate::wire::message::{Header, PayloadWriter};
}
