//! A subscriber that rebuilds the master's view from the stream, and takes a snapshot where the stream says that something
//! is missing, and nowhere else.

use crate::numbering::Numbering;
use crate::recording_publisher::Ledger;
use crate::view::View;
use crate::{Failures, IN_BAND_TENANT, PROBE, SENTINEL, histogram, record};
use hdrhistogram::Histogram;
use kv_events::Medium;
use kv_events::decode::{Batch, Event};
use std::ops::Deref;

/// A message as it came in.
#[derive(Debug)]
pub struct Message<P> {
    pub sequence: u64,
    pub payload: P,
    /// Time of arrival since the start, ns.
    pub arrived_ns: u64,
}

/// What the follower has come across.
#[derive(Debug)]
pub struct Heard {
    pub gaps_seen: u64,
    pub resyncs: u64,
    pub checkpoints: u64,
    /// Age of the object events on arrival, us.
    pub receive_us: Histogram<u64>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Follower<'a> {
    view: View,
    numbering: Numbering<'a>,
    last: Option<u64>,
    in_band: Vec<&'static str>,
    heard: Heard,
}

impl<'a> Follower<'a> {
    /// Follows the stream of the producers that keep these ledgers. `last` is the sequence before the first message, if it
    /// is known.
    pub fn new(ledgers: &'a [Ledger], last: Option<u64>) -> Self {
        let heard = Heard { gaps_seen: 0, resyncs: 0, checkpoints: 0, receive_us: histogram() };
        Follower { view: View::default(), numbering: Numbering::new(ledgers), last, in_band: Vec::new(), heard }
    }

    /// The last sequence received.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Events received, those in no figure aside.
    pub fn received(&self) -> u64 {
        self.numbering.received()
    }

    /// Events missed: the sum of all gaps.
    pub fn missed(&self) -> u64 {
        self.numbering.gaps()
    }

    /// Whether something was wrong.
    pub fn has_failed(&self) -> bool {
        self.numbering.has_failed()
    }

    /// Something is wrong that the follower itself cannot see.
    pub fn fail(&mut self, text: impl FnOnce() -> String) {
        self.numbering.fail(text);
    }

    /// Whether the probe, or the sentinel, has come in.
    pub fn has_heard(&self, key: &str) -> bool {
        self.in_band.contains(&key)
    }

    /// What the follower has come across; what was wrong goes to `failures`.
    pub fn end(self, failures: &mut Failures) -> Heard {
        failures.merge(self.numbering.into_failures());
        self.heard
    }

    /// Takes all messages in hand, in order. If there are gaps among them, one snapshot is taken for the last: the message
    /// that revealed it and all behind it are applied; those in front were sent before the snapshot was taken, so they are
    /// in it and only counted.
    pub fn take<P: Deref<Target = [u8]>>(&mut self, in_hand: &[Message<P>], snapshot: impl FnOnce() -> View) {
        let mut last = self.last;
        let mut last_gap = None;
        for (at, message) in in_hand.iter().enumerate() {
            if gap(last, message.sequence).is_some_and(|gap| gap > 0) {
                last_gap = Some(at);
            }
            last = Some(message.sequence);
        }
        if last_gap.is_some() {
            self.view = snapshot();
            self.heard.resyncs += 1;
        }
        for (at, message) in in_hand.iter().enumerate() {
            let gap = gap(self.last, message.sequence);
            self.last = Some(message.sequence);
            self.numbering.begin_message(message.sequence, gap.unwrap_or(0));
            match gap {
                None => self.numbering.fail(|| "the sequence did not rise".into()),
                Some(0) => {}
                Some(_) => self.heard.gaps_seen += 1,
            }
            self.read(message, last_gap.is_none_or(|gap| at >= gap));
            self.numbering.end_message();
        }
    }

    /// The view has to be the master's now, and every event has to be accounted for, without another resync.
    pub fn checkpoint(&mut self, master: &View) {
        self.heard.checkpoints += 1;
        self.compare(master);
    }

    /// The same, at the end.
    pub fn compare(&mut self, master: &View) {
        if self.view != *master {
            let difference = self.view.first_difference(master);
            self.numbering.fail(|| difference.unwrap_or_else(|| "the views differ".into()));
        }
        self.numbering.settled();
    }

    fn read<P: Deref<Target = [u8]>>(&mut self, message: &Message<P>, apply: bool) {
        let batch = match Batch::parse(&message.payload) {
            Ok(batch) => batch,
            Err(error) => return self.numbering.fail(|| format!("the payload cannot be read: {error}")),
        };
        for event in batch.events() {
            match event {
                Ok(event) => self.hear(&event, message.arrived_ns, apply),
                Err(error) => self.numbering.fail(|| format!("an event cannot be read: {error}")),
            }
        }
    }

    fn hear(&mut self, event: &Event<'_>, arrived_ns: u64, apply: bool) {
        let envelope = event.envelope().map(|envelope| (envelope.tenant_id, envelope.object_key, envelope.group_id));
        let Some((Some(tenant), key, group)) = envelope else {
            return self.numbering.fail(|| format!("an event without a tenant: {event:?}"));
        };
        if tenant == IN_BAND_TENANT {
            match [PROBE, SENTINEL].into_iter().find(|known| key == Some(known)) {
                Some(known) if !self.has_heard(known) => self.in_band.push(known),
                _ => {}
            }
            return;
        }
        let (is_stored, medium) = match event {
            Event::Stored(stored) => (true, stored.medium),
            Event::Removed(removed) => (false, removed.medium),
            _ => {
                self.numbering.cleared();
                if apply {
                    self.view.cleared(tenant);
                }
                return;
            }
        };
        if let Some(ns) = self.numbering.object(group) {
            record(&mut self.heard.receive_us, arrived_ns.saturating_sub(ns) / 1000);
        }
        let medium = Medium::ALL.into_iter().find(|known| medium.is_some_and(|medium| medium == known.as_str()));
        let (Some(key), Some(medium)) = (key, medium) else {
            return self.numbering.fail(|| format!("an event without a key or a medium: {event:?}"));
        };
        match (apply, is_stored) {
            (false, _) => {}
            (true, true) => self.view.stored(tenant, key, medium),
            (true, false) => self.view.removed(tenant, key, medium),
        }
    }
}

/// Numbers missing between two messages; `None` if the second is not behind the first. Whatever came before the first
/// message of all is not missed.
fn gap(last: Option<u64>, sequence: u64) -> Option<u64> {
    match last {
        None => Some(0),
        Some(last) => sequence.checked_sub(last)?.checked_sub(1),
    }
}
