//! The status for those who watch it: names, help texts and kinds in one table, given out as Prometheus text and through
//! the `metrics` facade.

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
    counter("kv_events_pool_freed", "Buffers freed as too large or too many", |s| s.pool_freed),
];

#[cfg(feature = "metrics")]
impl Status {
    /// Sets the figures in the recorder of the `metrics` facade, labelled with `backend_id`: call it at an interval.
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

#[cfg(feature = "prometheus")]
pub use prometheus::*;

#[cfg(feature = "prometheus")]
mod prometheus {
    use super::{FIGURES, Kind};
    use crate::{Publisher, Status};
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
    use prometheus_client::metrics::MetricType;
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;
    use prometheus_client::registry::Registry;
    use std::fmt;
    use std::sync::Arc;

    /// The content type of [`Status::to_prometheus`].
    pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Gives a publisher's figures to a `prometheus_client` registry whenever it is scraped:
    /// `registry.register_collector(Box::new(PublisherCollector::new(publisher)))`. Labels are the registry's:
    /// `sub_registry_with_label` for several publishers in one.
    #[derive(Debug)]
    pub struct PublisherCollector(Arc<Publisher>);

    impl PublisherCollector {
        /// A collector of `publisher`'s figures.
        pub fn new(publisher: Arc<Publisher>) -> Self {
            PublisherCollector(publisher)
        }
    }

    impl Collector for PublisherCollector {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            encode(&self.0.status(), encoder)
        }
    }

    #[derive(Debug)]
    struct Snapshot(Status);

    impl Collector for Snapshot {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            encode(&self.0, encoder)
        }
    }

    fn encode(status: &Status, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for figure in FIGURES {
            let value = (figure.value)(status);
            match figure.kind {
                Kind::Counter => ConstCounter::new(value).encode(encoder.encode_descriptor(
                    figure.name,
                    figure.help,
                    None,
                    MetricType::Counter,
                )?)?,
                Kind::Gauge => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
                    .encode(encoder.encode_descriptor(figure.name, figure.help, None, MetricType::Gauge)?)?,
            }
        }
        Ok(())
    }

    impl Status {
        /// The status as one scrape in the OpenMetrics text form, labelled with `backend_id`, to be served as
        /// [`OPENMETRICS`]. For masters that have a registry already there is [`PublisherCollector`].
        #[must_use]
        pub fn to_prometheus(&self, backend_id: &str) -> String {
            // The library writes labels as they are.
            let backend_id = backend_id.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let labels = [("backend_id".into(), backend_id.into())];
            let mut registry = Registry::with_labels(labels.into_iter());
            registry.register_collector(Box::new(Snapshot(self.clone())));
            let mut out = String::new();
            // Writing to a `String` does not fail.
            let written = text::encode(&mut out, &registry);
            debug_assert!(written.is_ok());
            out
        }
    }
}
