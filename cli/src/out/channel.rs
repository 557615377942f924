//! One end that bytes are written to, without waiting for whoever reads them.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

/// What a pipe takes at once if it takes anything (`PIPE_BUF`).
pub const AT_ONCE: usize = 4096;

/// The standard output or the standard error.
#[derive(Debug)]
pub struct Channel {
    file: File,
    kind: Kind,
    pub is_terminal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Takes all there is.
    File,
    /// Takes what there is room for, and never waits.
    NonBlocking,
    /// May wait for a reader if it is given more than [`AT_ONCE`].
    Blocking,
}

impl Channel {
    /// A descriptor of its own for what `end` is.
    pub fn open(end: BorrowedFd<'_>) -> io::Result<Self> {
        let is_terminal = end.is_terminal();
        let file = File::from(end.try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Channel { file, kind: Kind::File, is_terminal });
        }
        if kind.is_fifo() || is_terminal {
            if let Ok(file) = reopen(&file) {
                return Ok(Channel { file, kind: Kind::NonBlocking, is_terminal });
            }
        }
        Ok(Channel { file, kind: Kind::Blocking, is_terminal })
    }

    /// Writes as many of these bytes as are taken, after at most `wait`; 0 if none are.
    pub fn write(&self, bytes: &[u8], wait: Duration) -> io::Result<usize> {
        let bytes = match self.kind {
            Kind::Blocking => &bytes[..bytes.len().min(AT_ONCE)],
            Kind::File | Kind::NonBlocking => bytes,
        };
        if self.kind != Kind::File && !self.is_ready(wait)? {
            return Ok(0);
        }
        match (&self.file).write(bytes) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => Ok(0),
            // Input and output fail like this on a terminal that was closed.
            Err(error) if self.is_terminal && error.raw_os_error() == Some(libc::EIO) => {
                Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone"))
            }
            other => other,
        }
    }

    fn is_ready(&self, wait: Duration) -> io::Result<bool> {
        let mut items = [zmq::PollItem::from_fd(self.file.as_raw_fd(), zmq::POLLOUT)];
        match zmq::poll(&mut items, i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)) {
            // What is wrong with it the write will tell.
            Ok(_) => Ok(items[0].is_writable() || items[0].is_error()),
            Err(zmq::Error::EINTR) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// The same pipe or terminal, opened once more, so that it can be made not to wait without that becoming so for all who
/// share it.
#[cfg(target_os = "linux")]
fn reopen(file: &File) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options()
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn reopen(_: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
