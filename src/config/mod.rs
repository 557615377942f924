//! The publisher's settings, their defaults, and what is wrong with them.

#[cfg(feature = "serde")]
mod by_name;
mod transport;
mod wait;

use crate::error::ConfigError;
use crate::network::Network;
use std::time::Duration;
pub use transport::TransportKind;
pub use wait::{MAX_NAP, WaitStrategy};

/// The largest `queue_capacity`, events. The queue's table takes 8 bytes of address space for each of them (rounded up to a
/// power of two) and half a byte for the buffers'; memory is used for what was ever in the queue.
pub const MAX_QUEUE_CAPACITY: usize = 1 << 24;
/// The largest `max_event_bytes`.
pub const MAX_EVENT_BYTES: usize = 64 << 20;
/// The largest `max_batch_events`.
pub const MAX_BATCH_EVENTS: usize = 65_535;

/// What `keepalive` may be, if it is not 0.
const KEEPALIVE_MS: std::ops::RangeInclusive<u128> = 3_000..=3_600_000;

/// Buffers the pool keeps beyond those of a full queue and a batch: callers hold one each for the length of a call.
pub(crate) const CALLERS: usize = 64;
/// The smallest buffer of a call, bytes: four cache lines hold the usual tenant, group and key. Larger ones are powers of
/// two.
pub(crate) const SMALLEST_BUFFER: usize = 256;
/// Idle frames that threads may have by them: two runs in each of their lanes.
const IN_LANES: usize = 128 * 30;
/// What holds a buffer, bytes: its frame's line, and its share of what a run has in common.
const FRAME: usize = 64 + 16;
/// What a message takes beside its events: header, numbers, ZeroMQ's three records.
const MESSAGE_OVERHEAD: usize = 512;

/// Settings of a [`Publisher`](crate::Publisher).
///
/// Built by chaining, or, with the feature `serde`, read by the masters' flag names (each field's documentation begins
/// with its name). A key that is none of them is an error.
///
/// ```
/// use kv_events::Config;
/// let config = Config::new("tcp://127.0.0.1:5557", "master-0").model_name("llama").eviction_burst(16);
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(crate) enabled: bool,
    pub(crate) bind_endpoint: String,
    pub(crate) backend_id: String,
    pub(crate) model_name: String,
    pub(crate) block_size: u32,
    pub(crate) additional_salt: String,
    pub(crate) lora_name: String,
    pub(crate) dp_rank: u32,
    pub(crate) emit_object_key: bool,
    pub(crate) emit_legacy_compat: bool,
    pub(crate) queue_capacity: usize,
    pub(crate) eviction_burst: usize,
    pub(crate) wait_strategy: WaitStrategy,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) max_event_bytes: usize,
    pub(crate) max_batch_events: usize,
    pub(crate) max_batch_bytes: usize,
    pub(crate) retain_bytes: usize,
    pub(crate) send_hwm: u32,
    pub(crate) linger: Duration,
    pub(crate) allow_peers: Vec<String>,
    pub(crate) keepalive: Duration,
    pub(crate) transport: TransportKind,
    pub(crate) peer_queue_bytes: usize,
    pub(crate) total_queue_bytes: usize,
    pub(crate) max_peers: usize,
    pub(crate) max_peers_per_address: usize,
}

/// Disabled, with every other setting at its default.
impl Default for Config {
    fn default() -> Self {
        Config {
            enabled: false,
            bind_endpoint: String::new(),
            backend_id: String::new(),
            model_name: String::new(),
            block_size: 0,
            additional_salt: String::new(),
            lora_name: String::new(),
            dp_rank: 0,
            emit_object_key: true,
            emit_legacy_compat: true,
            queue_capacity: 65_536,
            eviction_burst: 1,
            wait_strategy: WaitStrategy::default(),
            heartbeat_interval: Duration::ZERO,
            max_event_bytes: 16 << 10,
            max_batch_events: 64,
            max_batch_bytes: 1 << 20,
            retain_bytes: 2 << 10,
            send_hwm: 10_000,
            linger: Duration::from_secs(1),
            allow_peers: Vec::new(),
            keepalive: Duration::from_secs(45),
            transport: TransportKind::default(),
            peer_queue_bytes: 256 << 20,
            total_queue_bytes: 1 << 30,
            max_peers: 1024,
            max_peers_per_address: 0,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty $(=> $convert:ident)?;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name$(.$convert())?;
                self
            }
        )*
    };
}

impl Config {
    /// Enabled, bound to `bind_endpoint`, publishing as `backend_id`.
    pub fn new(bind_endpoint: impl Into<String>, backend_id: impl Into<String>) -> Self {
        Config {
            enabled: true,
            bind_endpoint: bind_endpoint.into(),
            backend_id: backend_id.into(),
            ..Config::default()
        }
    }

    setters! {
        /// `enable_kv_events`, default false ([`Config::new`] sets it). A disabled publisher opens nothing, costs nothing.
        enabled: bool;
        /// `kv_events_bind_endpoint`: where the PUB socket binds, verbatim, e.g. `tcp://127.0.0.1:5557` or
        /// `ipc:///run/kv.sock`. No default. Beyond loopback it is allowed and logged: the stream is not authenticated.
        bind_endpoint: impl Into<String> => into;
        /// `kv_events_backend_id`: names this master in every event. No default.
        backend_id: impl Into<String> => into;
        /// `kv_events_model_name`, nil on the wire when empty.
        model_name: impl Into<String> => into;
        /// `kv_events_block_size` in tokens, nil on the wire when 0.
        block_size: u32;
        /// `kv_events_additional_salt`, nil on the wire when empty.
        additional_salt: impl Into<String> => into;
        /// `kv_events_lora_name`, nil on the wire when empty.
        lora_name: impl Into<String> => into;
        /// `kv_events_dp_rank`: labels every event and every batch; does nothing to the endpoint.
        dp_rank: u32;
        /// `kv_events_emit_object_key`, default true. **False silences `stored` and `removed` altogether**, since without
        /// a key no subscriber can act on them; only `cleared` is still sent.
        emit_object_key: bool;
        /// `kv_events_emit_legacy_compat`, default true: events carry the pre-RFC field names as well.
        emit_legacy_compat: bool;
        /// `kv_events_queue_capacity` in events, default 65536, 1 to [`MAX_QUEUE_CAPACITY`], kept exactly. A full queue
        /// evicts its oldest call. Memory: some 370 bytes a call (24 MiB at the default), most of it taken as the queue
        /// fills and then kept; more where tenant, group and key of a call together take more than 230 bytes (see
        /// [`memory_bound`](Self::memory_bound)).
        queue_capacity: usize;
        /// `kv_events_eviction_burst`: calls evicted at once when the queue is full, default 1, at least 1; more than
        /// the capacity counts as the capacity. [`recommended_eviction_burst`] makes overload gentler on callers.
        eviction_burst: usize;
        /// `kv_events_wait_strategy`: what the sender does when there is nothing to send.
        wait_strategy: WaitStrategy;
        /// `kv_events_heartbeat_interval` in ms, default 0 (off): an empty batch is sent whenever nothing was for that long, so that
        /// a subscriber notices a lost tail.
        heartbeat_interval: Duration;
        /// `kv_events_max_event_bytes`: a call with an encoded event above it is refused; default 16 KiB, 512 to
        /// [`MAX_EVENT_BYTES`].
        max_event_bytes: usize;
        /// `kv_events_max_batch_events` in one message, default 64, 2 to [`MAX_BATCH_EVENTS`].
        max_batch_events: usize;
        /// `kv_events_max_batch_bytes`: a message takes no further call once it holds that much; default 1 MiB, up to 1 GiB.
        max_batch_bytes: usize;
        /// `kv_events_retain_bytes`: a buffer that grew above it is freed, not pooled; default 2 KiB, 512 to twice [`MAX_EVENT_BYTES`].
        retain_bytes: usize;
        /// `kv_events_send_hwm` in messages for each subscriber, default 10000; 0 is no limit. A subscriber that is
        /// further behind loses the *newest* messages, and only its own sequence shows it. ZeroMQ keeps those messages in
        /// memory for it: 64 events of 470 bytes make 30 KB, so a subscriber that reads nothing can cost 300 MB.
        send_hwm: u32;
        /// `kv_events_linger` in ms, default 1000: how long stop may wait for subscribers to fetch the rest, within its
        /// deadline. With 0 the tail may be lost.
        linger: Duration;
        /// `kv_events_keepalive` in ms, default 45000; 0 leaves it to the system, which may take hours. A TCP connection
        /// whose subscriber has vanished without a word (its host lost power, say) is ended after that time, 3 s to an hour.
        /// So is one whose subscriber has taken nothing for that long while more was waiting for it than the system holds.
        keepalive: Duration;
        /// `kv_events_transport`: `zmq` (the default where there is libzmq) or `native`, what carries the messages.
        transport: TransportKind;
        /// `kv_events_peer_queue_bytes`, default 256 MiB, 64 KiB up: bytes that may wait for one subscriber, beside
        /// `send_hwm`, whichever is reached first; one message may in any case. Native transport only, as are the next three.
        peer_queue_bytes: usize;
        /// `kv_events_total_queue_bytes`, default 1 GiB, 64 KiB up: bytes of messages that may wait for all subscribers
        /// together, each counted once. Beyond it those that are behind lose the newest, as for their own marks.
        total_queue_bytes: usize;
        /// `kv_events_max_peers`, default 1024; 0 is no limit: connections at once.
        max_peers: usize;
        /// `kv_events_max_peers_per_address`, default 0, which is no limit: connections from one address at once, by TCP.
        max_peers_per_address: usize;
    }

    /// `kv_events_allow_peers`: addresses (`10.0.0.7`, `::1`) and networks (`10.0.0.0/8`, `fd00::/8`) that may connect by
    /// TCP; default empty, which is anyone. Others are refused in the handshake, counted in
    /// [`Status::refused_peers`](crate::Status::refused_peers) and logged (the 1st, 10th, 100th ...). IPv4 that comes to an IPv6
    /// endpoint is IPv4: `::/0` does not name it. Peers of a protocol older than ZMTP 3 (libzmq 3) are hung up on then.
    #[must_use]
    pub fn allow_peers<P: Into<String>>(mut self, peers: impl IntoIterator<Item = P>) -> Self {
        self.allow_peers = peers.into_iter().map(Into::into).collect();
        self
    }

    /// The most memory, in bytes, that a publisher with these settings can come to hold while `subscribers` of its
    /// subscribers stand still (with the native transport also by bytes); `None` without a bound: `send_hwm` 0 and libzmq.
    ///
    /// ```text
    ///   (queue_capacity + 64 callers) x (the buffer of a call)
    /// + (queue_capacity + 64 + max_batch_events) x (80 bytes for its frame)
    /// + (queue_capacity, rounded up to a power of two) x 8 bytes
    /// + 3,840 frames, of 256 bytes each, that idle threads may have by them
    /// + (4 + subscribers x send_hwm) x (the largest message)
    ///
    /// buffer of a call: its tenant, group and key, less than max_event_bytes, rounded up to 64, at least 256
    /// largest message:  max_batch_bytes, or max_batch_events x max_event_bytes if that is less, and one more call
    /// ```
    ///
    /// Calls take idle buffers before they make new ones, so those in the pool are among the first line's; idle ones hold no
    /// more than `retain_bytes` each. Buffers are made when they are needed, so an empty queue costs little, whatever its
    /// capacity (16 MiB of address space and no memory for 2^20 events). Three of the four messages are the batch in the sender's hands. A subscriber that reads
    /// holds nothing for long, and messages are shared by all subscribers that are equally far behind. What the bound leaves
    /// out: the allocator's own losses, some 20 KiB for each connection, and the kernel's socket buffers.
    ///
    /// This is what keys at their limit could do. With keys of 100 bytes and `emit_legacy_compat` a call's buffer is 256
    /// bytes and a message 32 KiB: the default settings then come to 24 MiB with a full queue, and 320 MiB for each
    /// subscriber that stands still.
    ///
    /// ```
    /// use kv_events::Config;
    /// let config = Config::new("tcp://127.0.0.1:0", "b").queue_capacity(1000).max_event_bytes(2 << 10).send_hwm(100);
    /// assert!(config.memory_bound(0).unwrap() < 5 << 20);
    /// assert!(config.memory_bound(2).unwrap() < 35 << 20);
    /// assert_eq!(config.send_hwm(0).memory_bound(1), None);
    /// ```
    #[must_use]
    pub fn memory_bound(&self, subscribers: usize) -> Option<usize> {
        let call = self.max_event_bytes.saturating_mul(2);
        let buffer = self.max_event_bytes.max(SMALLEST_BUFFER).checked_next_multiple_of(64)?;
        let calls = self.queue_capacity.checked_add(CALLERS)?;
        let frames = calls.checked_add(self.max_batch_events)?.checked_mul(FRAME)?;
        let table = self.queue_capacity.checked_next_power_of_two()?.checked_mul(8)?;
        let lanes = IN_LANES * (SMALLEST_BUFFER + FRAME);
        let batch = self.max_batch_bytes.min(self.max_batch_events.saturating_mul(self.max_event_bytes));
        let message = batch.checked_add(call)?.checked_add(MESSAGE_OVERHEAD)?;
        let waiting = match (subscribers, self.send_hwm as usize) {
            (0, _) => 0,
            (_, 0) if self.transport == TransportKind::Zmq => return None,
            (_, 0) => usize::MAX,
            (subscribers, hwm) => subscribers.checked_mul(hwm)?.checked_mul(message)?,
        };
        let waiting = match self.transport {
            TransportKind::Zmq => waiting,
            // Beside them, a message that each may have in any case.
            TransportKind::Native => {
                let bytes = subscribers.saturating_mul(self.peer_queue_bytes).min(self.total_queue_bytes);
                waiting.min(bytes.checked_add(subscribers.checked_mul(message)?)?)
            }
        };
        let queue = calls.checked_mul(buffer)?.checked_add(frames)?.checked_add(table)?.checked_add(lanes)?;
        queue.checked_add(message.checked_mul(4)?)?.checked_add(waiting)
    }

    /// Checks everything that can be checked without opening anything.
    ///
    /// # Errors
    ///
    /// Names the setting that is wrong and what to do. A disabled configuration is always right.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !self.enabled {
            return Ok(());
        }
        for (setting, text) in
            [("kv_events_bind_endpoint", &self.bind_endpoint), ("kv_events_backend_id", &self.backend_id)]
        {
            if text.is_empty() {
                return Err(ConfigError::Missing { setting });
            }
        }
        let ranges = [
            ("kv_events_queue_capacity", self.queue_capacity, 1, MAX_QUEUE_CAPACITY),
            ("kv_events_eviction_burst", self.eviction_burst, 1, usize::MAX),
            ("kv_events_max_event_bytes", self.max_event_bytes, 512, MAX_EVENT_BYTES),
            ("kv_events_max_batch_events", self.max_batch_events, 2, MAX_BATCH_EVENTS),
            ("kv_events_max_batch_bytes", self.max_batch_bytes, 1, 1 << 30),
            ("kv_events_retain_bytes", self.retain_bytes, 512, MAX_EVENT_BYTES * 2),
            ("kv_events_send_hwm", self.send_hwm as usize, 0, i32::MAX as usize),
            ("kv_events_peer_queue_bytes", self.peer_queue_bytes, 64 << 10, usize::MAX),
            ("kv_events_total_queue_bytes", self.total_queue_bytes, 64 << 10, usize::MAX),
        ];
        for (setting, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(ConfigError::OutOfRange { setting, value, min, max });
            }
        }
        if let WaitStrategy::Nap(nap) | WaitStrategy::Poll(nap) = self.wait_strategy {
            // Text, and so the wire of settings, has no smaller unit.
            if nap < Duration::from_micros(1) || nap > MAX_NAP {
                return Err(ConfigError::WaitStrategy { text: self.wait_strategy.to_string() });
            }
        }
        if !self.keepalive.is_zero() && !(KEEPALIVE_MS.contains(&self.keepalive.as_millis())) {
            let value = usize::try_from(self.keepalive.as_millis()).unwrap_or(usize::MAX);
            let (min, max) = (*KEEPALIVE_MS.start() as usize, *KEEPALIVE_MS.end() as usize);
            return Err(ConfigError::OutOfRange { setting: "kv_events_keepalive", value, min, max });
        }
        let is_there = match self.transport {
            // A build without any publishes nothing and says so.
            TransportKind::Zmq => cfg!(feature = "zmq") || !cfg!(feature = "native"),
            TransportKind::Native => cfg!(feature = "native"),
        };
        if !is_there {
            let reason = "is not in this build; build with the feature of that name, or choose another";
            return Err(ConfigError::Transport { transport: self.transport.to_string(), reason });
        }
        if let Some(peer) = self.allow_peers.iter().find(|peer| Network::parse(peer).is_none()) {
            let reason = "is neither an IP address nor a network like 10.0.0.0/8";
            return Err(ConfigError::Peer { peer: peer.clone(), reason });
        }
        if let (Some(peer), true) = (self.allow_peers.first(), self.bind_endpoint.starts_with("ipc:")) {
            let reason = "is for TCP; who may connect by ipc is a matter of the folder's permissions";
            return Err(ConfigError::Peer { peer: peer.clone(), reason });
        }
        let context = [&self.backend_id, &self.model_name, &self.additional_salt, &self.lora_name];
        let names: usize = context.iter().map(|name| name.len()).sum();
        if names >= self.max_event_bytes {
            return Err(ConfigError::NamesTooLong { bytes: names, max_event_bytes: self.max_event_bytes });
        }
        Ok(())
    }
}

/// The recommended `eviction_burst` for loaded masters: a sixteenth of the capacity, 1 to 16.
#[must_use]
pub const fn recommended_eviction_burst(queue_capacity: usize) -> usize {
    match queue_capacity / 16 {
        0 => 1,
        burst if burst > 16 => 16,
        burst => burst,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_the_documented_one_and_valid_once_enabled() {
        let config = Config::default();
        assert!(!config.enabled && config.emit_object_key && config.emit_legacy_compat);
        assert_eq!((config.queue_capacity, config.eviction_burst), (65_536, 1));
        assert_eq!((config.max_event_bytes, config.max_batch_events, config.max_batch_bytes), (16_384, 64, 1 << 20));
        assert_eq!((config.send_hwm, config.linger), (10_000, Duration::from_secs(1)));
        assert_eq!(Config::new("tcp://127.0.0.1:0", "b").validate(), Ok(()));
    }

    #[test]
    fn wrong_settings_are_named() {
        let good = || Config::new("tcp://127.0.0.1:0", "b");
        for (config, expected) in [
            (good().bind_endpoint(""), "kv_events_bind_endpoint"),
            (good().backend_id(""), "kv_events_backend_id"),
            (good().queue_capacity(0), "kv_events_queue_capacity"),
            (good().queue_capacity(usize::MAX), "kv_events_queue_capacity"),
            (good().eviction_burst(0), "kv_events_eviction_burst"),
            (good().max_batch_events(1), "kv_events_max_batch_events"),
            (good().max_event_bytes(0), "kv_events_max_event_bytes"),
            (good().model_name("m".repeat(20_000)), "kv_events_max_event_bytes"),
            (good().wait_strategy(WaitStrategy::Poll(Duration::from_secs(9))), "kv_events_wait_strategy"),
            (good().wait_strategy(WaitStrategy::Nap(Duration::from_nanos(999))), "kv_events_wait_strategy"),
            (good().max_event_bytes(511), "kv_events_max_event_bytes"),
            (good().keepalive(Duration::from_millis(2999)), "kv_events_keepalive=2999"),
            (good().keepalive(Duration::from_secs(3601)), "kv_events_keepalive"),
            (good().allow_peers(["10.0.0.0/8", "localhost"]), "kv_events_allow_peers: \"localhost\" is neither"),
            (good().bind_endpoint("ipc:///tmp/x").allow_peers(["::1"]), "kv_events_allow_peers: \"::1\" is for TCP"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(config.enabled(false).validate(), Ok(()), "nothing is wrong with what is disabled");
        }
    }

    #[test]
    fn the_recommended_burst_is_a_sixteenth_within_bounds() {
        let bursts = [1, 15, 16, 64, 256, 65_536].map(recommended_eviction_burst);
        assert_eq!(bursts, [1, 1, 1, 4, 16, 16]);
    }
}
