//! The last messages of a source, so that a repeated one is known for what it is.

use super::{EventIds, Observed};
use std::collections::VecDeque;

/// How many messages are remembered.
pub(super) const REMEMBERED: usize = 256;

/// The last [`REMEMBERED`] messages of a life, by rising number.
#[derive(Clone, Debug, Default)]
pub(super) struct History(VecDeque<Observed>);

/// How the ids of a message at or below the last number fit to what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// This very message was seen.
    Repeated,
    /// Nothing speaks against its being an old message of this life.
    Fits,
    /// No message of this life can have this number and these ids.
    Foreign,
}

impl History {
    pub(super) fn push(&mut self, message: Observed) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(message);
    }

    /// `message` has a number at or below the last one; the ids are a witness only if `ids_count`.
    pub(super) fn fit(&self, message: &Observed, ids_count: bool) -> Fit {
        let position = self.0.binary_search_by_key(&message.sequence, |seen| seen.sequence);
        if let Ok(seen) = position.map(|at| self.0[at]) {
            if seen == *message {
                return Fit::Repeated;
            }
            // Where ids are dense, a repeated message has the ids and the timestamp it had. Other ones under its
            // number are a publisher's that began anew, perhaps with its clock set back.
            if ids_count
                && matches!(seen.ids, EventIds::Dense { .. } | EventIds::Empty)
                && message.ids.range().is_some()
            {
                return Fit::Foreign;
            }
        }
        let Some((first, end)) = message.ids.range().filter(|_| ids_count) else { return Fit::Fits };
        // A number that was missed, or whose ids are unknown, must fit between its neighbours. One from before
        // everything that is remembered has only its going back to be judged by.
        let (below, above) = match position {
            Ok(at) => (at, at + 1),
            Err(at) => (at, at),
        };
        let neighbour_below = self.0.range(..below).rev().find_map(|seen| seen.ids.range());
        let neighbour_above = self.0.range(above..).find_map(|seen| seen.ids.range());
        if below == 0 && position.is_err() && neighbour_above.is_some() {
            return Fit::Foreign;
        }
        let fits_below = neighbour_below.is_none_or(|(_, end_below)| end_below <= first);
        let fits_above = neighbour_above.is_none_or(|(first_above, _)| end <= first_above);
        if fits_below && fits_above { Fit::Fits } else { Fit::Foreign }
    }
}
