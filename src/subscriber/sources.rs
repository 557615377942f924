//! From what one publisher sends to what is handed over.

use super::counters::{ConnectionFigures, Figures, StatusHandle};
use super::delivery::{Delivery, Malformed, Message, Source};
use super::settings::Settings;
use super::zmtp::Arrival;
use crate::decode::Batch;
use crate::log_throttle::is_power_of_ten;
use crate::tracker::{EventId, EventIds, Observed, Topics, Verdict};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Batches of more events than this are not searched for their ids: that would hold up whoever asks for a message.
const SEARCHED: usize = 100_000;

/// One publisher's topics, and what is known of them.
pub(super) struct Sources {
    endpoint: String,
    peer: Option<String>,
    connection: Arc<ConnectionFigures>,
    status: StatusHandle,
    topics: Topics,
    /// By the number that stands for it in `topics`. Number 0 is the subscription's own.
    followed: HashMap<usize, Followed>,
    by_topic: HashMap<Vec<u8>, usize>,
    next: usize,
    /// Makes room for none before then.
    full_until: Option<Instant>,
    /// What is found out late.
    late: Vec<(usize, Verdict)>,
}

struct Followed {
    source: Arc<Source>,
    figures: Arc<Figures>,
    malformed: u64,
    heard: Instant,
}

impl Sources {
    pub(super) fn new(
        endpoint: &str,
        peer: Option<String>,
        connection: &Arc<ConnectionFigures>,
        settings: &Settings,
        status: &StatusHandle,
    ) -> Self {
        let mut sources = Sources {
            endpoint: endpoint.to_owned(),
            peer,
            connection: Arc::clone(connection),
            status: status.clone(),
            topics: Topics::new(settings.base, settings.numbering),
            followed: HashMap::new(),
            by_topic: HashMap::new(),
            next: 0,
            full_until: None,
            late: Vec::new(),
        };
        sources.follow(settings.topic.subscription(), settings);
        sources
    }

    fn source(&self, topic: &[u8]) -> Arc<Source> {
        Arc::new(Source { endpoint: self.endpoint.clone(), peer: self.peer.clone(), topic: topic.to_vec() })
    }

    /// The number of the source with this topic.
    fn follow(&mut self, topic: &[u8], settings: &Settings) -> Option<usize> {
        if let Some(&index) = self.by_topic.get(topic) {
            return Some(index);
        }
        if self.followed.len() >= settings.max_topics && !self.make_room(settings) {
            return None;
        }
        let index = self.next;
        self.next += 1;
        let source = self.source(topic);
        let figures = self.status.enter(&source, &self.connection);
        self.followed.insert(index, Followed { source, figures, malformed: 0, heard: Instant::now() });
        self.by_topic.insert(topic.to_vec(), index);
        Some(index)
    }

    /// Releases the topic that was silent for longest, if that is long.
    fn make_room(&mut self, settings: &Settings) -> bool {
        let now = Instant::now();
        if self.full_until.is_some_and(|until| now < until) {
            return false;
        }
        let others = self.followed.iter().filter(|(index, _)| **index != 0);
        let Some((&index, oldest)) = others.min_by_key(|(_, followed)| followed.heard) else { return false };
        let free_at = oldest.heard.checked_add(settings.topic_idle);
        if free_at.is_none_or(|at| now < at) {
            self.full_until = free_at;
            return false;
        }
        self.full_until = None;
        self.topics.forget(index);
        if let Some(released) = self.followed.remove(&index) {
            self.by_topic.remove(&released.source.topic);
            self.status.leave(&released.figures);
        }
        true
    }

    /// Takes their figures out of the status.
    pub(super) fn leave(&self) {
        self.followed.values().for_each(|followed| self.status.leave(&followed.figures));
    }

    /// The connection was lost and is there again.
    pub(super) fn reconnected(&mut self, ready: &mut VecDeque<Delivery>) {
        let mut tell = Vec::new();
        self.topics.reconnected(&mut tell);
        for index in tell {
            let Some(followed) = self.followed.get(&index) else { continue };
            self.tracked(index);
            ready.push_back(Delivery::Reconnected { source: Arc::clone(&followed.source) });
        }
    }

    /// Takes in what has arrived: what is to be said of it goes to `ready`.
    pub(super) fn note(&mut self, arrival: Arrival, settings: &Settings, ready: &mut VecDeque<Delivery>) {
        match arrival {
            Arrival::Message { topic, .. } if !settings.topic.accepts(&topic) => {}
            Arrival::Message { topic, sequence, payload } => {
                let bytes = topic.len() as u64 + 8 + payload.len() as u64;
                match self.follow(&topic, settings) {
                    Some(index) => self.message(index, sequence, Ok(payload), bytes, settings, ready),
                    // By its own name, though nothing is known of it.
                    None => {
                        let source = self.source(&topic);
                        let told = self.malformed(0, Some(sequence), Malformed::TooManyTopics, bytes);
                        ready.extend(told.map(|told| match told {
                            Delivery::Malformed { sequence, reason, .. } => {
                                Delivery::Malformed { source, sequence, reason }
                            }
                            other => other,
                        }));
                    }
                }
            }
            Arrival::Malformed { bytes, topic, sequence: Some(sequence), reason } if settings.topic.accepts(&topic) => {
                match self.follow(&topic, settings) {
                    Some(index) => self.message(index, sequence, Err(reason), bytes, settings, ready),
                    None => ready.extend(self.malformed(0, Some(sequence), reason, bytes)),
                }
            }
            // Its first frame may be anything: only one that has messages is taken for a topic.
            Arrival::Malformed { bytes, topic, sequence, reason } => {
                let index = self.by_topic.get(&topic[..]).copied().unwrap_or(0);
                ready.extend(self.malformed(index, sequence, reason, bytes));
            }
        }
    }

    fn tracked(&self, index: usize) {
        if let Some((followed, counters)) = self.followed.get(&index).zip(self.topics.counters(index)) {
            followed.figures.tracked(counters);
        }
    }

    fn message(
        &mut self,
        index: usize,
        sequence: u64,
        payload: Result<Bytes, Malformed>,
        bytes: u64,
        settings: &Settings,
        ready: &mut VecDeque<Delivery>,
    ) {
        let Some(followed) = self.followed.get_mut(&index) else { return };
        let (source, figures) = (Arc::clone(&followed.source), Arc::clone(&followed.figures));
        followed.heard = Instant::now();
        let decoded = payload.and_then(|payload| match Batch::parse(&payload) {
            Ok(batch) => {
                let (head, events, observed) = (batch.head(), batch.len(), observe(sequence, &batch));
                Ok((payload, head, events, observed))
            }
            Err(error) => Err(Malformed::Payload(error.class())),
        });
        let observed = match &decoded {
            Ok((_, _, events, observed)) => {
                figures.decoded.add(1);
                figures.events.add(*events as u64);
                *observed
            }
            Err(_) => Observed::unreadable(sequence),
        };
        let verdict = self.topics.observe(index, &observed, &mut self.late);
        for (late, verdict) in std::mem::take(&mut self.late) {
            self.tracked(late);
            if let Some(followed) = self.followed.get(&late) {
                ready.push_back(Delivery::Notice { source: Arc::clone(&followed.source), sequence, verdict });
            }
        }
        self.tracked(index);
        if verdict != Verdict::InOrder {
            ready.push_back(Delivery::Notice { source: Arc::clone(&source), sequence, verdict });
        }
        let duplicate = verdict == Verdict::Duplicate;
        let wanted = !duplicate || settings.deliver_duplicates;
        match decoded {
            Err(reason) => {
                let malformed = self.malformed(index, Some(sequence), reason, bytes);
                ready.extend(malformed.filter(|_| wanted));
            }
            Ok((payload, head, ..)) => {
                figures.received.add(1);
                figures.bytes.add(bytes);
                if wanted {
                    ready.push_back(Delivery::Message(Message { source, sequence, duplicate, payload, head }));
                }
            }
        }
    }

    fn malformed(&mut self, index: usize, sequence: Option<u64>, reason: Malformed, bytes: u64) -> Option<Delivery> {
        let followed = self.followed.get_mut(&index)?;
        followed.figures.received.add(1);
        followed.figures.bytes.add(bytes);
        followed.figures.malformed(reason);
        followed.malformed += 1;
        if is_power_of_ten(followed.malformed) {
            let endpoint = &followed.source.endpoint;
            crate::logging::warning!(
                "{endpoint}: malformed message ({reason}), {} so far from this source",
                followed.malformed
            );
        }
        Some(Delivery::Malformed { source: Arc::clone(&followed.source), sequence, reason })
    }
}

/// What the tracker wants to know. Outlines are enough: they step over what events carry, and over faults in it.
fn observe(sequence: u64, batch: &Batch<'_>) -> Observed {
    let ids = if batch.len() > SEARCHED {
        EventIds::Unreadable
    } else {
        EventIds::collect(batch.outlines().map(|outline| match outline {
            Ok(outline) => outline.event_id.map_or(EventId::Absent, EventId::Id),
            Err(_) => EventId::Unreadable,
        }))
    };
    Observed { sequence, timestamp: Some(batch.timestamp()), ids }
}
