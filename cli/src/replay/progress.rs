//! How far it is, on a terminal.

use std::io;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use ratatui::crossterm::terminal;

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
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(Stderr), HERTZ);
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

/// The standard error as a terminal that never fails and is never waited for.
#[derive(Debug)]
struct Stderr;

impl Stderr {
    /// Moves the cursor; by 0 would be by 1.
    fn go(&self, by: usize, direction: char) -> io::Result<()> {
        if by > 0 {
            out::draw(&format!("\x1b[{by}{direction}"));
        }
        Ok(())
    }
}

impl TermLike for Stderr {
    fn width(&self) -> u16 {
        terminal::size().map_or(80, |(width, _)| width)
    }

    fn move_cursor_up(&self, by: usize) -> io::Result<()> {
        self.go(by, 'A')
    }

    fn move_cursor_down(&self, by: usize) -> io::Result<()> {
        self.go(by, 'B')
    }

    fn move_cursor_right(&self, by: usize) -> io::Result<()> {
        self.go(by, 'C')
    }

    fn move_cursor_left(&self, by: usize) -> io::Result<()> {
        self.go(by, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        out::draw(&format!("{text}\r\n"));
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        out::draw(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        out::draw("\r\x1b[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
