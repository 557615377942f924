//! All that the tools write, in one place: nothing else in this program writes to the standard output or the standard
//! error. Neither of them can end a tool by being closed, full, dead or unread: what the standard error does not take is
//! dropped, what the standard output does not take is an error that the tool returns.

#![allow(clippy::disallowed_methods, reason = "the one place that may")]

mod channel;
mod escape;
mod json;
mod output;
mod said;

use std::io::{self, IsTerminal};

pub use escape::Plain;
pub use json::write as write_json;
pub use output::{Output, write_briefly};
pub use said::{Log, draw, say, wait_for_stderr};

/// What the standard output can show.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    pub is_terminal: bool,
    /// A terminal that understands colours, and whose user has not asked for none (`NO_COLOR`).
    pub has_colour: bool,
    /// A terminal that can be drawn on.
    pub has_screen: bool,
}

impl Face {
    /// That of the standard output.
    pub fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let has_screen = is_terminal && !is_dumb();
        let has_colour = has_screen && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Face { is_terminal, has_colour, has_screen }
    }
}

/// Whether progress can be drawn on the standard error.
pub fn can_draw_progress() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// A terminal whose kind is not known understands nothing but text.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether the reader of the standard output has gone, which ends the work quietly.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
