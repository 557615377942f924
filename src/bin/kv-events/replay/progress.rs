//! How far it is, on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::out;

/// Draws so often a second at most, but for a short burst now and then.
const HERTZ: u8 = 4;

/// A bar on the standard error, there from the first moment on. Draws nothing where that is no terminal, or one that cannot
/// be drawn on.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    next: Instant,
}

impl Progress {
    pub fn begin(checkpoints: u64) -> anyhow::Result<Self> {
        let next = Instant::now();
        if !out::can_draw_progress() {
            return Ok(Progress { bar: ProgressBar::hidden(), next });
        }
        // Has room in 80 columns.
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} checkpoints, {msg}, {elapsed}")?;
        let target = ProgressDrawTarget::stderr_with_hz(HERTZ);
        let bar = ProgressBar::with_draw_target(Some(checkpoints), target).with_style(style).with_message("starting");
        bar.tick();
        Ok(Progress { bar, next })
    }

    pub fn hidden() -> Self {
        Progress { bar: ProgressBar::hidden(), next: Instant::now() }
    }

    /// To be called often: moves the time on while the next checkpoint is still far.
    pub fn tick(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + Duration::from_secs(1) / u32::from(HERTZ);
            self.bar.tick();
        }
    }

    pub fn checkpoint(&self, received: u64) {
        self.bar.set_message(format!("{received} events received"));
        self.bar.inc(1);
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
