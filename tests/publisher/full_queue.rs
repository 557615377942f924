//! A full queue: what is evicted, where the gap stands, and what never takes a place in it.

use crate::common::recorder::Recorder;
use crate::common::{Message, briefs};
use kv_events::{Before, Config, MediaSet, Object, Outcome, Publisher, Refusal, WaitStrategy};
use std::time::Duration;

fn config(capacity: usize) -> Config {
    Config::new("memory", "b").queue_capacity(capacity).wait_strategy(WaitStrategy::Park)
}

/// A publisher whose sender is held up with one message, `cleared`, in its hands.
fn paused(config: Config) -> (Publisher, Recorder) {
    let (publisher, recorder) = Recorder::start(config);
    recorder.pause(|| {
        publisher.cleared("bait");
    });
    (publisher, recorder)
}

fn put(publisher: &Publisher, key: &str, media: MediaSet) {
    assert!(publisher.committed(&Object::new("t", key), media).is_accepted());
}

/// Resumes and stops; the messages after the bait.
fn rest(publisher: &Publisher, recorder: &Recorder) -> Vec<Message> {
    recorder.resume();
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    let messages = recorder.all();
    assert_eq!(messages[0].sequence, 1);
    messages[1..].to_vec()
}

/// Accepted = published + evicted + failed + abandoned, and the sequence rule.
fn identities_hold(publisher: &Publisher, accepted: u64) {
    let status = publisher.status();
    assert_eq!(
        accepted,
        status.published_events + status.evicted_events + status.failed_events + status.abandoned_events,
        "{status:?}"
    );
    assert_eq!(status.last_sequence, status.published_batches + status.evicted_events + status.failed_events);
    assert_eq!(status.dropped_events, status.evicted_events + status.failed_events + status.abandoned_events);
}

#[test]
fn the_oldest_go_and_the_gap_stands_before_the_rest() {
    let (publisher, recorder) = paused(config(4));
    for n in 1..=10 {
        put(&publisher, &format!("e{n}"), MediaSet::CPU);
    }
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages), ["stored cpu e7", "stored cpu e8", "stored cpu e9", "stored cpu e10"]);
    assert_eq!(messages[0].sequence, 2 + 6, "six lost events take a number each");
    identities_hold(&publisher, 11);
}

#[test]
fn the_smallest_queue_keeps_the_newest() {
    // A call may have two events, so a capacity of 1 is taken as 2.
    let (publisher, recorder) = paused(config(1));
    assert_eq!(publisher.status().queue_capacity, 2);
    for n in 1..=5 {
        put(&publisher, &format!("e{n}"), MediaSet::CPU);
    }
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages), ["stored cpu e4", "stored cpu e5"]);
    assert_eq!(messages[0].sequence, 2 + 3);
    identities_hold(&publisher, 6);
}

#[test]
fn a_call_is_lost_as_a_whole_and_counts_its_events() {
    let (publisher, recorder) = paused(config(3));
    put(&publisher, "a", MediaSet::BOTH);
    put(&publisher, "b", MediaSet::CPU);
    put(&publisher, "c", MediaSet::BOTH);
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages), ["stored cpu b", "stored cpu c", "stored disk c"]);
    assert_eq!(messages[0].sequence, 2 + 2, "both events of `a` take a number");
    identities_hold(&publisher, 6);
}

#[test]
fn what_is_suppressed_takes_no_place() {
    let (publisher, recorder) = paused(config(2).emit_object_key(false));
    publisher.cleared("t1");
    for _ in 0..1000 {
        let outcome = publisher.committed(&Object::new("t", "k"), MediaSet::CPU);
        assert_eq!(outcome, Outcome::Suppressed { events: 1 });
    }
    publisher.cleared("t2");
    let messages = rest(&publisher, &recorder);
    let tenants: Vec<&str> =
        messages.iter().flat_map(|message| &message.events).map(|event| event.text("tenant_id")).collect();
    assert_eq!(tenants, ["t1", "t2"]);
    let status = publisher.status();
    assert_eq!((status.skipped_keyless_events, status.evicted_events), (1000, 0));
    assert!(status.keys_suppressed);
    identities_hold(&publisher, 3);
}

#[test]
fn the_capacity_is_exact() {
    // Also sizes that are no powers of two
    for capacity in [2, 3, 64, 1000] {
        for burst in [1, 3, 16, 40] {
            let (publisher, recorder) = paused(config(capacity).eviction_burst(burst));
            for n in 0..capacity {
                put(&publisher, &format!("{n}"), MediaSet::CPU);
            }
            assert_eq!(publisher.status().evicted_events, 0);
            put(&publisher, "one more", MediaSet::CPU);
            let evicted = burst.min(capacity);
            assert_eq!(publisher.status().evicted_events, evicted as u64, "capacity {capacity}, burst {burst}");
            let messages = rest(&publisher, &recorder);
            assert_eq!(briefs(&messages).len(), capacity + 1 - evicted);
            assert_eq!(messages[0].sequence, 2 + evicted as u64);
            identities_hold(&publisher, capacity as u64 + 2);
        }
    }
}

#[test]
fn every_call_returns_while_the_sender_stands_still() {
    let (publisher, recorder) = paused(config(8));
    let calls = 4 * 20_000;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let publisher = &publisher;
            scope.spawn(move || {
                for n in 0..calls / 4 {
                    put(publisher, &format!("{thread}/{n}"), MediaSet::CPU);
                }
            });
        }
    });
    assert_eq!(publisher.status().evicted_events, calls - 8);
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages).len(), 8);
    assert_eq!(messages[0].sequence, 2 + calls - 8);
    identities_hold(&publisher, calls + 1);
}

#[test]
fn a_message_carries_no_more_than_it_may_and_tears_no_call() {
    let (publisher, recorder) = paused(config(1000).max_batch_events(7));
    for n in 0..100 {
        put(&publisher, &format!("{n}"), if n % 3 == 0 { MediaSet::BOTH } else { MediaSet::CPU });
    }
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages).len(), 134);
    for message in &messages {
        assert!(message.events.len() <= 7);
        let twins = message.events.iter().filter(|event| event.text("medium") == "disk").count();
        let firsts = message.events.iter().filter(|event| event.text("object_key").parse::<u32>().unwrap() % 3 == 0);
        assert_eq!(firsts.count(), 2 * twins, "both events of a call stand in one message: {message:?}");
    }
}

#[test]
fn a_message_takes_no_further_call_once_it_is_large() {
    let (publisher, recorder) = paused(config(100).max_batch_bytes(3000));
    for n in 0..30 {
        put(&publisher, &format!("{n:0>1000}"), MediaSet::CPU);
    }
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages).len(), 30);
    assert!(messages.iter().all(|message| message.events.len() == 3), "1.3 KB each: the third goes past the limit");
}

#[test]
fn an_oversized_key_is_refused_whole_and_leaves_no_trace() {
    let (publisher, recorder) = paused(config(2));
    put(&publisher, "kept", MediaSet::CPU);
    let huge = "k".repeat(16 << 10);
    let outcome = publisher.changed(&Object::new("t", &huge), Before::mutation(MediaSet::CPU), MediaSet::DISK);
    assert!(matches!(outcome, Outcome::Refused(Refusal::TooLarge { bytes, .. }) if bytes > 16 << 10), "{outcome:?}");
    assert_eq!(publisher.status().refused_events, 2);
    let messages = rest(&publisher, &recorder);
    assert_eq!(briefs(&messages), ["stored cpu kept"]);
    assert_eq!(messages[0].sequence, 2);
}

#[test]
fn a_large_buffer_is_not_kept() {
    let (publisher, recorder) = Recorder::start(config(10).max_event_bytes(32 << 20).max_batch_bytes(64 << 20));
    put(&publisher, &"k".repeat(10 << 20), MediaSet::CPU);
    put(&publisher, "small", MediaSet::CPU);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    assert_eq!(briefs(&recorder.all()).len(), 2);
    let status = publisher.status();
    assert_eq!((status.pool_freed, status.pool_idle), (1, status.pool_misses), "{status:?}");
}
