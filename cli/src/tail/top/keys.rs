//! The keyboard, as far as it is needed: whether somebody wants to leave.
//!
//! Keys are read here and not by crossterm, whose reader may leave one lying: if a resize and a key are found by the same
//! wait, it tells of the resize and forgets that there is a key. Its wait is edge-triggered, so it does not find that key
//! again until the next one is pressed, however often it is asked. Asking whether there is something to read, as is
//! done here, overlooks nothing, and the terminal's size is looked at whenever it is drawn on.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// The terminal's end that keys come out of.
pub struct Keys {
    terminal: File,
    escape: Escape,
}

impl Keys {
    /// The keys of the standard input if that is a terminal, otherwise of the terminal that this process belongs to.
    pub fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        let terminal =
            if stdin.is_terminal() { File::from(stdin.as_fd().try_clone_to_owned()?) } else { File::open("/dev/tty")? };
        Ok(Keys { terminal, escape: Escape::None })
    }

    /// The terminal's descriptor, open for as long as this lives.
    pub fn fd(&self) -> RawFd {
        self.terminal.as_raw_fd()
    }

    /// Takes all keys pressed so far, without waiting. Whether one of them is to end it; so does a terminal that is gone.
    pub fn want_end(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 256];
        while self.is_readable()? {
            match self.terminal.read(&mut bytes) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    if bytes[..count].iter().any(|&byte| self.escape.pass(byte) && is_end(byte)) {
                        return Ok(true);
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => break,
                    _ => return Err(error),
                },
            }
        }
        // A sequence is written in one go: what comes later is no part of it, but a key of its own.
        self.escape = Escape::None;
        Ok(false)
    }

    fn is_readable(&self) -> io::Result<bool> {
        let mut items = [zmq::PollItem::from_fd(self.terminal.as_raw_fd(), zmq::POLLIN)];
        match zmq::poll(&mut items, 0) {
            Ok(_) => Ok(items[0].is_readable() || items[0].is_error()),
            Err(zmq::Error::EINTR) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// `q`, and Ctrl-C, which in raw mode is a key.
fn is_end(byte: u8) -> bool {
    matches!(byte, b'q' | b'Q' | 3)
}

/// Where in an escape sequence the keys stand: arrows, function keys and their like, whose letters are not typed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Escape {
    None,
    /// Behind the ESC.
    Begun,
    /// Behind `ESC O`: one more byte.
    Short,
    /// Behind `ESC [`: up to a letter or `~`.
    Long,
}

impl Escape {
    /// Whether the byte is a key of its own.
    fn pass(&mut self, byte: u8) -> bool {
        let (next, is_key) = match (*self, byte) {
            // Neither ends in the middle of a sequence, so both are keys whatever stands before.
            (_, 0x1b) => (Escape::Begun, false),
            (_, 3) => (Escape::None, true),
            (Escape::None, _) => (Escape::None, true),
            (Escape::Begun, b'O') => (Escape::Short, false),
            (Escape::Begun, b'[') => (Escape::Long, false),
            (Escape::Long, byte) if !(0x40..=0x7e).contains(&byte) => (Escape::Long, false),
            (Escape::Begun | Escape::Short | Escape::Long, _) => (Escape::None, false),
        };
        *self = next;
        is_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_escape_sequences_are_not_typed() {
        let ends = |bytes: &[u8]| {
            let mut escape = Escape::None;
            bytes.iter().any(|&byte| escape.pass(byte) && is_end(byte))
        };
        for bytes in
            [b"q".as_slice(), b"Q", b"\x03", b"xyq", b"\x1b[Aq", b"\x1bOPq", b"\x1b[15~q", b"\x1b\x03", b"\x1bxq"]
        {
            assert!(ends(bytes), "{bytes:?}");
        }
        for bytes in [b"".as_slice(), b"x", b"\x1bq", b"\x1bOq", b"\x1b[1;5q", b"\x1b[A\x1b[B", b"\x1b", "é".as_bytes()]
        {
            assert!(!ends(bytes), "{bytes:?}");
        }
    }
}
