//! What a subscriber counts, for any thread to read.

use super::delivery::{Malformed, Source};
use crate::sync::{Gauge, Mutex};
use crate::tracker;
use std::sync::Arc;

/// One source's figures. They only rise, and they count what *arrived*: silence shows as figures that stand still.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SourceStatus {
    /// The endpoint.
    pub endpoint: String,
    /// Who it is of those connected to an endpoint that was bound, see [`Source::peer`].
    pub peer: Option<String>,
    /// The topic, with what is not UTF-8 replaced.
    pub topic: String,
    /// Connections made to the endpoint so far, which is to say that it spoke ZeroMQ; the same for all its topics.
    pub connections: u64,
    /// Connections to it that were lost. One less than `connections` while it is connected, and as many while it is not.
    pub disconnections: u64,
    /// Why the last attempt at a connection failed, or what is there instead of a publisher; `None` once one is there.
    pub trouble: Option<String>,
    /// Whether `trouble` says who is there instead of a publisher.
    pub is_stranger: bool,
    /// Whatever arrived, malformed ones and duplicates included.
    pub received: u64,
    /// Bytes of it, all frames together.
    pub bytes: u64,
    /// Messages whose payload was a batch, duplicates included.
    pub decoded: u64,
    /// Events in them, good and bad.
    pub events: u64,
    /// Not three frames.
    pub malformed_frames: u64,
    /// Not eight bytes of sequence number.
    pub malformed_sequence: u64,
    /// One topic too many, or too long a topic.
    pub malformed_topic: u64,
    /// A frame above the limit.
    pub malformed_size: u64,
    /// A payload that is no batch.
    pub malformed_payload: u64,
    /// What came of their numbers. A message counts there whether or not its payload could be read.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub counters: tracker::Counters,
}

impl SourceStatus {
    /// All that was malformed.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed_frames
            + self.malformed_sequence
            + self.malformed_topic
            + self.malformed_size
            + self.malformed_payload
    }
}

/// The figures of one endpoint's connection.
#[derive(Debug)]
pub(super) struct ConnectionFigures {
    pub(super) connections: Gauge,
    pub(super) disconnections: Gauge,
    /// And whether it says who is there instead of a publisher.
    pub(super) trouble: Mutex<Option<(String, bool)>>,
}

impl ConnectionFigures {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(ConnectionFigures {
            connections: Gauge::new(),
            disconnections: Gauge::new(),
            trouble: Mutex::new(None),
        })
    }
}

/// The figures of one source, written by the subscriber alone.
#[derive(Debug)]
pub(super) struct Figures {
    source: Arc<Source>,
    connection: Arc<ConnectionFigures>,
    pub(super) received: Gauge,
    pub(super) bytes: Gauge,
    pub(super) decoded: Gauge,
    pub(super) events: Gauge,
    malformed_frames: Gauge,
    malformed_sequence: Gauge,
    malformed_topic: Gauge,
    malformed_size: Gauge,
    malformed_payload: Gauge,
    messages: Gauge,
    gaps: Gauge,
    missed: Gauge,
    missed_evicted: Gauge,
    missed_lost: Gauge,
    duplicates: Gauge,
    restarts: Gauge,
    reconnections: Gauge,
    first_sequence: Gauge,
    last_sequence: Gauge,
}

impl Figures {
    fn new(source: Arc<Source>, connection: Arc<ConnectionFigures>) -> Self {
        Figures {
            source,
            connection,
            received: Gauge::new(),
            bytes: Gauge::new(),
            decoded: Gauge::new(),
            events: Gauge::new(),
            malformed_frames: Gauge::new(),
            malformed_sequence: Gauge::new(),
            malformed_topic: Gauge::new(),
            malformed_size: Gauge::new(),
            malformed_payload: Gauge::new(),
            messages: Gauge::new(),
            gaps: Gauge::new(),
            missed: Gauge::new(),
            missed_evicted: Gauge::new(),
            missed_lost: Gauge::new(),
            duplicates: Gauge::new(),
            restarts: Gauge::new(),
            reconnections: Gauge::new(),
            first_sequence: Gauge::new(),
            last_sequence: Gauge::new(),
        }
    }

    pub(super) fn malformed(&self, reason: Malformed) {
        match reason {
            Malformed::Frames(_) => self.malformed_frames.add(1),
            Malformed::SequenceLength(_) => self.malformed_sequence.add(1),
            Malformed::TooManyTopics | Malformed::TopicLength(_) => self.malformed_topic.add(1),
            Malformed::TooLarge { .. } => self.malformed_size.add(1),
            Malformed::Payload(_) => self.malformed_payload.add(1),
        }
    }

    pub(super) fn tracked(&self, counters: &tracker::Counters) {
        self.first_sequence.set(counters.first_sequence.unwrap_or(0));
        self.last_sequence.set(counters.last_sequence.unwrap_or(0));
        self.gaps.set(counters.gaps);
        self.missed.set(counters.missed);
        self.missed_evicted.set(counters.missed_evicted);
        self.missed_lost.set(counters.missed_lost);
        self.duplicates.set(counters.duplicates);
        self.restarts.set(counters.restarts);
        self.reconnections.set(counters.reconnections);
        self.messages.set(counters.messages);
    }

    fn status(&self) -> SourceStatus {
        let messages = self.messages.get();
        let (trouble, is_stranger) = self.connection.trouble.lock().clone().unzip();
        SourceStatus {
            endpoint: self.source.endpoint.clone(),
            peer: self.source.peer.clone(),
            topic: String::from_utf8_lossy(&self.source.topic).into_owned(),
            connections: self.connection.connections.get(),
            disconnections: self.connection.disconnections.get(),
            trouble,
            is_stranger: is_stranger.unwrap_or(false),
            received: self.received.get(),
            bytes: self.bytes.get(),
            decoded: self.decoded.get(),
            events: self.events.get(),
            malformed_frames: self.malformed_frames.get(),
            malformed_sequence: self.malformed_sequence.get(),
            malformed_topic: self.malformed_topic.get(),
            malformed_size: self.malformed_size.get(),
            malformed_payload: self.malformed_payload.get(),
            counters: tracker::Counters {
                messages,
                gaps: self.gaps.get(),
                missed: self.missed.get(),
                missed_evicted: self.missed_evicted.get(),
                missed_lost: self.missed_lost.get(),
                duplicates: self.duplicates.get(),
                restarts: self.restarts.get(),
                reconnections: self.reconnections.get(),
                first_sequence: (messages > 0).then(|| self.first_sequence.get()),
                last_sequence: (messages > 0).then(|| self.last_sequence.get()),
            },
        }
    }
}

/// Reads a subscriber's figures from any thread, at any time, also after the subscriber is gone. Reading takes nothing
/// from the subscriber but the moment in which a new source is entered; a figure may be one message ahead of another
/// that is read beside it.
#[derive(Clone, Debug)]
pub struct StatusHandle(Arc<Mutex<Vec<Arc<Figures>>>>);

impl StatusHandle {
    pub(super) fn new() -> Self {
        StatusHandle(Arc::new(Mutex::new(Vec::new())))
    }

    pub(super) fn enter(&self, source: &Arc<Source>, connection: &Arc<ConnectionFigures>) -> Arc<Figures> {
        let figures = Arc::new(Figures::new(Arc::clone(source), Arc::clone(connection)));
        self.0.lock().push(Arc::clone(&figures));
        figures
    }

    pub(super) fn leave(&self, left: &Arc<Figures>) {
        self.0.lock().retain(|figures| !Arc::ptr_eq(figures, left));
    }

    /// Every source's figures. Each endpoint has a source for the topic that was subscribed to from the beginning; other
    /// topics' sources are there once their first message is, and until they are released (see
    /// [`Settings::topic_idle`](super::Settings::topic_idle)) or the endpoint is removed.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let figures: Vec<_> = self.0.lock().iter().map(Arc::clone).collect();
        figures.iter().map(|figures| figures.status()).collect()
    }
}
