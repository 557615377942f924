//! What the sender does: takes calls from the front, and ends the ring.

use super::{ENDED, Entry, Held, OPEN, Ring, Taken, Taker};
use crate::faults::fault;
use crate::sync::Ordering;

impl Ring {
    /// Sender: moves the oldest calls, at most `events` events and `calls` calls, to `take`; `None` if there
    /// is none. Takes nothing across a loss if `joined`, which says that these go
    /// into the batch that was begun. A heavy call comes alone.
    pub fn take(
        &self,
        taker: &mut Taker,
        events: u64,
        calls: usize,
        joined: bool,
        mut take: impl FnMut(Held, bool),
    ) -> Option<Taken> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head & ENDED != 0 {
                return None;
            }
            let Some((mut first, next, heavy)) = self.plan(taker, head, events, calls) else {
                head = self.head.fetch_add(0, Ordering::Relaxed);
                continue;
            };
            if next == head || joined && first != taker.expected && !fault!(RingJoinsAcrossLoss) {
                return None;
            }
            loop {
                // Before the exchange, so that no one sees the calls neither here nor there, and counts them as evicted.
                let taken = self.taken.get();
                self.taken.set(taken + (next - first));
                // Release, for figures: whoever sees it sees `taken` too. Relaxed on failure: it publishes nothing else.
                match self.head.compare_exchange(head, next, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) if taker.plan.is_empty() => {
                        // Skipped positions alone: they are told with the next batch.
                        head = next;
                        break;
                    }
                    Ok(_) => {
                        let early = if fault!(GapEarly) { self.head.load(Ordering::Relaxed) - next } else { 0 };
                        let gap = first - taker.expected + early;
                        taker.expected = next + early;
                        if fault!(GapLate) {
                            taker.expected -= gap;
                            taker.plan.drain(..).for_each(|(_, index)| take(Held::of(index), heavy));
                            return Some(Taken { gap: 0, events: next - first });
                        }
                        taker.plan.drain(..).for_each(|(_, index)| take(Held::of(index), heavy));
                        return Some(Taken { gap, events: next - first });
                    }
                    Err(newer) => {
                        self.taken.set(taken);
                        head = newer;
                        // What is left of the plan holds: its words stay until `head` has passed them.
                        let gone = taker.plan.iter().take_while(|(at, _)| *at < head).count();
                        taker.plan.drain(..gone);
                        match taker.plan.first() {
                            Some(&(at, _)) if head & ENDED == 0 && !joined => first = at,
                            _ => break,
                        }
                    }
                }
            }
        }
    }

    /// Reads what could be taken: the first position, the one behind the last, and whether it is one heavy call. `None` if
    /// `head` is out of date.
    fn plan(&self, taker: &mut Taker, head: u64, events: u64, calls: usize) -> Option<(u64, u64, bool)> {
        taker.plan.clear();
        let (mut first, mut next) = (head, head);
        loop {
            match self.read(next) {
                Entry::Call { index, events: more, heavy } => {
                    let full = taker.plan.len() == calls || next + more - first > events;
                    if full || heavy && !taker.plan.is_empty() {
                        return Some((first, next, false));
                    }
                    taker.plan.push((next, index));
                    next += more;
                    if heavy {
                        return Some((first, next, true));
                    }
                }
                Entry::Skipped if taker.plan.is_empty() => {
                    next += 1;
                    first = next;
                }
                Entry::Skipped | Entry::Unwritten => return Some((first, next, false)),
                Entry::Gone => return None,
            }
        }
    }

    /// Whether nothing can be taken. Exact only if no producer is inside a push; a claim that is not written yet does not count.
    pub fn is_empty(&self) -> bool {
        // A read-modify-write: an old value could say "not empty" for ever.
        let head = self.head.fetch_add(0, Ordering::Relaxed);
        head & ENDED != 0 || matches!(self.read(head), Entry::Unwritten)
    }

    /// Takes and evicts nothing from now on; what is left is abandoned and goes to `recycle`. The ring has to be closed.
    pub fn end(&self, mut recycle: impl FnMut(Held, bool)) {
        debug_assert!(self.end.load(Ordering::Acquire) != OPEN, "close it first");
        let before = self.head.fetch_or(ENDED, Ordering::Relaxed);
        if before & ENDED != 0 {
            return;
        }
        // Calls that had no room find ENDED and keep their frames, so each slot has one position here at most. One that had
        // room writes its word before it is skipped here, or finds that it was.
        let last = self.end.load(Ordering::Acquire).min(before + self.slots.len() as u64);
        if fault!(RingEndsWithoutWalk) {
            return;
        }
        let mut at = before;
        while at < last {
            match self.read(at) {
                Entry::Call { index, events, heavy } => {
                    recycle(Held::of(index), heavy);
                    at += events;
                }
                Entry::Unwritten if !self.skip(at) => {}
                _ => at += 1,
            }
        }
    }

    /// Sender, after [`end`](Self::end): the events that were lost since the last batch, which is to be told once.
    pub fn rest(&self, taker: &mut Taker) -> u64 {
        let head = self.head.load(Ordering::Relaxed) & !ENDED;
        head - std::mem::replace(&mut taker.expected, head)
    }
}
