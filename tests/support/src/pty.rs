//! A pseudo terminal with a program in it, and what stands on its screen.

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Generous: only ever reached by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Pty {
    master: File,
    /// Kept, so that the terminal outlives the program.
    slave: OwnedFd,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    before: Termios,
    /// All that the program has written, as far as it was waited for.
    pub written: Vec<u8>,
    pub child: Child,
}

impl Pty {
    /// Runs the program in a terminal of its own, one with 256 colours unless the command's environment says otherwise.
    pub fn run(command: &mut Command, rows: u16, columns: u16) -> Self {
        let pty = openpty(&winsize(rows, columns), None).unwrap();
        let end = || pty.slave.try_clone().unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let master = File::from(pty.master);
        let (sender, output) = channel();
        let mut reader = master.try_clone().unwrap();
        let read = move || {
            let mut buffer = [0; 4096];
            while let Ok(bytes) = reader.read(&mut buffer) {
                if sender.send(buffer[..bytes].to_vec()).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().spawn(read).unwrap();
        let parser = vt100::Parser::new(rows, columns, 0);
        Pty { master, slave: pty.slave, output, parser, before, written: Vec::new(), child }
    }

    /// Waits until the screen is as wanted, and returns it.
    pub fn until(&mut self, wanted: impl Fn(&vt100::Screen) -> bool) -> String {
        self.read_until(|pty| wanted(pty.parser.screen()));
        self.parser.screen().contents()
    }

    fn read_until(&mut self, done: impl Fn(&Pty) -> bool) {
        // Also of a program that writes all the time.
        let until = Instant::now() + PATIENCE;
        while !done(self) {
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    self.written.extend(bytes);
                }
                Err(_) => panic!("the screen does not become as wanted:\n{}", self.parser.screen().contents()),
            }
        }
    }

    /// Waits until all these parts stand on the screen.
    pub fn until_shown(&mut self, parts: &[&str]) -> String {
        self.until(|screen| {
            let contents = screen.contents();
            parts.iter().all(|part| contents.contains(part))
        })
    }

    pub fn type_in(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    /// Gives the terminal another size, and has the program know, which only a terminal that controls it does by itself.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        self.parser.set_size(rows, columns);
        // SAFETY: the descriptor is open, and the call reads one `winsize`, which outlives it.
        let done = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &winsize(rows, columns)) };
        assert_eq!(done, 0);
        // SAFETY: the child was not waited for, so its id is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGWINCH) }, 0);
    }

    /// Whether the terminal is raw: it neither echoes, nor waits for lines, nor makes signals of keys.
    pub fn is_raw(&self) -> bool {
        let cooked = LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG;
        !tcgetattr(&self.slave).unwrap().local_flags.intersects(cooked)
    }

    /// Waits for the end of the program. This part must then stand on the screen, which must be as before the program: its
    /// own, with a cursor, and the line discipline that it had. Returns the screen.
    pub fn end(mut self, part: &str) -> (String, ExitStatus) {
        /// A window's title, which no program here sets.
        const MARK: &[u8] = b"\x1b]0;all was read\x07";
        let status = self.child.wait().unwrap();
        assert_eq!(tcgetattr(&self.slave).unwrap(), self.before, "the line discipline is what it was");
        // Behind all that the program has written.
        File::from(self.slave.try_clone().unwrap()).write_all(MARK).unwrap();
        self.read_until(|pty| pty.written.ends_with(MARK));
        let screen = self.parser.screen();
        let contents = screen.contents();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && contents.contains(part), "{contents}");
        (contents, status)
    }
}

fn winsize(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
