//! All topics of one endpoint: who numbers what, and what follows from the numbers.

use super::observed::{Base, Observed};
use super::rules::{Judgement, Tracker};
use super::verdict::{Counters, Verdict};
use std::collections::BTreeMap;

/// What a publisher with several topics counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Numbering {
    /// Found out from the numbers, see [`Topics`].
    #[default]
    Auto,
    /// Each topic's messages for themselves, as most producers do.
    Topic,
    /// All messages of the endpoint, whatever their topic (LMCache and llm-d's file store do).
    Endpoint,
}

/// Follows all topics of one endpoint, with a [`Tracker`] for each, one for all of them together, or both for as long as
/// it is open which of them is right ([`Numbering::Auto`]).
///
/// # What decides
///
/// As long as an endpoint has one topic, both ways come to the same. With several, a topic that speaks again after others
/// did is the test. If each counts for itself, it goes on from its own last number, which the others have reached or
/// passed. If all share one counter, its number is above all there were. So:
///
/// - a number that goes on above a topic's own last one, and not above the endpoint's, or a new topic whose number is not
///   above the endpoint's, decides for *each topic* at once, unless the connection was lost in between (a shared counter
///   may have begun anew then);
/// - a number above both decides for *one counter* after four such in a row; a new topic that is next in the endpoint's
///   order counts a quarter of that, since topics may be met one after the other by chance.
///
/// What was decided is changed by the same evidence, so a wrong guess does not last.
///
/// # What is told meanwhile
///
/// Nothing that is true in one way only, except that a new topic is told as [`Verdict::Started`], with the number missed
/// left open. What would be a gap in one way and order in the other is kept back until it is decided: then it is told
/// late, in front of the message that decides, or dropped because it was none. A message is withheld as a duplicate only
/// if both ways say so.
///
/// Memory: a tracker for each topic, until [`forget`](Topics::forget) releases it.
///
/// ```
/// use kv_events::decode::Timestamp;
/// use kv_events::tracker::{Base, EventIds, Numbering, Observed, Topics, Verdict};
///
/// let mut topics = Topics::new(Base::ENGINE, Numbering::Auto);
/// let mut see = |topic, sequence| {
///     let message = Observed { sequence, timestamp: Some(Timestamp::Float(1.5)), ids: EventIds::Absent };
///     let mut late = Vec::new();
///     let verdict = topics.observe(topic, &message, &mut late);
///     (verdict, late)
/// };
/// assert_eq!(see(0, 0).0, Verdict::Started { missed: Some(0) });
/// assert_eq!(see(1, 1).0, Verdict::Started { missed: None });
/// assert_eq!(see(0, 2).0, Verdict::InOrder); // a gap of one if each topic counts for itself
/// let (verdict, late) = see(1, 2); // and so it does
/// assert_eq!(verdict, Verdict::InOrder);
/// assert!(matches!(late[..], [(0, Verdict::Gap { from: 1, to: 1, .. })]));
/// ```
#[derive(Clone, Debug)]
pub struct Topics {
    base: Base,
    numbering: Numbering,
    /// What `numbering` says, or what was found out.
    found: Numbering,
    all: Tracker,
    each: BTreeMap<usize, Topic>,
    next_tag: u32,
    /// Who spoke last.
    speaker: usize,
    /// Evidence for one counter since there was some against it.
    score: u32,
    /// What is to be told should each topic count for itself.
    kept_back: Vec<(usize, Verdict)>,
    /// What is to be told should all share one counter.
    restart: Option<Verdict>,
    /// Messages since something was kept back that showed nothing.
    quiet: u32,
}

#[derive(Clone, Debug)]
struct Topic {
    /// Tells it from all others there were.
    tag: u32,
    tracker: Tracker,
    counters: Counters,
    /// It began under one counter: what to say should that have been wrong.
    start: Option<Verdict>,
}

/// For which way a message speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    None,
    Topic,
    Endpoint(u32),
}

const STRONG: u32 = 4;
const WEAK: u32 = 1;
/// Score from which all topics share one counter.
const CONVINCED: u32 = 16;
/// Messages without evidence after which what was kept back is told, if each topic counts for itself.
const QUIET: u32 = 64;
/// Most that is kept back. More than this is never in doubt for long.
const KEPT_BACK: usize = 64;

impl Topics {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new(base: Base, numbering: Numbering) -> Self {
        Topics {
            base,
            numbering,
            found: numbering,
            all: Tracker::new(base),
            each: BTreeMap::new(),
            next_tag: 0,
            speaker: 0,
            score: 0,
            kept_back: Vec::new(),
            restart: None,
            quiet: 0,
        }
    }

    /// What a message under `topic` (any number that stands for it) says about those before it. Call it once for every
    /// message of the endpoint, in the order of arrival. What is found out now of earlier messages goes to `late`, with
    /// its topic, and is to be told first.
    pub fn observe(&mut self, topic: usize, message: &Observed, late: &mut Vec<(usize, Verdict)>) -> Verdict {
        let told_before = late.len();
        self.speaker = topic;
        let verdict = match self.numbering {
            Numbering::Topic => self.enter(topic).tracker.observe(message),
            Numbering::Endpoint => {
                let tag = self.enter(topic).tag;
                self.all.observe_under(message, tag).verdict()
            }
            Numbering::Auto => self.observe_both(topic, message, late),
        };
        for (topic, verdict) in &late[told_before..] {
            if let Some(topic) = self.each.get_mut(topic) {
                topic.counters.count_late(*verdict);
            }
        }
        self.enter(topic).counters.count(message.sequence, verdict);
        verdict
    }

    /// The connection was lost and is there again, see [`Tracker::reconnected`]. The topics for which that is worth
    /// telling go to `tell`: all that have begun, or the last that spoke if all share one counter.
    pub fn reconnected(&mut self, tell: &mut Vec<usize>) {
        let all = self.all.reconnected();
        let one = self.found == Numbering::Endpoint;
        for (&index, topic) in &mut self.each {
            let has_begun = topic.tracker.reconnected();
            if if one { all && index == self.speaker } else { has_begun } {
                topic.counters.reconnections += 1;
                tell.push(index);
            }
        }
    }

    /// Releases what is known of a topic. If it speaks again, and counts for itself, it starts anew.
    pub fn forget(&mut self, topic: usize) {
        self.each.remove(&topic);
        self.kept_back.retain(|(other, _)| *other != topic);
    }

    /// How it is numbered, as far as is known: [`Numbering::Auto`] while it is open.
    #[must_use]
    pub fn found(&self) -> Numbering {
        self.found
    }

    /// What was counted under a topic, by what was told of it.
    #[must_use]
    pub fn counters(&self, topic: usize) -> Option<&Counters> {
        self.each.get(&topic).map(|topic| &topic.counters)
    }

    fn enter(&mut self, topic: usize) -> &mut Topic {
        self.each.entry(topic).or_insert_with(|| {
            self.next_tag = self.next_tag.wrapping_add(1);
            Topic { tag: self.next_tag, tracker: Tracker::new(self.base), counters: Counters::default(), start: None }
        })
    }

    fn observe_both(&mut self, index: usize, message: &Observed, late: &mut Vec<(usize, Verdict)>) -> Verdict {
        let (all_last, mut reconnected) = (self.all.last(), self.all.reconnected);
        let topic = self.enter(index);
        let own_last = topic.tracker.last();
        reconnected |= topic.tracker.reconnected;
        let by_topic = topic.tracker.observe_under(message, 0);
        let tag = topic.tag;
        let by_all = self.all.observe_under(message, tag);
        if by_topic == Judgement::Repeated || by_all == Judgement::Repeated {
            return Verdict::Duplicate;
        }
        let Some(all_last) = all_last else { return by_all.verdict() };
        let evidence = evidence(message.sequence, own_last, all_last, reconnected, by_topic.verdict());
        self.weigh(index, evidence, late);
        match self.found {
            Numbering::Endpoint => {
                if own_last.is_none() {
                    self.enter(index).start = Some(by_topic.verdict());
                }
                by_all.verdict()
            }
            _ => {
                let verdict = self.judge(index, evidence, by_topic, by_all);
                if let Verdict::Restarted { .. } = verdict {
                    // What its incarnation before lacked is of no use to anybody now.
                    self.kept_back.retain(|(other, _)| *other != index);
                }
                verdict
            }
        }
    }

    /// What to tell while each topic counts for itself, or while that is open.
    fn judge(&mut self, index: usize, evidence: Evidence, by_topic: Judgement, by_all: Judgement) -> Verdict {
        let is_open = self.found == Numbering::Auto;
        let for_all = matches!(evidence, Evidence::Endpoint(_));
        let restarts = matches!(by_all, Judgement::New(Verdict::Restarted { .. }));
        match (by_topic.verdict(), by_all) {
            (Verdict::Started { missed }, _) if is_open => {
                if restarts {
                    self.restart = Some(by_all.verdict());
                }
                Verdict::Started { missed: missed.filter(|&missed| missed == 0) }
            }
            (Verdict::InOrder, _) if is_open && restarts => {
                self.restart = Some(by_all.verdict());
                Verdict::InOrder
            }
            // Order in the one way: what it is in the other is told once that is sure.
            (Verdict::Gap { .. } | Verdict::Restarted { .. }, Judgement::New(Verdict::InOrder)) if for_all => {
                self.keep_back(index, by_topic.verdict());
                Verdict::InOrder
            }
            // A gap either way, of which the smaller one is sure.
            (Verdict::Gap { from, cause, .. }, Judgement::New(sure @ Verdict::Gap { from: sure_from, .. }))
                if for_all =>
            {
                if from < sure_from {
                    self.keep_back(index, Verdict::Gap { from, to: sure_from - 1, cause });
                }
                sure
            }
            (gap @ Verdict::Gap { .. }, _) if is_open && restarts => {
                self.keep_back(index, gap);
                self.restart = Some(by_all.verdict());
                Verdict::InOrder
            }
            (Verdict::Duplicate, Judgement::New(verdict)) if is_open || verdict == Verdict::InOrder => verdict,
            (verdict, _) => verdict,
        }
    }

    fn keep_back(&mut self, topic: usize, verdict: Verdict) {
        if self.kept_back.len() == KEPT_BACK {
            let _ = self.kept_back.remove(0);
        }
        self.kept_back.push((topic, verdict));
        self.quiet = 0;
    }

    /// Decides, if this does, and tells what was kept back until then.
    fn weigh(&mut self, speaker: usize, evidence: Evidence, late: &mut Vec<(usize, Verdict)>) {
        match evidence {
            Evidence::Topic => {
                self.score = 0;
                self.restart = None;
                self.found = Numbering::Topic;
                for (&index, topic) in &mut self.each {
                    late.extend(topic.start.take().map(|start| (index, start)));
                }
                late.append(&mut self.kept_back);
            }
            Evidence::Endpoint(weight) if self.found != Numbering::Endpoint => {
                self.score += weight;
                if self.score >= CONVINCED {
                    self.found = Numbering::Endpoint;
                    self.kept_back.clear();
                    late.extend(self.restart.take().map(|restart| (speaker, restart)));
                }
            }
            Evidence::Endpoint(_) => {}
            Evidence::None => {
                self.quiet = self.quiet.saturating_add(1);
                if self.quiet > QUIET && self.found == Numbering::Topic {
                    late.append(&mut self.kept_back);
                }
            }
        }
    }
}

/// For which way a message speaks that is no known repetition.
fn evidence(number: u64, own_last: Option<u64>, all_last: u64, reconnected: bool, by_topic: Verdict) -> Evidence {
    let next = |last: u64| last.checked_add(1) == Some(number);
    let goes_on = matches!(by_topic, Verdict::InOrder | Verdict::Gap { .. });
    match own_last {
        None if next(all_last) => Evidence::Endpoint(WEAK),
        None if number <= all_last && !reconnected => Evidence::Topic,
        Some(last) if last < all_last && number > all_last => Evidence::Endpoint(STRONG),
        Some(last) if last < all_last && goes_on && !reconnected => Evidence::Topic,
        Some(last) if last > all_last && next(last) && goes_on && !reconnected => Evidence::Topic,
        Some(last) if last > all_last && next(all_last) => Evidence::Endpoint(STRONG),
        None | Some(_) => Evidence::None,
    }
}
