//! Several topics on one endpoint: whether each counts for itself or all share one counter, found out without a word that
//! is not so.

use kv_events::decode::Timestamp;
use kv_events::tracker::{Base, EventIds, GapCause, Numbering, Observed, Topics, Verdict};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Messages as an engine sends them, each with a time of its own.
struct Feed {
    topics: Topics,
    clock: f64,
    /// All that was told, late ones before the message's own.
    told: Vec<(usize, u64, Verdict)>,
}

impl Feed {
    fn new(numbering: Numbering) -> Self {
        Feed { topics: Topics::new(Base::ENGINE, numbering), clock: 1000.0, told: Vec::new() }
    }

    fn see(&mut self, topic: usize, sequence: u64) -> Verdict {
        self.clock += 0.001;
        let message = Observed { sequence, timestamp: Some(Timestamp::Float(self.clock)), ids: EventIds::Absent };
        self.see_again(topic, &message)
    }

    fn see_again(&mut self, topic: usize, message: &Observed) -> Verdict {
        let mut late = Vec::new();
        let verdict = self.topics.observe(topic, message, &mut late);
        self.told.extend(late.into_iter().map(|(topic, verdict)| (topic, message.sequence, verdict)));
        if verdict != Verdict::InOrder {
            self.told.push((topic, message.sequence, verdict));
        }
        verdict
    }

    /// What was told that is more than a topic's start.
    fn loud(&self) -> Vec<(usize, u64, Verdict)> {
        self.told.iter().copied().filter(|(_, _, verdict)| !matches!(verdict, Verdict::Started { .. })).collect()
    }

    fn missed(&self) -> u64 {
        self.told.iter().map(|(_, _, verdict)| verdict.gap_size()).sum()
    }
}

#[test]
fn one_counter_over_thirty_topics_shows_no_gap() {
    // 300 messages over 30 topics, in turn, in runs, and in no order.
    let orders: [fn(u64) -> usize; 4] =
        [|n| n as usize % 30, |n| n as usize / 10, |n| (n * n % 29) as usize, |n| (n * 7919 % 30) as usize];
    for first in [0, 57] {
        for (row, order) in orders.iter().enumerate() {
            for numbering in [Numbering::Auto, Numbering::Endpoint] {
                let mut feed = Feed::new(numbering);
                (0..300).for_each(|n| _ = feed.see(order(n), first + n));
                assert_eq!(feed.loud(), [], "order {row} from {first}");
                assert_eq!(feed.told[0].2, Verdict::Started { missed: Some(first) });
                for (_, number, verdict) in &feed.told[1..] {
                    assert_eq!(
                        *verdict,
                        Verdict::Started { missed: None },
                        "nothing is said of what may not be so: {number}"
                    );
                }
                assert_eq!(feed.told.len() == 1, numbering == Numbering::Endpoint);
                // A loss is told as what it is from then on.
                let verdict = feed.see(order(0), first + 305);
                let gap = Verdict::Gap { from: first + 300, to: first + 304, cause: GapCause::Unknown };
                // Ten runs of ten show each topic once: nothing but their order has spoken yet, and that is enough.
                assert_eq!((verdict, feed.topics.found()), (gap, Numbering::Endpoint), "order {row}");
            }
        }
    }
}

#[test]
fn counter_for_each_of_thirty_topics_shows_no_gap() {
    let orders: [fn(u64) -> usize; 4] =
        [|n| n as usize % 30, |n| n as usize / 10, |n| (n * n % 29) as usize, |n| (n * 7919 % 30) as usize];
    // Where topics are when they are met: all at 0, all alike, each elsewhere, and each one further than the one before.
    let starts: [fn(usize) -> u64; 4] = [|_| 0, |_| 57, |topic| topic as u64 * 1000 % 7919, |topic| topic as u64];
    for (row, order) in orders.iter().enumerate() {
        for (start_row, start) in starts.iter().enumerate() {
            for numbering in [Numbering::Auto, Numbering::Topic] {
                let mut feed = Feed::new(numbering);
                let mut next = BTreeMap::new();
                for n in 0..300 {
                    let number: &mut u64 = next.entry(order(n)).or_insert_with(|| start(order(n)));
                    let _ = feed.see(order(n), *number);
                    *number += 1;
                }
                assert_eq!(feed.loud(), [], "order {row}, starts {start_row}, {numbering:?}");
                if start_row < 3 {
                    let starts: BTreeSet<_> = feed.told.iter().map(|(topic, ..)| topic).collect();
                    assert_eq!((starts.len(), feed.told.len()), (next.len(), next.len()), "each start is told, once");
                }
                // A loss is told as what it is.
                let topic = order(0);
                let from = next[&topic];
                let gap = Verdict::Gap { from, to: from, cause: GapCause::Unknown };
                if numbering == Numbering::Topic || feed.topics.found() == Numbering::Topic {
                    let _ = feed.see(topic, from + 1);
                    next.insert(topic, from + 2);
                    for (&topic, &number) in &next {
                        let _ = feed.see(topic, number);
                    }
                    assert_eq!(feed.loud().iter().map(|told| (told.0, told.2)).collect::<Vec<_>>(), [(topic, gap)]);
                }
            }
        }
    }
}

#[test]
fn what_is_open_is_kept_back_and_told_when_it_is_sure() {
    // The numbers run on as if counted together, until the second topic goes on from its own.
    let mut feed = Feed::new(Numbering::Auto);
    assert_eq!(feed.see(0, 0), Verdict::Started { missed: Some(0) });
    assert_eq!(feed.see(1, 1), Verdict::Started { missed: None });
    assert_eq!(feed.see(0, 2), Verdict::InOrder);
    assert_eq!(feed.topics.found(), Numbering::Auto);
    assert_eq!(feed.see(1, 2), Verdict::InOrder);
    assert_eq!(feed.topics.found(), Numbering::Topic);
    let gap = Verdict::Gap { from: 1, to: 1, cause: GapCause::Unknown };
    assert_eq!(feed.loud(), [(0, 2, gap)]);
    assert_eq!(feed.topics.counters(0).unwrap().missed, 1);
    // And the other way: it never does, and there never was a gap.
    let mut feed = Feed::new(Numbering::Auto);
    (0..10).for_each(|n| _ = feed.see(n as usize % 2, n));
    assert_eq!((feed.topics.found(), feed.loud()), (Numbering::Endpoint, vec![]));
}

#[test]
fn gap_that_is_one_either_way_is_told_at_once() {
    let mut feed = Feed::new(Numbering::Auto);
    (0..4).for_each(|n| _ = feed.see(n as usize % 2, n));
    assert_eq!(feed.topics.found(), Numbering::Auto);
    // 3 was the last of all, 2 this topic's: 4 to 9 are missing for sure, and 3 if the topic counts for itself.
    assert_eq!(feed.see(0, 10), Verdict::Gap { from: 4, to: 9, cause: GapCause::Unknown });
    assert_eq!(feed.see(1, 4), Verdict::InOrder);
    let gaps: Vec<_> = feed.loud().iter().map(|told| told.2).collect();
    assert!(gaps.contains(&Verdict::Gap { from: 3, to: 3, cause: GapCause::Unknown }), "{gaps:?}");
}

#[test]
fn thirty_topics_that_begin_where_the_last_one_stands_are_told_apart_in_the_second_round() {
    let mut feed = Feed::new(Numbering::Auto);
    for topic in 0..30 {
        let _ = feed.see(topic, topic as u64);
    }
    assert_eq!(feed.topics.found(), Numbering::Endpoint, "nothing speaks against it");
    for topic in 0..30 {
        assert_eq!(feed.see(topic, topic as u64 + 1), Verdict::InOrder);
    }
    assert_eq!((feed.topics.found(), feed.loud()), (Numbering::Topic, vec![]));
    // Those that began unsaid are told then, with what they missed.
    for topic in 1..30 {
        assert!(feed.told.iter().any(|told| told.0 == topic && matches!(told.2, Verdict::Started { .. })), "{topic}");
    }
}

#[test]
fn shared_counter_that_begins_anew_is_a_restart_for_the_endpoint() {
    for decided in [true, false] {
        let mut feed = Feed::new(Numbering::Auto);
        let before = if decided { 40 } else { 3 };
        (0..before).for_each(|n| _ = feed.see(n as usize % 30, n));
        let mut tell = Vec::new();
        feed.topics.reconnected(&mut tell);
        assert_eq!(tell.len(), if decided { 1 } else { 3 });
        (0..60).for_each(|n| _ = feed.see(n as usize % 30, n));
        let restarts = feed.loud();
        assert!(!restarts.is_empty());
        for (_, number, verdict) in restarts {
            assert!(number < 3 && matches!(verdict, Verdict::Restarted { .. }), "{number}: {verdict:?}");
        }
        assert_eq!(feed.missed(), 0);
    }
}

#[test]
fn forgotten_topic_starts_anew_only_where_it_counts_for_itself() {
    let mut feed = Feed::new(Numbering::Endpoint);
    (0..4).for_each(|n| _ = feed.see(n as usize % 2, n));
    feed.topics.forget(0);
    assert!(feed.topics.counters(0).is_none());
    assert_eq!(feed.see(0, 4), Verdict::InOrder);
    let mut feed = Feed::new(Numbering::Topic);
    let _ = feed.see(0, 3);
    feed.topics.forget(0);
    assert_eq!(feed.see(0, 4), Verdict::Started { missed: Some(4) });
}

#[test]
fn message_of_another_topic_with_the_same_number_and_time_is_no_repetition() {
    let mut feed = Feed::new(Numbering::Auto);
    let message = Observed { sequence: 7, timestamp: Some(Timestamp::Int(5)), ids: EventIds::Absent };
    for topic in 0..30 {
        assert!(matches!(feed.see_again(topic, &message), Verdict::Started { .. }), "{topic}");
        assert_eq!(feed.see_again(topic, &message), Verdict::Duplicate);
    }
}

/// What happens next on the endpoint.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize),
    Lose(usize),
    Repeat(usize),
    LoseConnection,
    /// And set the clock by so many seconds.
    Crash(i32),
}

fn steps(topics: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (0..topics).prop_map(Step::Send),
        4 => (0..topics).prop_map(Step::Lose),
        2 => (0usize..40).prop_map(Step::Repeat),
        1 => Just(Step::LoseConnection),
        1 => (-5000..5000).prop_map(Step::Crash),
    ];
    prop::collection::vec(step, 1..300)
}

/// A publisher's counters, and what a subscriber could know of them.
#[derive(Default)]
struct Counter {
    next: u64,
    last_seen: Option<u64>,
    /// Began anew since a message was seen of it.
    anew: bool,
    lost: BTreeSet<u64>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Either kind of publisher, met anywhere, that loses messages and connections, crashes and sets its clock: no
    /// message but a repeated one is withheld, every gap told is one, and every gap there is, is told.
    #[test]
    fn either_kind_is_read_as_it_was(
        shared in any::<bool>(),
        topics in 1usize..8,
        begun in prop::collection::vec(0u64..60, 8),
        steps in steps(8),
    ) {
        let mut feed = Feed::new(Numbering::Auto);
        let mut counters: BTreeMap<usize, Counter> = BTreeMap::new();
        let of = |topic: usize| if shared { 0 } else { topic };
        let mut seen: Vec<(usize, Observed)> = Vec::new();
        let mut untold: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        let mut ever_lost: BTreeSet<(usize, u64)> = BTreeSet::new();
        let mut checked = 0;
        let mut is_sure = true;
        let closing = (0..4).flat_map(|_| (0..topics).map(Step::Send));
        for step in steps.into_iter().chain(closing) {
            match step {
                Step::Lose(topic) => {
                    let key = of(topic % topics);
                    let counter = counters.entry(key).or_insert_with(|| Counter { next: begun[key], ..Counter::default() });
                    if counter.last_seen.is_some() {
                        counter.lost.insert(counter.next);
                    }
                    counter.next += 1;
                }
                Step::LoseConnection => feed.topics.reconnected(&mut Vec::new()),
                Step::Crash(jump) => {
                    feed.topics.reconnected(&mut Vec::new());
                    feed.clock += f64::from(jump);
                    for counter in counters.values_mut() {
                        *counter = Counter { last_seen: counter.last_seen, anew: true, ..Counter::default() };
                    }
                    // A counter not met yet begins at 0 as well.
                    for (key, &begun) in begun.iter().enumerate() {
                        let counter = counters.entry(key).or_insert_with(|| Counter { next: begun, ..Counter::default() });
                        counter.next = 0;
                    }
                }
                Step::Repeat(back) => if !seen.is_empty() {
                    let (topic, message) = seen[seen.len().saturating_sub(1 + back)];
                    prop_assert_eq!(feed.see_again(topic, &message), Verdict::Duplicate);
                }
                Step::Send(topic) => {
                    let topic = topic % topics;
                    let key = of(topic);
                    let counter = counters.entry(key).or_insert_with(|| Counter { next: begun[key], ..Counter::default() });
                    let number = counter.next;
                    counter.next += 1;
                    feed.clock += 0.001;
                    let message =
                        Observed { sequence: number, timestamp: Some(Timestamp::Float(feed.clock)), ids: EventIds::Absent };
                    let verdict = feed.see_again(topic, &message);
                    if std::mem::take(&mut counter.anew) {
                        // A new life whose numbers have passed the old ones can't be told from a gap.
                        is_sure &= counter.last_seen.is_none_or(|last| number <= last);
                        // Repetitions of the life before would be a restart again.
                        seen.clear();
                    }
                    counter.last_seen = Some(number);
                    let lost = std::mem::take(&mut counter.lost);
                    seen.push((topic, message));
                    prop_assert_ne!(verdict, Verdict::Duplicate, "withheld: {:?} under {}", message, topic);
                    if !is_sure {
                        break;
                    }
                    // What is told late was lost before; this message's own verdict comes last.
                    let late = feed.told.len() - usize::from(verdict != Verdict::InOrder);
                    ever_lost.extend(lost.iter().map(|&number| (key, number)));
                    let mut lost = Some(lost);
                    if checked == late {
                        untold.entry(key).or_default().extend(lost.take().into_iter().flatten());
                    }
                    for (at, (topic, _, verdict)) in feed.told.iter().enumerate().skip(checked) {
                        if let Verdict::Gap { from, to, .. } = *verdict {
                            for number in from..=to {
                                untold.entry(of(*topic)).or_default().remove(&number);
                                prop_assert!(
                                    ever_lost.contains(&(of(*topic), number)),
                                    "false gap: {} of {} under {} ({:?})", number, of(*topic), topic, feed.topics.found()
                                );
                            }
                        }
                        // A start or a restart says that anything may be missing.
                        if let Verdict::Started { .. } | Verdict::Restarted { .. } = verdict {
                            untold.entry(of(*topic)).or_default().clear();
                        }
                        if at + 1 == late {
                            untold.entry(key).or_default().extend(lost.take().into_iter().flatten());
                        }
                    }
                    checked = feed.told.len();
                }
            }
        }
        if is_sure && feed.topics.found() != Numbering::Auto {
            for (key, untold) in untold {
                prop_assert!(untold.is_empty(), "untold: {:?} of {}", untold, key);
            }
        }
    }
}
