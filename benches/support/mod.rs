//! What the benches share: one kind of event for all of them, objects made beforehand, the peer, and stand-ins for a socket.

#![allow(dead_code, reason = "every bench uses a part of it")]

pub mod peer;
pub mod sinks;
pub mod threads;

use kv_events::{Config, MediaSet, Object, Publisher, WaitStrategy, recommended_eviction_burst};
use peer::Peer;
use std::hint::black_box;
use std::time::Duration;

pub const TENANT: &str = "tenant-a";
/// 80 bytes, as the aims say.
pub const GROUP: &str = "batch-put/worker-07/2026-01-01T00:00:00.000Z/group-0000000000000042/segment-0001";
/// Bytes of an object key, unless a bench varies it.
pub const KEY: usize = 100;
/// Different objects that a producer cycles through.
pub const OBJECTS: usize = 1024;
pub const CAPACITY: usize = 65_536;
pub const SEND_HWM: u32 = 10_000;
pub const LINGER: Duration = Duration::from_secs(1);
/// A port that is free.
pub const ENDPOINT: &str = "tcp://127.0.0.1:*";
pub const POLL: WaitStrategy = WaitStrategy::Poll(Duration::from_micros(50));

const _: () = assert!(GROUP.len() == 80);

/// The settings of every comparison; the peer's [`peer::Settings`] are made from the same figures.
pub fn config(capacity: usize) -> Config {
    Config::new(ENDPOINT, "master-0")
        .model_name("meta-llama/Llama-3.1-70B-Instruct")
        .block_size(16)
        .additional_salt("salt-1")
        .queue_capacity(capacity)
        .eviction_burst(recommended_eviction_burst(capacity))
        .send_hwm(SEND_HWM)
        .linger(LINGER)
}

/// A key of exactly `len` bytes that differs from others in its last digits.
pub fn key(len: usize, n: usize) -> String {
    let number = format!("{n:08x}");
    let number = &number[number.len().saturating_sub(len)..];
    let mut key = "model/meta-llama/Llama-3.1-70B-Instruct/tp4/layer-all/prefix-block/".repeat(len / 64 + 1);
    key.truncate(len - number.len());
    key.push_str(number);
    key
}

/// Keys made outside of what is timed.
pub fn keys(len: usize) -> Vec<String> {
    (0..OBJECTS).map(|n| key(len, n)).collect()
}

/// An object in the group of all benches.
pub fn object(key: &str) -> Object<'_> {
    Object::new(TENANT, key).in_group(GROUP)
}

/// What is measured: a thing that takes a `stored` on cpu.
pub trait Publish: Send + Sync {
    fn stored(&self, object: &Object<'_>);
    fn endpoint(&self) -> String;
    /// Events that were pushed out of a full queue.
    fn evicted(&self) -> u64;
    /// Events that were sent or evicted.
    fn settled(&self) -> u64;
    /// Sends what is queued and closes the socket.
    fn finish(&self);
}

impl Publish for Publisher {
    #[inline]
    fn stored(&self, object: &Object<'_>) {
        black_box(self.committed(object, MediaSet::CPU));
    }

    fn endpoint(&self) -> String {
        self.bound_endpoint().unwrap_or_default().to_owned()
    }

    fn evicted(&self) -> u64 {
        self.status().evicted_events
    }

    fn settled(&self) -> u64 {
        let status = self.status();
        status.published_events + status.evicted_events
    }

    fn finish(&self) {
        let report = self.stop(Duration::from_secs(10));
        assert!(report.closed && report.abandoned == 0, "stop left something behind: {report:?}");
    }
}

impl Publish for Peer {
    #[inline]
    fn stored(&self, object: &Object<'_>) {
        Peer::stored(self, object);
    }

    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn evicted(&self) -> u64 {
        Peer::evicted(self)
    }

    fn settled(&self) -> u64 {
        Peer::settled(self)
    }

    fn finish(&self) {
        self.stop();
    }
}

/// The harness alone.
pub struct Nothing;

impl Publish for Nothing {
    #[inline]
    fn stored(&self, object: &Object<'_>) {
        black_box(object);
    }

    fn endpoint(&self) -> String {
        String::new()
    }

    fn evicted(&self) -> u64 {
        0
    }

    fn settled(&self) -> u64 {
        0
    }

    fn finish(&self) {}
}
