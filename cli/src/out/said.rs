//! The standard error: words beside the work, which never hold it up and never end it.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::channel::{AT_ONCE, Channel};
use super::escape::Plain;

/// How long a line may wait until it is taken.
const PATIENCE: Duration = Duration::from_millis(100);

struct Said {
    channel: Option<Channel>,
    /// Lines that were not taken since one was.
    dropped: u64,
    waits: bool,
}

static SAID: Mutex<Said> = Mutex::new(Said { channel: None, dropped: 0, waits: false });

/// Says one line on the standard error, with nothing in it that a terminal obeys. It is cut to what a pipe takes at once,
/// and dropped if it is not taken within a tenth of a second; the next line that is taken tells how many were dropped.
pub fn say(line: impl Display) {
    let mut text = Plain(&line.to_string()).to_string();
    if text.len() >= AT_ONCE {
        let mut end = AT_ONCE - 4;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text.push('\n');
    SAID.lock().unwrap_or_else(PoisonError::into_inner).line(&text);
}

/// Draws on the standard error, if it takes that at once.
pub fn draw(text: &str) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).draw(text);
}

/// From now on the standard error is waited for, as long as it takes: for a filter, whose complaints are a part of what it
/// is for, and which any signal ends.
pub fn wait_for_stderr() {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).waits = true;
}

impl Said {
    fn channel(&mut self) -> Option<&Channel> {
        if self.channel.is_none() {
            self.channel = Channel::open(io::stderr().as_fd()).ok();
        }
        self.channel.as_ref()
    }

    /// What is not taken is missing from a picture that is soon drawn anew.
    fn draw(&mut self, text: &str) {
        if let Some(channel) = self.channel() {
            let _ = channel.write(text.as_bytes(), Duration::ZERO);
        }
    }

    /// Where it cannot be written nobody can be told.
    fn line(&mut self, line: &str) {
        let (dropped, waits) = (self.dropped, self.waits);
        let Some(channel) = self.channel() else {
            // No descriptor is left for a channel.
            let _ = io::stderr().write_all(line.as_bytes());
            return;
        };
        let mut text = String::new();
        if dropped > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "kv-events: {dropped} lines before this one were not taken by the standard error");
        }
        text.push_str(line);
        let mut rest = text.as_bytes();
        loop {
            // Once one was dropped the next ones are not waited for.
            let wait = if dropped > 0 { Duration::ZERO } else { PATIENCE };
            match channel.write(rest, wait) {
                Ok(0) if waits => {}
                Ok(0) | Err(_) => {
                    self.dropped += 1;
                    return;
                }
                Ok(taken) => rest = &rest[taken..],
            }
            if rest.is_empty() {
                self.dropped = 0;
                return;
            }
        }
    }
}

/// Where the log goes: to [`say`].
#[derive(Debug)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        String::from_utf8_lossy(record).lines().for_each(say);
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
