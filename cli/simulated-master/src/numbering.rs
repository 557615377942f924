//! What the numbers say: those of the producers' events, in `group_id`, against those of the messages.

use crate::Failures;
use crate::recording_publisher::Ledger;

/// What is known of one producer's object events.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// The last number received, counting the second event of a call.
    last: u64,
    /// The `n` it came with.
    call: u64,
    /// Whether it came in the message at hand.
    in_message: bool,
}

/// The numbering checks, made at every message:
///
/// - The events missing so far by the producers' numbers are at most the gaps so far: no loss before its gap.
/// - Within a message each producer's numbers are dense: no gap inside a message.
/// - A producer's numbers rise, and the two events of a call come one behind the other: order kept, no call torn.
/// - With one producer, at a message that holds an object event, gaps minus missing is the number of `cleared` lost so
///   far, to the event: no gap before its loss, none without one.
#[derive(Debug)]
pub struct Numbering<'a> {
    ledgers: &'a [Ledger],
    producers: Vec<Heard>,
    /// The producer and call of the event before this one in the message.
    before: Option<(usize, u64)>,
    /// With one producer: the number of the last object event of the message, and how many `cleared` came before it.
    last_of_sole: Option<(u64, u64)>,
    sequence: u64,
    gaps: u64,
    missing: u64,
    cleared: u64,
    objects: u64,
    failures: Failures,
}

impl<'a> Numbering<'a> {
    /// For as many producers as there are ledgers.
    pub fn new(ledgers: &'a [Ledger]) -> Self {
        Numbering {
            ledgers,
            producers: vec![Heard::default(); ledgers.len()],
            before: None,
            last_of_sole: None,
            sequence: 0,
            gaps: 0,
            missing: 0,
            cleared: 0,
            objects: 0,
            failures: Failures::default(),
        }
    }

    /// Events received, those in no figure aside.
    pub fn received(&self) -> u64 {
        self.objects + self.cleared
    }

    /// The sum of all gaps.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Whether a check has failed.
    pub fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    pub fn into_failures(self) -> Failures {
        self.failures
    }

    /// A message begins; `gap` numbers before it are missing.
    pub fn begin_message(&mut self, sequence: u64, gap: u64) {
        self.sequence = sequence;
        self.gaps += gap;
        self.before = None;
        self.last_of_sole = None;
        self.producers.iter_mut().for_each(|heard| heard.in_message = false);
    }

    /// An object event; returns its call's time since the start in ns.
    pub fn object(&mut self, group: Option<&str>) -> Option<u64> {
        let Some((producer, call, ns)) =
            group.and_then(parse).filter(|(producer, ..)| *producer < self.producers.len())
        else {
            self.fail(|| format!("group_id {group:?} is no producer's"));
            return None;
        };
        self.objects += 1;
        let heard = &mut self.producers[producer];
        let was = *heard;
        let number = if call == was.call { call + 1 } else { call };
        *heard = Heard { last: number.max(was.last), call, in_message: true };
        if call == was.call && self.before != Some((producer, call)) {
            self.fail(|| format!("the call {call} of producer {producer} is torn"));
        }
        if number <= was.last {
            self.fail(|| format!("producer {producer}: event {number} came after event {}", was.last));
        } else {
            let missing = number - was.last - 1;
            self.missing += missing;
            if missing > 0 && was.in_message {
                self.fail(|| format!("producer {producer}: events after {} are missing inside the message", was.last));
            }
        }
        self.before = Some((producer, call));
        self.last_of_sole = Some((number, self.cleared));
        Some(ns)
    }

    /// A `cleared`.
    pub fn cleared(&mut self) {
        self.cleared += 1;
        self.before = None;
    }

    /// The message has ended.
    pub fn end_message(&mut self) {
        let (gaps, missing) = (self.gaps, self.missing);
        if missing > gaps {
            self.fail(|| format!("{missing} events are missing by now, the gaps told of {gaps}"));
        }
        if let ([ledger], Some((number, cleared))) = (self.ledgers, self.last_of_sole) {
            let said = ledger.read().cleared_after.partition_point(|after| *after < number) as u64;
            if said.checked_sub(cleared) != gaps.checked_sub(missing) {
                self.fail(|| {
                    format!(
                        "{gaps} lost by the gaps, {missing} by the numbers; {said} cleared sent, {cleared} received"
                    )
                });
            }
        }
    }

    /// Everything that was said has arrived or is in a gap.
    pub fn settled(&mut self) {
        let accepted: u64 = self.ledgers.iter().map(|ledger| ledger.read().accepted()).sum();
        let (received, gaps) = (self.received(), self.gaps);
        if accepted != received + gaps {
            self.fail(|| format!("of {accepted} events {received} arrived, the gaps told of {gaps}"));
        }
    }

    pub fn fail(&mut self, text: impl FnOnce() -> String) {
        let sequence = self.sequence;
        self.failures.add(|| format!("at message {sequence}: {}", text()));
    }
}

/// `p<producer>:<n>:<ns>`.
fn parse(group: &str) -> Option<(usize, u64, u64)> {
    let mut parts = group.strip_prefix('p')?.split(':');
    let parsed = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as gap and events: `Some(n)` of producer 0 (`Some(-n)`: of producer 1), `None` a `cleared`.
    fn failures(producers: usize, cleared_after: &[u64], messages: &[(u64, &[Option<i64>])]) -> bool {
        let ledgers: Vec<Ledger> = (0..producers).map(|_| Ledger::default()).collect();
        ledgers[0].read().cleared_after = cleared_after.to_vec();
        let mut numbering = Numbering::new(&ledgers);
        for (sequence, (gap, events)) in messages.iter().enumerate() {
            numbering.begin_message(sequence as u64, *gap);
            for event in *events {
                match event {
                    Some(n) => {
                        let group = format!("p{}:{}:7", u8::from(*n < 0), n.abs());
                        assert_eq!(numbering.object(Some(&group)), Some(7));
                    }
                    None => numbering.cleared(),
                }
            }
            numbering.end_message();
        }
        !numbering.into_failures().is_empty()
    }

    #[test]
    fn what_is_right_passes() {
        assert!(!failures(1, &[], &[(0, &[Some(1), Some(2), Some(2)]), (2, &[Some(6)])]));
        assert!(!failures(1, &[2], &[(0, &[Some(1), Some(2), None, Some(3)])]));
        assert!(!failures(1, &[2], &[(0, &[Some(1)]), (2, &[Some(3)])]), "an event and a cleared were lost");
        assert!(
            !failures(2, &[], &[(0, &[Some(1), Some(-1)]), (3, &[Some(3), Some(-2)])]),
            "more lost than is known yet"
        );
    }

    #[test]
    fn what_is_wrong_is_found() {
        assert!(failures(1, &[], &[(0, &[Some(1)]), (0, &[Some(3)])]), "a loss without its gap");
        assert!(failures(1, &[], &[(1, &[Some(1)]), (0, &[Some(3)])]), "a gap before its loss");
        assert!(failures(1, &[], &[(1, &[Some(1), Some(3)])]), "a gap inside a message");
        assert!(failures(2, &[], &[(1, &[Some(1), Some(-1), Some(3)])]), "the same among two producers");
        assert!(failures(1, &[], &[(0, &[Some(2)])]), "the first one lost");
        assert!(failures(1, &[], &[(0, &[Some(1), Some(2)]), (0, &[Some(2)])]), "a torn call");
        assert!(failures(2, &[], &[(0, &[Some(1), Some(-1), Some(1)])]), "a torn call within a message");
        assert!(failures(2, &[], &[(0, &[Some(2), Some(1)]), (1, &[])]), "out of order");
        assert!(failures(1, &[1], &[(0, &[Some(1), Some(2)])]), "a cleared lost without a gap");
    }

    #[test]
    fn groups_of_others_are_told_apart() {
        for group in ["", "p", "p0:1", "p0:1:2:3", "0:1:2", "p0:x:2", "p-1:1:2"] {
            assert_eq!(parse(group), None, "{group}");
        }
        assert_eq!(parse("p3:1:20"), Some((3, 1, 20)));
    }
}
