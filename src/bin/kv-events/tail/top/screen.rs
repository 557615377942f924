//! The terminal: taken over, drawn on, given back.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::{cursor, execute, terminal};

use super::Surface;
use super::draw::draw;
use super::keys::Keys;
use super::model::View;

/// A terminal in raw mode, on its other screen. It gets back what it was when this is dropped, also by a panic.
pub struct Screen {
    terminal: DefaultTerminal,
    keys: Keys,
    has_colour: bool,
}

impl Screen {
    pub fn open(has_colour: bool) -> io::Result<Self> {
        // Lines between the figures would tear the screen, and say nothing that is not on it.
        log::set_max_level(log::LevelFilter::Off);
        // Also has a panic restore the terminal before it tells of itself.
        match Keys::open().and_then(|keys| Ok((ratatui::try_init()?, keys))) {
            Ok((terminal, keys)) => Ok(Screen { terminal, keys, has_colour }),
            Err(error) => {
                restore();
                Err(io::Error::new(error.kind(), format!("cannot take over the terminal: {error}")))
            }
        }
    }
}

impl Surface for Screen {
    fn show(&mut self, view: &View) -> io::Result<bool> {
        self.terminal.draw(|frame| draw(frame, view, self.has_colour))?;
        Ok(!self.keys.want_end()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Where that fails the terminal is gone, and there is nobody to tell.
fn restore() {
    let _ = ratatui::try_restore();
    let _ = execute!(io::stdout(), cursor::Show);
}

/// Gives the terminal back if a [`Screen`] has it, for whoever is about to end the process. Does not wait for a terminal that
/// takes nothing.
pub fn restore_terminal() {
    if !terminal::is_raw_mode_enabled().unwrap_or(false) {
        return;
    }
    let (done, restored) = mpsc::channel();
    thread::spawn(move || {
        restore();
        done.send(())
    });
    let _ = restored.recv_timeout(Duration::from_millis(500));
}
