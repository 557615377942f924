//! The last messages of an incarnation, so that a repeated one is known for what it is.

use super::ids::EventIds;
use super::observed::Observed;
use crate::decode::Timestamp;
use std::collections::VecDeque;

/// How many messages are remembered.
pub(super) const REMEMBERED: usize = 1024;

/// The last [`REMEMBERED`] messages of an incarnation, by rising number. It grows with what it holds.
#[derive(Clone, Debug, Default)]
pub(super) struct History(VecDeque<Seen>);

/// A message, in 40 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    sequence: u64,
    time: Time,
    ids: Ids,
    topic: u32,
}

/// A timestamp, such that the same one is equal to itself whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    None,
    Int { low: u64, negative: bool },
    Float(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ids {
    Unreadable,
    Empty,
    Absent,
    Dense { first: u64, count: u32 },
    Scattered,
}

impl Seen {
    fn new(message: &Observed, topic: u32) -> Self {
        let time = match message.timestamp {
            None => Time::None,
            // Whatever is read from the wire has 64 bits and a sign.
            Some(Timestamp::Int(value)) => Time::Int { low: value as u64, negative: value < 0 },
            Some(Timestamp::Float(value)) => Time::Float(value.to_bits()),
        };
        let ids = match message.ids {
            EventIds::Unreadable => Ids::Unreadable,
            EventIds::Empty => Ids::Empty,
            EventIds::Absent => Ids::Absent,
            // No message holds more events than this.
            EventIds::Dense { first, count } => Ids::Dense { first, count: u32::try_from(count).unwrap_or(u32::MAX) },
            EventIds::Scattered => Ids::Scattered,
        };
        Seen { sequence: message.sequence, time, ids, topic }
    }

    fn range(&self) -> Option<(u128, u128)> {
        match self.ids {
            Ids::Dense { first, count } => Some((first.into(), u128::from(first) + u128::from(count))),
            _ => None,
        }
    }
}

/// What is remembered of a message at or below the last number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// This very message was seen.
    Same,
    /// Another one was seen under this number, or none of this incarnation can have this number and these ids.
    Other,
    /// Nothing is known that speaks for either.
    Unknown,
}

impl History {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, message: &Observed, topic: u32) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Seen::new(message, topic));
    }

    /// `message` has a number at or below the last one; the ids are a witness only if `ids_count`.
    pub(super) fn recall(&self, message: &Observed, topic: u32, ids_count: bool) -> Memory {
        let new = Seen::new(message, topic);
        let at = match self.0.binary_search_by_key(&message.sequence, |seen| seen.sequence) {
            Ok(at) if self.0[at] == new => return Memory::Same,
            Ok(_) => return Memory::Other,
            Err(at) => at,
        };
        let Some((first, end)) = new.range().filter(|_| ids_count) else { return Memory::Unknown };
        // A number that was missed must fit between its neighbours. One from before everything that is remembered has
        // only its going back to be judged by.
        let below = self.0.range(..at).rev().find_map(Seen::range);
        let above = self.0.range(at..).find_map(Seen::range);
        let fits_below = below.is_none_or(|(_, end_below)| end_below <= first);
        let fits_above = above.is_none_or(|(first_above, _)| at > 0 && end <= first_above);
        if fits_below && fits_above { Memory::Unknown } else { Memory::Other }
    }
}
