//! What the C ABI needs beside the calls of a master.

use super::handle::Publisher;
use super::live::DROP_DEADLINE;
use super::sweep::Sweep;
use crate::media::MediaSet;
use crate::names::{CopyNames, Names};
use crate::outcome::Outcome;

impl Publisher {
    /// One call, for names that `copy` may find to be no text.
    #[inline(always)]
    pub(crate) fn names_call(
        &self,
        names: Names<'_>,
        removed: MediaSet,
        stored: MediaSet,
        copy: impl CopyNames,
    ) -> Outcome {
        match &self.live {
            Some(live) => live.names_call(names, removed, stored, copy),
            None => Outcome::Disabled,
        }
    }

    /// What dropping the last handle does, but for freeing the memory.
    pub(crate) fn retire(&self) {
        if let Some(live) = &self.live {
            live.retire(DROP_DEADLINE);
        }
    }

    /// Whether calls publish: it was started, and neither stopped nor did its sender die.
    pub(crate) fn is_open(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.shared.pipe.check_open().is_ok())
    }

    /// Counts events that were refused before they could become a call; false if disabled.
    pub(crate) fn count_refused(&self, events: u8) -> bool {
        if let Some(live) = &self.live {
            live.refused.add(events.into());
        }
        self.is_enabled()
    }
}

impl Sweep {
    pub(crate) const fn publisher(&self) -> &Publisher {
        &self.publisher
    }
}
