//! Sends that fail, sockets that break, senders that die: what is counted, what is told, and that nothing hangs.

use crate::common::recorder::{Recorder, Verdict};
use crate::common::{Message, briefs};
use kv_events::{Config, MediaSet, Object, Outcome, Publisher, Refusal, WaitStrategy};
use std::time::Duration;

fn config() -> Config {
    Config::new("memory", "b").wait_strategy(WaitStrategy::Park)
}

fn put(publisher: &Publisher, key: &str) -> Outcome {
    publisher.committed(&Object::new("t", key), MediaSet::BOTH)
}

fn stopped(publisher: &Publisher, recorder: &Recorder) -> Vec<Message> {
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    recorder.all()
}

#[test]
fn a_failed_message_takes_a_number_for_each_event_and_its_ids_are_used_again() {
    let (publisher, recorder) = Recorder::start(config());
    put(&publisher, "a");
    recorder.messages(1);
    recorder.plan([Verdict::Fail]);
    put(&publisher, "lost");
    recorder.messages(2); // an empty message tells of the loss as soon as the sender is idle
    put(&publisher, "b");
    let messages = stopped(&publisher, &recorder);
    assert_eq!(messages.iter().map(|message| message.sequence).collect::<Vec<_>>(), [1, 4, 5]);
    assert_eq!(briefs(&messages), ["stored cpu a", "stored disk a", "stored cpu b", "stored disk b"]);
    assert!(messages[1].events.is_empty());
    let ids: Vec<u64> =
        messages.iter().flat_map(|message| &message.events).map(|event| event.number("event_id")).collect();
    assert_eq!(ids, [1, 2, 3, 4], "lost events leave no gap in the ids");
    let status = publisher.status();
    assert_eq!((status.published_events, status.failed_events, status.dropped_events), (4, 2, 2));
    assert_eq!(status.last_sequence, status.published_batches + status.failed_events);
    assert!(status.healthy);
}

#[test]
fn an_empty_message_that_fails_takes_no_number_and_is_tried_again() {
    let (publisher, recorder) = Recorder::start(config());
    recorder.plan([Verdict::Fail, Verdict::Fail, Verdict::Fail]);
    put(&publisher, "lost");
    let messages = recorder.messages(1);
    assert_eq!((messages[0].sequence, messages[0].events.len()), (3, 0));
    assert_eq!(stopped(&publisher, &recorder).len(), 1, "told once");
}

#[test]
fn a_heartbeat_does_not_hurry_an_empty_message_that_fails() {
    let (publisher, recorder) = Recorder::start(config().heartbeat_interval(Duration::from_millis(1)));
    recorder.pause(|| {
        publisher.cleared("lost");
    });
    let before = recorder.attempts().len();
    recorder.plan([Verdict::Fail, Verdict::Fail, Verdict::Fail]);
    recorder.resume();
    recorder.wait_for(recorder.wait_for(0) + 1);
    // One that was under way when the plan was made may have been a heartbeat; then the failures are those behind it.
    let attempts = recorder.attempts();
    let waits: Vec<Duration> = attempts[before - 1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let backed_off = waits.iter().filter(|wait| **wait >= Duration::from_millis(100)).count();
    assert!(backed_off >= 2, "{waits:?}");
}

#[test]
fn stop_tells_of_a_loss_as_its_last_act() {
    let (publisher, recorder) = Recorder::start(config());
    recorder.pause(|| {
        publisher.cleared("bait");
    });
    recorder.plan([Verdict::Fail]);
    let waiting = std::thread::scope(|scope| {
        let stop = scope.spawn(|| publisher.stop(Duration::from_secs(20)));
        recorder.resume();
        stop.join().unwrap()
    });
    assert!(waiting.closed);
    let messages = recorder.all();
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].sequence, messages[0].events.len()), (2, 0));
}

fn dies_of(verdict: Verdict, reason: &str) {
    let (publisher, recorder) = Recorder::start(config());
    recorder.pause(|| {
        publisher.cleared("bait");
    });
    recorder.plan([verdict]);
    put(&publisher, "left in the queue");
    recorder.resume();
    let stop = publisher.stop(Duration::from_secs(20));
    assert!(stop.closed);
    assert!(recorder.all().is_empty(), "nothing half-sent goes on");
    let status = publisher.status();
    assert!(!status.healthy && status.stopped);
    assert!(status.unhealthy_reason.as_deref().is_some_and(|said| said.contains(reason)), "{status:?}");
    assert_eq!((status.published_events, status.failed_events, status.abandoned_events), (0, 1, 2));
    assert_eq!(put(&publisher, "late"), Outcome::Refused(Refusal::SenderDead));
    assert_eq!(publisher.status().refused_events, 2);
}

#[test]
fn a_broken_socket_ends_the_sender_visibly() {
    dies_of(Verdict::Break, "planned break");
}

#[test]
fn a_panic_ends_the_sender_visibly() {
    dies_of(Verdict::Panic, "planned panic");
}

#[test]
fn calls_are_refused_as_soon_as_the_sender_is_dead_without_any_stop() {
    let (publisher, recorder) = Recorder::start(config());
    recorder.plan([Verdict::Panic]);
    let mut accepted = 0;
    loop {
        match put(&publisher, "k") {
            Outcome::Accepted { events } => accepted += u64::from(events),
            Outcome::Refused(refusal) => {
                assert_eq!(refusal, Refusal::SenderDead);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    let status = publisher.status();
    // Some may have been evicted, before the sender had its first turn.
    assert_eq!(accepted, status.published_events + status.dropped_events, "{status:?}");
    assert_eq!(recorder.all(), []);
}

#[test]
fn a_heartbeat_is_an_empty_message_with_a_number() {
    let (publisher, recorder) = Recorder::start(config().heartbeat_interval(Duration::from_millis(1)));
    let messages = recorder.messages(3);
    assert!(messages.iter().all(|message| message.events.is_empty()));
    // There may be more than were waited for.
    assert!(messages.iter().map(|message| message.sequence).eq(1..=messages.len() as u64), "{messages:?}");
    put(&publisher, "k");
    let messages = stopped(&publisher, &recorder);
    let status = publisher.status();
    assert_eq!(status.published_batches, messages.len() as u64);
    assert_eq!(messages.last().unwrap().sequence, status.last_sequence);
}

#[test]
fn each_wait_strategy_delivers_and_stops() {
    let (nap, poll) = (WaitStrategy::Nap(Duration::from_micros(50)), WaitStrategy::Poll(Duration::from_micros(200)));
    for strategy in [WaitStrategy::Park, nap, poll, WaitStrategy::Spin] {
        let (publisher, recorder) = Recorder::start(config().wait_strategy(strategy));
        for n in 1..=20 {
            put(&publisher, "k");
            recorder.messages(n);
        }
        assert_eq!(stopped(&publisher, &recorder).len(), 20, "{strategy}");
    }
}
