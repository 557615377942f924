//! What stands in for a live publisher in a build without a socket: there never is one.

use crate::event::{MediaSet, Object, Outcome};
#[cfg(feature = "capi")]
use crate::names::{CopyNames, Names};
use crate::status::{Status, StopReport};
use std::time::Duration;

/// No value of it exists.
#[derive(Debug)]
pub(super) enum Live {}

/// No sweep is ever registered.
#[derive(Debug)]
pub(super) enum SweepToken {}

impl Live {
    pub(super) fn object_call(&self, _: &Object<'_>, _: MediaSet, _: MediaSet) -> Outcome {
        match *self {}
    }

    #[cfg(feature = "capi")]
    pub(super) fn names_call(&self, _: Names<'_>, _: MediaSet, _: MediaSet, _: impl CopyNames) -> Outcome {
        match *self {}
    }

    pub(super) fn cleared(&self, _: &str) -> Outcome {
        match *self {}
    }

    #[cfg(feature = "capi")]
    pub(super) fn is_open(&self) -> bool {
        match *self {}
    }

    #[cfg(feature = "capi")]
    pub(super) fn count_refused(&self, _: u8) {
        match *self {}
    }

    pub(super) fn begin_sweep(&self, _: &str) -> Result<Option<SweepToken>, ()> {
        match *self {}
    }

    pub(super) fn cancel_sweep(&self, token: SweepToken) {
        match token {}
    }

    pub(super) fn end_sweep(&self, _: Option<SweepToken>, _: &str) -> Option<Outcome> {
        match *self {}
    }

    pub(super) fn endpoint(&self) -> &str {
        match *self {}
    }

    pub(super) fn status(&self) -> Status {
        match *self {}
    }

    pub(super) fn stop(&self, _: Duration) -> StopReport {
        match *self {}
    }

    pub(super) fn retire(&self, _: Duration) {
        match *self {}
    }

    pub(super) fn free(self) {
        match self {}
    }
}
