//! From what arrives to the figures that are shown.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use kv_events::decode::{Event, EventError, Timestamp};

use super::WINDOW;
use super::flow::{Flow, Lag};
use super::shares::{Media, Medium, Tenant, Tenants};
use crate::out::Plain;
use crate::tail::tally::{Tallies, Tally};

/// How long a source says nothing before it is shown as silent.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// Tenants shown at most; no screen has more room.
const TOP_TENANTS: usize = 100;

/// What is known beyond the tallies.
#[derive(Debug)]
pub struct Model {
    begun: Instant,
    /// When the figures were last asked for, as far back as rates go.
    ticks: VecDeque<Instant>,
    /// By the tallies' places.
    flows: Vec<Flow>,
    tenants: Tenants,
    media: Media,
}

/// All that is shown at one time. Its text is safe to print.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    pub running: Duration,
    pub sources: Vec<SourceView>,
    pub media: Vec<Medium>,
    pub tenants: Vec<Tenant>,
    /// Tenants there are, or more than that if some were forgotten.
    pub tenant_count: usize,
    /// Events of tenants.
    pub tenant_events: u64,
    /// What a tenant's count may lack.
    pub forgotten: u64,
}

/// One source's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceView {
    pub name: String,
    pub state: State,
    pub messages_per_second: f64,
    pub events_per_second: f64,
    pub messages: u64,
    pub events: u64,
    pub lag: Option<Lag>,
    pub gaps: u64,
    pub missed: u64,
    /// Share of the events that the publisher evicted; none if nothing tells.
    pub evicted_events: Option<f64>,
    pub restarts: u64,
    pub duplicates: u64,
    pub malformed: u64,
    pub bad_events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody answers at the endpoint.
    Away,
    /// Connected, and nothing was ever said.
    Waiting,
    Live,
    /// For so long.
    Silent(Duration),
}

impl Model {
    pub fn new(now: Instant) -> Self {
        Model {
            begun: now,
            ticks: VecDeque::new(),
            flows: Vec::new(),
            tenants: Tenants::default(),
            media: Media::default(),
        }
    }

    /// A message of the source at this place in the tallies.
    pub fn message(&mut self, place: usize, timestamp: Timestamp, now: SystemTime) {
        self.flow(place).message(timestamp, now);
    }

    pub fn event(&mut self, event: &Result<Event<'_>, EventError>) {
        let (medium, envelope) = match event {
            Ok(Event::Stored(stored)) => (stored.medium, &stored.envelope),
            Ok(Event::Removed(removed)) => (removed.medium, &removed.envelope),
            Ok(Event::Cleared(cleared)) => (cleared.medium, &cleared.envelope),
            _ => return,
        };
        // `cleared` is about every medium.
        let medium = self.media.of(medium.as_ref().map_or("(any)", |medium| medium.as_str()));
        match event {
            Ok(Event::Stored(_)) => medium.stored += 1,
            Ok(Event::Removed(_)) => medium.removed += 1,
            _ => medium.cleared += 1,
        }
        if let Some(tenant) = envelope.as_ref().and_then(|envelope| envelope.tenant_id) {
            self.tenants.event(tenant);
        }
    }

    /// The figures as they are now; the window moves on.
    pub fn view(&mut self, tallies: &Tallies, away: &[String], now: Instant) -> View {
        let mut before = std::mem::take(&mut self.ticks);
        let ticks = &*before.make_contiguous();
        let sources = tallies.told().map(|(place, tally)| {
            let is_away = away.contains(&tally.endpoint);
            source(tally, self.flow(place), is_away, ticks, now)
        });
        let sources = sources.collect();
        let mut media = self.media.all().to_vec();
        media.iter_mut().for_each(|medium| medium.name = Plain(&medium.name).to_string());
        let mut tenants = self.tenants.tick(TOP_TENANTS, ticks, now);
        tenants.iter_mut().for_each(|tenant| tenant.name = Plain(&tenant.name).to_string());
        before.push_back(now);
        if before.len() > WINDOW {
            before.pop_front();
        }
        self.ticks = before;
        View {
            running: now.saturating_duration_since(self.begun),
            sources,
            media,
            tenants,
            tenant_count: self.tenants.len(),
            tenant_events: self.tenants.events,
            forgotten: self.tenants.forgotten,
        }
    }

    fn flow(&mut self, place: usize) -> &mut Flow {
        if self.flows.len() <= place {
            self.flows.resize_with(place + 1, Flow::default);
        }
        &mut self.flows[place]
    }
}

fn source(tally: &Tally, flow: &mut Flow, is_away: bool, before: &[Instant], now: Instant) -> SourceView {
    let [messages_per_second, events_per_second] = flow.tick(tally, before, now);
    let state = match flow.silence(now) {
        _ if is_away => State::Away,
        None => State::Waiting,
        Some(silence) if silence < SILENT_AFTER => State::Live,
        Some(silence) => State::Silent(silence),
    };
    let mut name = Plain(&tally.endpoint).to_string();
    if let Some(peer) = &tally.peer {
        name = format!("{name} {}", Plain(peer));
    }
    if !tally.topic.is_empty() {
        name = format!("{name} {}", Plain(&String::from_utf8_lossy(&tally.topic)));
    }
    SourceView {
        name,
        state,
        messages_per_second,
        events_per_second,
        messages: tally.messages,
        events: tally.events,
        lag: flow.tick_lag(),
        gaps: tally.gaps,
        missed: tally.missed,
        evicted_events: tally.evicted_events(),
        restarts: tally.restarts,
        duplicates: tally.duplicates,
        malformed: tally.malformed,
        bad_events: tally.errors,
    }
}
