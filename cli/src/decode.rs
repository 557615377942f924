//! `kv-events decode`: hex in, JSON out, line by line.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use kv_events::decode::{Batch, Event};
use serde::Serialize;

use crate::input::{self, Lines};
use crate::out::{self, Face, Output};
use crate::signals::Stop;

/// Decode captured payloads: one payload in hex a line, one line of JSON for each.
///
/// An empty line is an empty payload. What cannot be decoded gives `{"error": CLASS}`, and the standard error tells the
/// file, the line, the event if it is one of many (of one line the first 100), and what is wrong with it; on it goes.
#[derive(clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    /// File to read, of lines in hex (upper or lower case, no spaces, no 0x); `-` is the standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The lines are single events [default: payloads, the third frame of a message: a timestamp and a list of events].
    #[arg(long)]
    event: bool,
    /// Longest line of the input, in bytes (or like 64K, 64M, 1G): a longer one ends it, and is named by its number.
    #[arg(long, value_name = "BYTES", default_value = input::MAX_LINE, value_parser = input::bytes)]
    max_line: usize,
}

const AFTER_HELP: &str = "\
Timestamps are as they were sent: by masters in ms, as an integer; by engines (vLLM, SGLang) in s, as a float.

Examples:
  A file of payloads:
      kv-events decode payloads.hex

  A payload with nothing in it but the timestamp 1:
      echo 920190 | kv-events decode

Exit status:
  0    all of the input was read, whatever it held; or the reader of the output has gone
  1    the input cannot be read, or a line is longer than --max-line; the output cannot be written
  2    the arguments are wrong
  70   there was no memory left
A signal ends it at once.";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    out::wait_for_stderr();
    let is_stdin = args.file.as_os_str() == "-";
    let name = if is_stdin { "the standard input".into() } else { args.file.display().to_string() };
    let input: Box<dyn Read> = if is_stdin {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(&args.file).with_context(|| format!("cannot open {name}"))?)
    };
    // No signal is caught: each ends the process.
    let mut output = Output::open(&Stop::default()).context("cannot open the standard output")?;
    let mut lines = Lines::new(input, name.clone(), args.max_line);
    let read = decode(&mut lines, args.event, &mut output);
    let flushed = output.flush().map_err(Ended::Output);
    match read.and(flushed) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Ended::Output(error)) if out::is_gone(&error) => Ok(ExitCode::SUCCESS),
        Err(Ended::Output(error)) => Err(error).context("cannot write"),
        Err(Ended::Input(error)) => Err(error),
    }
}

enum Ended {
    Input(anyhow::Error),
    Output(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Output(error)
    }
}

fn decode(lines: &mut Lines<Box<dyn Read>>, single_events: bool, output: &mut Output) -> Result<(), Ended> {
    let for_terminal = Face::of_stdout().is_terminal;
    let name = lines.name().to_owned();
    let mut payload = Vec::new();
    while let Some((number, hex)) = lines.next().map_err(Ended::Input)? {
        payload.clear();
        payload.resize(hex.len() / 2, 0);
        // Where nobody can be told what is wrong the output still says that something is.
        let complain = |fault: &dyn Display| out::say(format_args!("kv-events: {name}, line {number}: {fault}"));
        match hex::decode_to_slice(hex, &mut payload) {
            Ok(()) if single_events => write_line(output, for_terminal, Event::parse(&payload), complain)?,
            Ok(()) => {
                let batch = Batch::parse(&payload);
                if let Ok(batch) = &batch {
                    tell_bad_events(batch, complain);
                }
                write_line(output, for_terminal, batch, complain)?;
            }
            Err(error) => {
                match input::oddity(number, hex) {
                    Some(oddity) => complain(&format_args!("not hex: {oddity}")),
                    None => complain(&format_args!("not hex: {error}")),
                }
                output.write_all(b"{\"error\":\"invalid_hex\"}\n")?;
            }
        }
        // Whoever feeds lines one at a time is not kept waiting for the buffer to fill.
        if lines.is_drained() {
            output.flush()?;
        }
    }
    Ok(())
}

/// Bad events of one batch that are named each.
const NAMED: usize = 100;

/// Names the events of a good batch that are bad, by their place in the list.
fn tell_bad_events(batch: &Batch<'_>, complain: impl Fn(&dyn Display)) {
    let mut bad = 0;
    for (index, event) in batch.events().enumerate() {
        if let Err(error) = event {
            bad += 1;
            if bad <= NAMED {
                complain(&format_args!("event {index} (from 0) cannot be decoded: {error}"));
            }
        }
    }
    if bad > NAMED {
        complain(&format_args!("{} more events cannot be decoded", bad - NAMED));
    }
}

fn write_line<T: Serialize, E: Serialize + Display>(
    output: &mut Output,
    for_terminal: bool,
    decoded: Result<T, E>,
    complain: impl Fn(&dyn Display),
) -> io::Result<()> {
    match decoded {
        Ok(decoded) => out::write_json(output, &decoded, for_terminal)?,
        Err(error) => {
            complain(&format_args!("cannot be decoded: {error}"));
            out::write_json(output, &error, for_terminal)?;
        }
    }
    output.write_all(b"\n")
}
