//! How a publisher is doing, and how it stopped.

use crate::transport::PeerReport;

/// A publisher's figures at one moment. Each only ever rises, except where its documentation says otherwise; they are
/// read one after another, so sums hold exactly only when nothing is under way.
///
/// Once all calls have returned and the sender is idle, accepted events = `published_events` + `evicted_events` +
/// `failed_events` (+ `abandoned_events` after a stop), and `last_sequence` = `published_batches` + `evicted_events` +
/// `failed_events`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Status {
    /// Whether the publisher publishes at all.
    pub enabled: bool,
    /// Whether it was told to stop: calls are refused.
    pub stopped: bool,
    /// Whether the sender is well. False once it died; a stopped publisher is still well.
    pub healthy: bool,
    /// What the sender died of; `None` while it is well.
    pub unhealthy_reason: Option<String>,
    /// The endpoint really bound, port included.
    pub bound_endpoint: Option<String>,
    /// Whether `stored` and `removed` are being held back by `kv_events_emit_object_key=false`.
    pub keys_suppressed: bool,
    /// Messages whose last frame the socket took, empty batches included. It says nothing of what any subscriber
    /// received: a PUB socket drops, in silence, for subscribers that are too far behind.
    pub published_batches: u64,
    /// Events in those messages.
    pub published_events: u64,
    /// Bytes of payload in those messages.
    pub published_bytes: u64,
    /// Lost after being accepted: evicted + failed + abandoned.
    pub dropped_events: u64,
    /// Evicted from the full queue, oldest first.
    pub evicted_events: u64,
    /// In messages that the socket did not take.
    pub failed_events: u64,
    /// Left over at stop, or when the sender died.
    pub abandoned_events: u64,
    /// Held back for want of an object key.
    pub skipped_keyless_events: u64,
    /// Not accepted; the call said so.
    pub refused_events: u64,
    /// The last number used up: by a message, or by an event that was evicted or failed.
    pub last_sequence: u64,
    /// Events in the queue when the sender last looked. Falls as well.
    pub queue_length: u64,
    /// The longest queue the sender has seen, in events.
    pub queue_high_water: u64,
    /// Events the queue holds at most: the setting, and 2 if that is 1, since a call may have two events.
    pub queue_capacity: u64,
    /// The socket's send high-water mark as read back from it, messages a subscriber.
    pub send_hwm: u64,
    /// Buffers idle in the pool. Falls as well.
    pub pool_idle: u64,
    /// Buffers that were made because none was idle; fifteen at a time.
    pub pool_misses: u64,
    /// Buffers freed because they had grown over `kv_events_retain_bytes`.
    pub pool_freed: u64,
    /// Connections that were refused since `kv_events_allow_peers` does not name where they came from.
    pub refused_peers: u64,
    /// How often the endpoint was found to be one that no new subscriber can reach; looked at once a second.
    pub endpoint_faults: u64,
    /// What keeps new subscribers out now (no descriptor is left, the `ipc` path is gone); `None` while nothing does. Those
    /// that are connected are served all the same, and the publisher stays `healthy`.
    pub endpoint_fault: Option<String>,
    /// Connections closed for want of a descriptor, for a limit, or for what they said. Native transport only, as are the next
    /// three.
    pub refused_connections: u64,
    /// Messages that a subscriber did not get since too many waited for it; each counts once for each of them. No event in
    /// them counts as dropped here: to the publisher it was published.
    pub peer_dropped_messages: u64,
    /// Events in those messages.
    pub peer_dropped_events: u64,
    /// The subscribers that are connected now.
    pub peers: Vec<PeerReport>,
}

/// How a stop went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
#[must_use = "says whether everything was sent and whether the endpoint is free"]
pub struct StopReport {
    /// Events published over the publisher's life.
    pub published: u64,
    /// Events that were accepted and could not be sent before the deadline. Calls that raced with the stop may add to
    /// it later; the status has the final figure.
    pub abandoned: u64,
    /// Whether the socket and its context are gone, so that the endpoint is free. If not, the sender thread still holds
    /// them and closes them when it can.
    pub closed: bool,
}
