//! A process of this bench: told what to do by words, lines in, lines out, ended with its owner.

use crate::words::Words;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything may take before it counts as hanging.
pub const HANG: Duration = Duration::from_secs(90);

pub struct Child {
    process: Process,
    stdin: ChildStdin,
    lines: Receiver<String>,
    role: &'static str,
}

impl Child {
    pub fn spawn(role: &'static str, words: &str) -> Child {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(format!("role:{role}"))
            .args(words.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Child { process, stdin, lines, role }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn tell(&mut self, order: &str) {
        // One that is gone will be noticed by its silence.
        let _ = writeln!(self.stdin, "{order}");
    }

    /// Waits for the line that begins with `word`; its words.
    pub fn wait_for(&self, word: &str) -> Result<Words, String> {
        let until = Instant::now() + HANG;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.split(' ').next() == Some(word) => return Ok(Words::parse(line.split(' '))),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(format!("{} hangs before its {word}", self.role)),
                Err(RecvTimeoutError::Disconnected) => return Err(format!("{} died before its {word}", self.role)),
            }
        }
    }

    pub fn signal(&self, signal: i32) {
        crate::os::signal_process(self.pid(), signal);
    }

    pub fn kill(mut self) {
        let _ = self.process.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
