//! From what arrives at one endpoint to what is handed over.

use super::counters::{ConnectionFigures, Figures, StatusHandle};
use super::delivery::{Delivery, Malformed, Message, Source};
use super::frames::{Arrival, Socket};
use super::settings::{ConnectError, Settings};
use crate::decode::Batch;
use crate::rarely::is_power_of_ten;
use crate::tracker::{EventId, EventIds, Observed, Tracker, Verdict};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// One endpoint: its socket, and its sources.
pub(super) struct Endpoint {
    pub(super) name: String,
    pub(super) socket: Socket,
    connection: Arc<ConnectionFigures>,
    sources: Vec<Followed>,
    by_topic: HashMap<Vec<u8>, usize>,
}

/// A source and what is known of it.
struct Followed {
    source: Arc<Source>,
    tracker: Tracker,
    figures: Arc<Figures>,
    malformed: u64,
}

impl Endpoint {
    /// The `index`th endpoint of a subscriber.
    pub(super) fn connect(
        context: &zmq::Context,
        index: usize,
        name: &str,
        settings: &Settings,
        status: &StatusHandle,
    ) -> Result<Self, ConnectError> {
        let connection = ConnectionFigures::new();
        let socket = Socket::connect(context, index, name, settings, Arc::clone(&connection))?;
        let mut endpoint =
            Endpoint { name: name.to_owned(), socket, connection, sources: Vec::new(), by_topic: HashMap::new() };
        endpoint.follow(settings.topic.subscription(), settings, status);
        Ok(endpoint)
    }

    /// The index of the source with this topic; 0, the subscription's own, stands for all that are one too many.
    fn follow(&mut self, topic: &[u8], settings: &Settings, status: &StatusHandle) -> Option<usize> {
        if let Some(&index) = self.by_topic.get(topic) {
            return Some(index);
        }
        if self.sources.len() >= settings.max_topics {
            return None;
        }
        let source = Arc::new(Source { endpoint: self.name.clone(), topic: topic.to_vec() });
        let figures = status.enter(&source, &self.connection);
        let index = self.sources.len();
        self.sources.push(Followed { source, tracker: Tracker::new(settings.base), figures, malformed: 0 });
        self.by_topic.insert(topic.to_vec(), index);
        Some(index)
    }

    /// Takes in what has arrived: what is to be said of it goes to `ready`.
    pub(super) fn note(
        &mut self,
        arrival: Arrival,
        settings: &Settings,
        status: &StatusHandle,
        ready: &mut VecDeque<Delivery>,
    ) {
        match arrival {
            Arrival::Message { topic, .. } if !settings.topic.accepts(&topic) => {}
            Arrival::Message { topic, sequence, payload } => {
                let bytes = topic.len() + 8 + payload.len();
                match self.follow(&topic, settings, status) {
                    Some(index) => self.sources[index].message(sequence, payload, bytes, settings, ready),
                    None => ready.push_back(self.sources[0].malformed(None, Malformed::TooManyTopics, bytes)),
                }
            }
            // Its first frame may be anything: only one that has messages is taken for a topic.
            Arrival::Malformed { bytes, topic, reason } => {
                let index = self.by_topic.get(&topic[..]).copied().unwrap_or(0);
                ready.push_back(self.sources[index].malformed(None, reason, bytes));
            }
        }
    }
}

impl Followed {
    fn message(
        &mut self,
        sequence: u64,
        payload: zmq::Message,
        bytes: usize,
        settings: &Settings,
        ready: &mut VecDeque<Delivery>,
    ) {
        let batch = Batch::parse(&payload).map(|batch| (batch.head(), batch.len(), observe(sequence, &batch)));
        let (observed, decoded) = match batch {
            Ok((head, events, observed)) => {
                self.figures.decoded.add(1);
                self.figures.events.add(events as u64);
                (observed, Ok(head))
            }
            Err(error) => (Observed::unreadable(sequence), Err(Malformed::Payload(error.class()))),
        };
        let verdict = self.tracker.observe(&observed);
        self.figures.tracked(self.tracker.counters());
        if verdict != Verdict::InOrder {
            ready.push_back(Delivery::Notice { source: Arc::clone(&self.source), sequence, verdict });
        }
        let duplicate = verdict == Verdict::Duplicate;
        let wanted = !duplicate || settings.deliver_duplicates;
        match decoded {
            Err(reason) => {
                let malformed = self.malformed(Some(sequence), reason, bytes);
                if wanted {
                    ready.push_back(malformed);
                }
                return;
            }
            Ok(head) if wanted => {
                let source = Arc::clone(&self.source);
                ready.push_back(Delivery::Message(Message { source, sequence, duplicate, payload, head }));
            }
            Ok(_) => {}
        }
        self.figures.received.add(1);
        self.figures.bytes.add(bytes as u64);
    }

    fn malformed(&mut self, sequence: Option<u64>, reason: Malformed, bytes: usize) -> Delivery {
        self.figures.received.add(1);
        self.figures.bytes.add(bytes as u64);
        self.figures.malformed(reason);
        self.malformed += 1;
        if is_power_of_ten(self.malformed) {
            let endpoint = &self.source.endpoint;
            crate::say::warning!(
                "{endpoint}: malformed message ({reason}), {} so far from this source",
                self.malformed
            );
        }
        Delivery::Malformed { source: Arc::clone(&self.source), sequence, reason }
    }
}

/// What the tracker wants to know. Outlines are enough: they step over what events carry, and over faults in it.
fn observe(sequence: u64, batch: &Batch<'_>) -> Observed {
    let ids = EventIds::collect(batch.outlines().map(|outline| match outline {
        Ok(outline) => outline.event_id.map_or(EventId::Absent, EventId::Id),
        Err(_) => EventId::Unreadable,
    }));
    Observed { sequence, timestamp: Some(batch.timestamp()), ids }
}
