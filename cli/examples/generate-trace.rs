//! Writes a trace in the form that `kv-events replay --trace` reads: the replay's built-in workload, of any length.
//! `cli/tests/data/trace.jsonl` was made by
//!
//! ```text
//! cargo run -p kv-events-cli --example generate-trace -- 700 1 > cli/tests/data/trace.jsonl
//! ```

use simulated_master::workload;
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(requests), Some(seed), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: generate-trace REQUESTS SEED".into());
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    for request in workload::generate(requests.parse()?, seed.parse()?) {
        serde_json::to_writer(&mut out, &request)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
