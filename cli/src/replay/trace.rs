//! Traces: what the clients of a master asked for.

use anyhow::{Context, anyhow, ensure};
use simulated_master::workload::{self, Request};
use std::fs::File;
use std::path::Path;

use crate::input::{self, Lines};

/// Requests of the built-in workload.
const BUILT_IN: usize = 12_000;

/// A line of a trace.
const FORM: &str = r#"{"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [ids]}"#;

/// The blocks of each request, in order.
pub type Trace = Vec<Vec<u64>>;

/// Reads JSON lines of at most `max_line` bytes. Nothing is passed over: a line that is no request is an error that names
/// it.
pub fn read(path: &Path, max_line: usize) -> anyhow::Result<Trace> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open the trace {name}"))?;
    let mut lines = Lines::new(file, format!("the trace {name}"), max_line);
    let mut trace = Vec::new();
    while let Some((number, line)) = lines.next()? {
        let request: Request = serde_json::from_slice(line).map_err(|error| {
            if let Some(oddity) = input::oddity(number, line) {
                return anyhow!("{name}, line {number}: {oddity}");
            }
            let (cause, column) = (error.to_string(), error.column());
            // The line is counted here.
            let cause = cause.split(" at line ").next().unwrap_or_default();
            anyhow!("{name}, line {number}, column {column}: not a request: {cause}; expected {FORM}")
        })?;
        trace.push(request.hash_ids);
    }
    ensure!(!trace.is_empty(), "the trace {name} holds no request");
    Ok(trace)
}

/// The built-in workload.
pub fn built_in(seed: u64) -> Trace {
    workload::generate(BUILT_IN, seed).into_iter().map(|request| request.hash_ids).collect()
}
