//! The status as gauges and counters of the `metrics` facade: names, help texts and kinds in one table.

use crate::Status;

/// One figure of the status, by its conventional name. Counters get `_total` appended where they are shown.
struct Figure {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    value: fn(&Status) -> u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Counter,
    Gauge,
}

const fn counter(name: &'static str, help: &'static str, value: fn(&Status) -> u64) -> Figure {
    Figure { name, help, kind: Kind::Counter, value }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Status) -> u64) -> Figure {
    Figure { name, help, kind: Kind::Gauge, value }
}

const FIGURES: &[Figure] = &[
    gauge("kv_events_enabled", "Whether the publisher publishes at all", |s| s.enabled.into()),
    gauge("kv_events_stopped", "Whether it was told to stop", |s| s.stopped.into()),
    gauge("kv_events_healthy", "Whether the sender is well; 0 once it died", |s| s.healthy.into()),
    gauge("kv_events_keys_suppressed", "Whether stored and removed are silenced by a setting", |s| {
        s.keys_suppressed.into()
    }),
    counter("kv_events_published", "Events in messages that the socket took", |s| s.published_events),
    counter("kv_events_published_batches", "Messages that the socket took", |s| s.published_batches),
    counter("kv_events_published_bytes", "Bytes of payload in those messages", |s| s.published_bytes),
    counter("kv_events_evicted", "Events evicted from the full queue", |s| s.evicted_events),
    counter("kv_events_failed", "Events in messages that the socket did not take", |s| s.failed_events),
    counter("kv_events_abandoned", "Events left over at stop or when the sender died", |s| s.abandoned_events),
    counter("kv_events_skipped_keyless", "Events held back for want of an object key", |s| s.skipped_keyless_events),
    counter("kv_events_refused", "Events not accepted", |s| s.refused_events),
    gauge("kv_events_last_sequence", "Number of the last message or lost event", |s| s.last_sequence),
    gauge("kv_events_queue_length", "Calls in the queue when the sender last looked", |s| s.queue_length),
    gauge("kv_events_queue_high_water", "Longest queue seen, calls", |s| s.queue_high_water),
    gauge("kv_events_queue_capacity", "Calls the queue holds at most", |s| s.queue_capacity),
    gauge("kv_events_send_hwm", "Messages a subscriber may be behind; 0 is no limit", |s| s.send_hwm),
    gauge("kv_events_pool_idle", "Buffers idle in the pool", |s| s.pool_idle),
    counter("kv_events_pool_misses", "Buffers that calls had to make", |s| s.pool_misses),
    counter("kv_events_refused_peers", "Connections that kv_events_allow_peers kept out", |s| s.refused_peers),
    counter("kv_events_endpoint_faults", "Times that no new subscriber could connect", |s| s.endpoint_faults),
    gauge("kv_events_endpoint_fault", "Whether no new subscriber can connect now", |s| {
        s.endpoint_fault.is_some().into()
    }),
    counter("kv_events_refused_connections", "Connections closed for a limit or for what they said", |s| {
        s.refused_connections
    }),
    counter("kv_events_peer_dropped_messages", "Messages that a subscriber missed as too far behind", |s| {
        s.peer_dropped_messages
    }),
    counter("kv_events_peer_dropped", "Events in those messages", |s| s.peer_dropped_events),
    gauge("kv_events_peers", "Subscribers of the native transport", |s| s.peers.len() as u64),
    counter("kv_events_pool_freed", "Buffers freed as too large or too many", |s| s.pool_freed),
];

impl Status {
    /// Sets the figures in the recorder of the `metrics` facade, labelled with `backend_id`: call it at an interval, or before
    /// each scrape (`examples/scrape.rs` does so with `metrics-exporter-prometheus`).
    /// Counters are set to absolute values, so a missed call loses nothing. Without a recorder it does nothing.
    pub fn record(&self, backend_id: &str) {
        for figure in FIGURES {
            let labels = [("backend_id", backend_id.to_owned())];
            match figure.kind {
                Kind::Counter => {
                    let name = format!("{}_total", figure.name);
                    metrics::describe_counter!(name.clone(), figure.help);
                    metrics::counter!(name, &labels).absolute((figure.value)(self));
                }
                Kind::Gauge => {
                    metrics::describe_gauge!(figure.name, figure.help);
                    metrics::gauge!(figure.name, &labels).set((figure.value)(self) as f64);
                }
            }
        }
    }
}
