//! The terminal: taken over, drawn on, given back.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Once;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::{cursor, execute, terminal};

use super::Surface;
use super::draw::draw;
use super::keys::Keys;
use super::model::View;
use crate::abort;
use crate::out::{self, Output};

/// A terminal in raw mode, on its other screen. It gets back what it was when this is closed or dropped, also by a panic or an
/// abort.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Tty>>,
    keys: Keys,
    has_colour: bool,
    tty: Tty,
}

impl Screen {
    /// Takes over the terminal that is the output.
    pub fn open(output: Output, has_colour: bool) -> io::Result<Self> {
        // Lines between the figures would tear the screen, and say nothing that is not on it.
        log::set_max_level(log::LevelFilter::Off);
        restore_at_panics();
        let mut tty = Tty(Rc::new(RefCell::new(State { output: Some(output), failed: None })));
        let mut open = || {
            let keys = Keys::open()?;
            abort::remember_terminal(keys.fd());
            terminal::enable_raw_mode()?;
            execute!(tty, terminal::EnterAlternateScreen)?;
            let terminal = Terminal::new(CrosstermBackend::new(tty.clone()))?;
            tty.check()?;
            Ok((terminal, keys))
        };
        let opened: io::Result<_> = open();
        match opened {
            Ok((terminal, keys)) => Ok(Screen { terminal, keys, has_colour, tty }),
            Err(error) => {
                abort::forget_terminal();
                restore_terminal();
                Err(io::Error::new(error.kind(), format!("cannot take over the terminal: {error}")))
            }
        }
    }

    /// Gives the terminal back, and the output.
    pub fn close(self) -> Output {
        let tty = self.tty.clone();
        drop(self);
        let output = tty.0.borrow_mut().output.take();
        output.expect("a screen has its output until it is closed")
    }
}

impl Surface for Screen {
    fn show(&mut self, view: &View) -> io::Result<bool> {
        self.terminal.draw(|frame| draw(frame, view, self.has_colour))?;
        self.tty.check()?;
        Ok(!self.keys.want_end()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where that fails the terminal is gone, and there is nobody to tell.
        let _ = terminal::disable_raw_mode();
        let _ = execute!(self.tty, terminal::LeaveAlternateScreen, cursor::Show);
        abort::forget_terminal();
    }
}

/// What is drawn on. It takes everything, and keeps what went wrong until it is asked: ratatui prints what fails at its end,
/// and to print where nobody listens is a panic.
#[derive(Clone)]
struct Tty(Rc<RefCell<State>>);

struct State {
    output: Option<Output>,
    failed: Option<io::Error>,
}

impl Tty {
    /// The first thing that went wrong since it was asked.
    fn check(&self) -> io::Result<()> {
        self.0.borrow_mut().failed.take().map_or(Ok(()), Err)
    }

    fn with(&self, act: impl FnOnce(&mut Output) -> io::Result<()>) {
        let State { output, failed } = &mut *self.0.borrow_mut();
        if let (Some(output), None) = (output, &failed) {
            *failed = act(output).err();
        }
    }
}

impl Write for Tty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|output| output.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(Write::flush);
        Ok(())
    }
}

/// Has a panic give the terminal back before it tells of itself.
fn restore_at_panics() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            tell(panic);
        }));
    });
}

/// Gives the terminal back if a [`Screen`] has it, for whoever is about to end the process. Does not wait long for a terminal
/// that takes nothing, and does not fail.
pub fn restore_terminal() {
    if !terminal::is_raw_mode_enabled().unwrap_or(false) {
        return;
    }
    let _ = terminal::disable_raw_mode();
    let mut sequence = Vec::new();
    // Writing to memory cannot fail.
    let _ = execute!(sequence, terminal::LeaveAlternateScreen, cursor::Show);
    out::write_briefly(&sequence, Duration::from_millis(500));
}
