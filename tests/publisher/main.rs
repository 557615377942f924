//! The publisher: its calls, what of them reaches a subscriber, what it costs, and what becomes of it.

#[path = "../common/mod.rs"]
mod common;

mod examples;
mod fork;
mod full_queue;
mod hostile_peers;
mod independent_subscriber;
mod limits;
mod lives;
mod memory;
mod metrics;
mod native;
mod no_alloc;
mod ordering;
mod panicking_logger;
mod peers;
mod publication_points;
mod published_stream;
mod queue;
mod same_api;
mod scheduling;
mod sender_failures;
mod signals;
mod start;
mod status;
mod stopping;
mod warnings;
