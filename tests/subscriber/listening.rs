//! Receiving, for tests that know what comes.

use kv_events::subscriber::{Delivery, Malformed, RecvError, Settings, SourceStatus, Subscriber};
use kv_events::tracker::Verdict;
use std::time::Duration;
use test_support::publisher::{PATIENCE_MS, Publisher};

/// What a delivery comes to, in a form that compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Notice(u64, Verdict),
    Message(u64),
    Repeated(u64),
    Malformed(Option<u64>, Malformed),
    Reconnected,
}

pub const STARTED: Verdict = Verdict::Started { missed: Some(0) };

pub fn next(subscriber: &mut Subscriber) -> Delivery {
    subscriber.recv_timeout(Duration::from_millis(PATIENCE_MS as u64)).expect("something arrives")
}

pub fn told(delivery: &Delivery) -> Told {
    match delivery {
        Delivery::Notice { sequence, verdict, .. } => Told::Notice(*sequence, *verdict),
        Delivery::Message(message) if message.is_duplicate() => Told::Repeated(message.sequence()),
        Delivery::Message(message) => Told::Message(message.sequence()),
        Delivery::Reconnected { .. } => Told::Reconnected,
        Delivery::Malformed { sequence, reason, .. } => Told::Malformed(*sequence, *reason),
    }
}

/// The next `count` deliveries, and the certainty that there are no more right now.
pub fn tell(subscriber: &mut Subscriber, count: usize) -> Vec<Told> {
    let all = (0..count).map(|_| told(&next(subscriber))).collect();
    assert!(matches!(subscriber.try_recv(), Err(RecvError::Empty)));
    all
}

pub fn expect_nothing(subscriber: &mut Subscriber) {
    assert!(matches!(subscriber.recv_timeout(Duration::from_millis(1)), Err(RecvError::Empty)));
}

/// What arrives within a moment, if anything does.
pub fn next_soon(subscriber: &mut Subscriber) -> Option<Told> {
    match subscriber.recv_timeout(Duration::from_millis(1)) {
        Ok(delivery) => Some(told(&delivery)),
        Err(error) => {
            assert!(matches!(error, RecvError::Empty), "{error}");
            None
        }
    }
}

pub fn listen(publisher: &Publisher, settings: &Settings) -> Subscriber {
    let mut subscriber = Subscriber::connect([&publisher.endpoint], settings).unwrap();
    publisher.await_resubscription(|| expect_nothing(&mut subscriber));
    subscriber
}

pub fn only_source(subscriber: &Subscriber) -> SourceStatus {
    let [source] = <[SourceStatus; 1]>::try_from(subscriber.status_handle().sources()).unwrap();
    source
}
