//! `kv-events decode`: hex in, JSON out, line by line.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use kv_events::decode::{Batch, Event};
use serde::Serialize;

use crate::json;

/// Decode captured payloads: one payload in hex a line, one line of JSON for each.
///
/// An empty line is an empty payload. What cannot be decoded gives `{"error": CLASS}`, and the standard error tells the
/// file, the line, the event if it is one of many, and what is wrong with it; on it goes, and the exit status is 0 unless
/// the input cannot be read.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// File to read, of lines in hex (upper or lower case, no spaces, no 0x); `-` is the standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The lines are single events [default: payloads, the third frame of a message: a timestamp and a list of events].
    #[arg(long)]
    event: bool,
}

const EXAMPLES: &str = "\
Timestamps are as they were sent: by masters in ms, as an integer; by engines (vLLM, SGLang) in s, as a float.

Examples:
  A file of payloads:
      kv-events decode payloads.hex

  A payload with nothing in it but the timestamp 1:
      echo 920190 | kv-events decode";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_stdin = args.file.as_os_str() == "-";
    let name = if is_stdin { "the standard input".into() } else { args.file.display().to_string() };
    let input: Box<dyn Read> = if is_stdin {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(&args.file).with_context(|| format!("cannot open {name}"))?)
    };
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut output = BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    let mut payload = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if input.read_until(b'\n', &mut line).with_context(|| format!("cannot read {name}"))? == 0 {
            break;
        }
        let hex = line.strip_suffix(b"\n").unwrap_or(&line);
        let hex = hex.strip_suffix(b"\r").unwrap_or(hex);
        payload.clear();
        payload.resize(hex.len() / 2, 0);
        // Where nobody can be told what is wrong the output still says that something is.
        let complain = |fault: &dyn Display| _ = writeln!(io::stderr(), "kv-events: {name}, line {number}: {fault}");
        let written = match hex::decode_to_slice(hex, &mut payload) {
            Ok(()) if args.event => write_line(&mut output, Event::parse(&payload), complain),
            Ok(()) => {
                let batch = Batch::parse(&payload);
                if let Ok(batch) = &batch {
                    tell_bad_events(batch, complain);
                }
                write_line(&mut output, batch, complain)
            }
            Err(error) => {
                complain(&format_args!("not hex: {error}"));
                output.write_all(b"{\"error\":\"invalid_hex\"}\n")
            }
        };
        // Whoever feeds lines one at a time is not kept waiting for the buffer to fill.
        let written = written.and_then(|()| if input.buffer().is_empty() { output.flush() } else { Ok(()) });
        if is_closed(&written) {
            return Ok(ExitCode::SUCCESS);
        }
        written.context("cannot write")?;
    }
    let flushed = output.flush();
    if is_closed(&flushed) {
        return Ok(ExitCode::SUCCESS);
    }
    flushed.context("cannot write")?;
    Ok(ExitCode::SUCCESS)
}

/// Names the events of a good batch that are bad, by their place in the list.
fn tell_bad_events(batch: &Batch<'_>, complain: impl Fn(&dyn Display)) {
    for (index, event) in batch.events().enumerate() {
        if let Err(error) = event {
            complain(&format_args!("event {index} (from 0) cannot be decoded: {error}"));
        }
    }
}

fn write_line<T: Serialize, E: Serialize + Display>(
    output: &mut impl Write,
    decoded: Result<T, E>,
    complain: impl Fn(&dyn Display),
) -> io::Result<()> {
    match decoded {
        Ok(decoded) => json::write(output, &decoded)?,
        Err(error) => {
            complain(&format_args!("cannot be decoded: {error}"));
            json::write(output, &error)?;
        }
    }
    output.write_all(b"\n")
}

/// Whether the reader of our output has gone, which ends the work quietly.
pub fn is_closed(outcome: &io::Result<()>) -> bool {
    matches!(outcome, Err(error) if error.kind() == io::ErrorKind::BrokenPipe)
}
