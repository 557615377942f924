//! What arrived, added up.

use std::time::Instant;

use kv_events::decode::{Event, EventError};
use kv_events::subscriber::Delivery;
use kv_events::tracker::{GapCause, Verdict};
use serde::Serialize;

/// One source's figures. Duplicates count as such and in nothing else.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    #[serde(skip)]
    pub endpoint: String,
    /// Who it is of those connected to an endpoint that was bound.
    #[serde(skip)]
    pub peer: Option<String>,
    #[serde(skip)]
    pub topic: Vec<u8>,
    /// Messages that took a number, readable or not.
    pub messages: u64,
    /// Events, the bad ones included.
    pub events: u64,
    pub stored: u64,
    pub removed: u64,
    pub cleared: u64,
    /// Bad events.
    pub errors: u64,
    pub malformed: u64,
    pub gaps: u64,
    /// Numbers in all gaps; what was missed before the start is told there.
    pub missed: u64,
    /// Those of them that the publisher is known to have evicted: each is one event.
    #[serde(skip)]
    pub evicted: u64,
    /// Those that got lost on the way: each is a message or an event, and nothing tells which.
    #[serde(skip)]
    pub lost: u64,
    /// Whether events have ids, as a master's have: then a number is not always a message.
    #[serde(skip)]
    has_ids: bool,
    pub duplicates: u64,
    pub restarts: u64,
    pub first_sequence: Option<u64>,
    pub last_sequence: Option<u64>,
    /// From the first to the last message.
    pub seconds: f64,
    #[serde(skip)]
    begun: Option<Instant>,
    /// The number of the duplicate that the last notice was about.
    #[serde(skip)]
    repeated: Option<u64>,
}

impl Tally {
    pub fn notice(&mut self, sequence: u64, verdict: Verdict) {
        self.repeated = (verdict == Verdict::Duplicate).then_some(sequence);
        match verdict {
            Verdict::Gap { cause, .. } => {
                self.gaps += 1;
                let size = verdict.gap_size();
                self.missed = self.missed.saturating_add(size);
                match cause {
                    GapCause::Evicted => self.evicted = self.evicted.saturating_add(size),
                    GapCause::Lost => self.lost = self.lost.saturating_add(size),
                    GapCause::Unknown => {}
                }
            }
            Verdict::Duplicate => self.duplicates += 1,
            Verdict::Restarted { .. } => self.restarts += 1,
            Verdict::Started { .. } | Verdict::InOrder => {}
        }
    }

    pub fn message(&mut self, sequence: u64, is_duplicate: bool) {
        if !is_duplicate {
            self.number(sequence);
        }
    }

    pub fn malformed(&mut self, sequence: Option<u64>) {
        self.malformed += 1;
        if let Some(sequence) = sequence {
            if self.repeated != Some(sequence) {
                self.number(sequence);
            }
        }
    }

    pub fn event(&mut self, event: &Result<Event<'_>, EventError>) {
        self.events += 1;
        self.has_ids |= event.as_ref().is_ok_and(|event| event.event_id().is_some());
        match event {
            Ok(Event::Stored(_)) => self.stored += 1,
            Ok(Event::Removed(_)) => self.removed += 1,
            Ok(Event::Cleared(_)) => self.cleared += 1,
            Ok(_) => {}
            Err(_) => self.errors += 1,
        }
    }

    fn number(&mut self, sequence: u64) {
        self.repeated = None;
        self.messages += 1;
        self.first_sequence.get_or_insert(sequence);
        self.last_sequence = Some(sequence);
        self.seconds = self.begun.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
    }

    /// Share of the events that the publisher evicted, of those and the ones received. None where events have no ids, which
    /// would tell of it.
    pub fn evicted_events(&self) -> Option<f64> {
        self.has_ids.then(|| share(self.evicted, self.events))
    }

    /// Share of the messages that were missed, where it is known: where events have no ids every number is a message.
    pub fn missed_messages(&self) -> Option<f64> {
        (!self.has_ids && self.events > 0).then(|| share(self.missed, self.messages))
    }

    /// Numbers missed for reasons that nothing tells.
    pub fn unexplained(&self) -> u64 {
        self.missed - self.evicted.saturating_add(self.lost).min(self.missed)
    }
}

/// How much of both together was missed.
fn share(missed: u64, received: u64) -> f64 {
    match missed.saturating_add(received) {
        0 => 0.0,
        all => missed as f64 / all as f64,
    }
}

/// All sources' figures, in the order of the endpoints, then of appearance, and how much more is to be counted.
pub struct Tallies {
    sources: Vec<Tally>,
    /// Events until the limit.
    left: Option<u64>,
}

impl Tallies {
    pub fn new(endpoints: &[String], topic: &str, limit: Option<u64>) -> Self {
        let silent = |endpoint: &String| Tally {
            endpoint: endpoint.clone(),
            topic: topic.as_bytes().to_vec(),
            ..Tally::default()
        };
        Tallies { sources: endpoints.iter().map(silent).collect(), left: limit }
    }

    /// Counts what was delivered, but for a message's events. Returns the source's place.
    pub fn count(&mut self, delivery: &Delivery) -> usize {
        let source = match delivery {
            Delivery::Notice { source, .. } | Delivery::Malformed { source, .. } | Delivery::Reconnected { source } => {
                source
            }
            Delivery::Message(message) => message.source(),
        };
        let place = self.place(source.endpoint(), source.peer(), source.topic());
        let tally = &mut self.sources[place];
        match delivery {
            Delivery::Notice { sequence, verdict, .. } => tally.notice(*sequence, *verdict),
            Delivery::Reconnected { .. } => {}
            Delivery::Malformed { sequence, .. } => tally.malformed(*sequence),
            Delivery::Message(message) => tally.message(message.sequence(), message.is_duplicate()),
        }
        place
    }

    /// Counts an event of a message of the source at this place. Says whether the limit is reached.
    pub fn count_event(&mut self, place: usize, is_duplicate: bool, event: &Result<Event<'_>, EventError>) -> bool {
        if !is_duplicate {
            self.sources[place].event(event);
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        self.is_full()
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Where the source's figures stand from now on.
    pub fn place(&mut self, endpoint: &str, peer: Option<&str>, topic: &[u8]) -> usize {
        let known = |tally: &Tally| tally.endpoint == endpoint && tally.peer.as_deref() == peer && tally.topic == topic;
        self.sources.iter().position(known).unwrap_or_else(|| {
            let (endpoint, peer) = (endpoint.to_owned(), peer.map(str::to_owned));
            self.sources.push(Tally { endpoint, peer, topic: topic.to_vec(), ..Tally::default() });
            self.sources.len() - 1
        })
    }

    /// Those to tell of, and their places: an endpoint that said nothing under the topic subscribed to, but under longer
    /// ones, is left out.
    pub fn told(&self) -> impl Iterator<Item = (usize, &Tally)> {
        self.sources.iter().enumerate().filter(|(_, tally)| {
            let is_silent = tally.messages == 0 && tally.malformed == 0;
            let others = || {
                self.sources
                    .iter()
                    .any(|o| o.endpoint == tally.endpoint && (o.topic != tally.topic || o.peer != tally.peer))
            };
            !is_silent || !others()
        })
    }
}

#[cfg(test)]
impl std::ops::IndexMut<usize> for Tallies {
    fn index_mut(&mut self, place: usize) -> &mut Tally {
        &mut self.sources[place]
    }
}

#[cfg(test)]
impl std::ops::Index<usize> for Tallies {
    type Output = Tally;

    fn index(&self, place: usize) -> &Tally {
        &self.sources[place]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn see(tally: &mut Tally, events: u64, event: &Value) {
        let bytes = rmp_serde::to_vec(event).unwrap();
        (0..events).for_each(|_| tally.event(&Event::parse(&bytes)));
    }

    fn miss(tally: &mut Tally, numbers: u64, cause: GapCause) {
        tally.notice(numbers + 1, Verdict::Gap { from: 1, to: numbers, cause });
    }

    #[test]
    fn what_a_master_evicted_is_a_share_of_its_events_and_nothing_else_is() {
        let mut tally = Tally::default();
        (1..=3).for_each(|number| tally.message(number, false));
        see(&mut tally, 80, &json!({"event_type": "cleared", "event_id": 1}));
        miss(&mut tally, 20, GapCause::Evicted);
        miss(&mut tally, 7, GapCause::Lost);
        miss(&mut tally, 5, GapCause::Unknown);
        assert_eq!((tally.evicted_events(), tally.missed_messages()), (Some(0.2), None));
        assert_eq!((tally.missed, tally.evicted, tally.lost, tally.unexplained()), (32, 20, 7, 5));
    }

    #[test]
    fn what_was_missed_of_an_engine_is_a_share_of_its_messages() {
        let mut tally = Tally::default();
        assert_eq!((tally.evicted_events(), tally.missed_messages()), (None, None));
        tally.message(4, false);
        see(&mut tally, 80, &json!(["AllBlocksCleared"]));
        miss(&mut tally, 3, GapCause::Unknown);
        assert_eq!((tally.evicted_events(), tally.missed_messages()), (None, Some(0.75)));
    }
}
