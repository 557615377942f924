//! How far it is, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Draws so often a second at most, but for a short burst now and then.
const HERTZ: u8 = 4;

/// A bar on the standard error, there from the first moment on, and moving while the first checkpoint is still far. Draws
/// nothing where that is no terminal.
pub fn bar(checkpoints: u64) -> anyhow::Result<ProgressBar> {
    // Has room in 80 columns.
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} checkpoints, {msg}, {elapsed}")?;
    let target = ProgressDrawTarget::stderr_with_hz(HERTZ);
    let bar = ProgressBar::with_draw_target(Some(checkpoints), target).with_style(style).with_message("starting");
    bar.tick();
    bar.enable_steady_tick(Duration::from_secs(1) / u32::from(HERTZ));
    Ok(bar)
}
