//! The standard output: nothing is lost on it without an error, and nobody waits for its reader for ever.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::channel::Channel;
use super::say;
use crate::signals::Stop;

/// Bytes that are gathered before they are written.
const GATHERED: usize = 64 << 10;
/// How often it is looked at whether somebody has asked for the end.
const LOOK: Duration = Duration::from_millis(100);
/// How long nothing may be taken before that is told.
const SLOW: Duration = Duration::from_secs(5);
/// How long nothing may be taken, once the end was asked for, before the rest is given up: whoever reads slowly is to have
/// it all.
const PATIENCE: Duration = Duration::from_secs(5);
/// Nobody reads where nothing was taken for so long when the end is asked for: then the rest is given up at once.
const BLOCKED: Duration = Duration::from_secs(1);

/// The standard output, buffered.
#[derive(Debug)]
pub struct Output {
    channel: Channel,
    gathered: Vec<u8>,
    stop: Stop,
    told: bool,
}

impl Output {
    /// The standard output of a tool that `stop` asks to end.
    pub fn open(stop: &Stop) -> io::Result<Self> {
        let channel = Channel::open(io::stdout().as_fd())?;
        Ok(Output { channel, gathered: Vec::with_capacity(GATHERED), stop: stop.clone(), told: false })
    }

    fn pass_on(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut since = Instant::now();
        let mut asked = None;
        while !bytes.is_empty() {
            let taken = self.channel.write(bytes, LOOK)?;
            if taken > 0 {
                bytes = &bytes[taken..];
                (since, asked) = (Instant::now(), None);
                continue;
            }
            if self.stop.is_raised() {
                let is_blocked = asked.is_none() && since.elapsed() >= BLOCKED;
                if is_blocked || asked.is_some_and(|asked: Instant| asked.elapsed() >= PATIENCE) {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the standard output is not read"));
                }
                if asked.is_none() {
                    say("kv-events: the standard output is not read; once more ends it at once");
                    asked = Some(Instant::now());
                }
            } else if since.elapsed() >= SLOW && !self.told {
                self.told = true;
                say(
                    "kv-events: the standard output is not read; it is waited for, and what comes meanwhile may get lost",
                );
            }
        }
        Ok(())
    }

    fn pass_on_gathered(&mut self) -> io::Result<()> {
        // What was not taken is not tried again.
        let mut gathered = std::mem::take(&mut self.gathered);
        let passed = self.pass_on(&gathered);
        gathered.clear();
        self.gathered = gathered;
        passed
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.len() + bytes.len() > GATHERED {
            self.pass_on_gathered()?;
        }
        if bytes.len() >= GATHERED {
            self.pass_on(bytes)?;
        } else {
            self.gathered.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on_gathered()
    }
}

/// Writes to the standard output past what is gathered, as much as is taken in that time, for whoever is about to end the
/// process.
pub fn write_briefly(mut bytes: &[u8], time: Duration) {
    let until = Instant::now() + time;
    let Ok(channel) = Channel::open(io::stdout().as_fd()) else { return };
    while !bytes.is_empty() && Instant::now() < until {
        match channel.write(bytes, until.saturating_duration_since(Instant::now())) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(_) => return,
        }
    }
}
