//! The crate against the usual design, on this machine, in one run.
//!
//! ```text
//! cargo bench --features __internals --bench compare                  # all of it, about a quarter of an hour
//! cargo bench --features __internals --bench compare -- latency       # calls and deliveries at every pace
//! cargo bench --features __internals --bench compare -- --quick aims  # is it alive? The figures mean nothing
//! ```
//!
//! Prints tables; writes `compare.json` and SVG plots into `--out`. Ours and the peer's runs alternate, and figures are
//! medians over them, so that what else the machine does meets both alike: believe the ratios before the figures. The
//! subscriber is always another process, and delivered events are those it counted. Linux only.

mod aims;
mod alloc;
mod ceiling;
mod clock;
mod growth;
mod latency;
mod load;
mod machine;
mod memory;
mod plot;
mod run;
mod stalled;
mod subscriber;
#[path = "../support/mod.rs"]
mod support;

use clap::{Parser, Subcommand};
use run::Length;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

#[derive(Parser)]
#[command(about = "The crate against the usual design")]
struct Args {
    /// Runs of each case.
    #[arg(long, default_value_t = 5)]
    reps: usize,
    /// Seconds that count in each run.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Once, and short: to see that it works.
    #[arg(long)]
    quick: bool,
    /// Where the JSON and the plots go.
    #[arg(long, default_value = "target/compare")]
    out: PathBuf,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Clone, PartialEq, Subcommand)]
enum What {
    /// Everything: the default.
    All,
    /// Calls and deliveries at every pace.
    Latency,
    /// Calls and deliveries flat out, with so many producers: for a look while tuning.
    Flat {
        #[arg(default_values_t = latency::PRODUCERS)]
        producers: Vec<usize>,
        /// Only who has this name, say `ours`: for a profile.
        #[arg(long)]
        only: Option<String>,
    },
    /// Calls on a full queue while the sender stands still, with so many producers: for a look while tuning.
    Full {
        #[arg(default_values_t = latency::PRODUCERS)]
        producers: Vec<usize>,
        /// Only who has this name.
        #[arg(long)]
        only: Option<String>,
    },
    /// Latency, and whether what is promised holds.
    Aims,
    /// Only the aims that need no latency cells: ceiling, full queue, allocations, memory.
    Extra,
    /// How cost grows.
    Growth,
    /// Calls on a full queue by `peer`, or by ours with this burst, for an instruction count: `valgrind --tool=callgrind BINARY calls 16 100000`.
    Calls { who: String, calls: u64 },
    #[command(hide = true)]
    Subscribe { endpoint: String, mode: String },
    #[command(hide = true)]
    Memory { who: String, case: String },
}

fn main() {
    let args = Args::parse();
    let what = args.what.unwrap_or(What::All);
    match &what {
        What::Subscribe { endpoint, mode } => return subscriber::main(endpoint, mode),
        What::Calls { who, calls } => return stalled::calls(run::Who::named(who), *calls),
        What::Memory { who, case } => return memory::main(who, case),
        _ => {}
    }
    // `cargo test --benches` runs it without `--bench`: to see that it works.
    let (reps, seconds) = if args.quick || !args.bench { (1, 0.1) } else { (args.reps, args.seconds) };
    let length = Length { warm_up: Duration::from_secs_f64(seconds * 0.3), window: Duration::from_secs_f64(seconds) };
    std::fs::create_dir_all(&args.out).expect("a directory to write to");
    measure(&what, reps, length, &args.out);
}

fn measure(what: &What, reps: usize, length: Length, out: &Path) {
    let machine = machine::Machine::this();
    let mut report = machine.text();
    let mut results = json!({ "machine": machine, "reps": reps, "seconds": length.window.as_secs_f64() });
    let mut aims = Vec::new();
    if let What::Flat { producers, only } = what {
        let cells = latency::flat_out(producers, only.as_deref(), reps, length);
        report += &format!("\n{}", latency::table(&cells));
    }
    if let What::Full { producers, only } = what {
        for &producers in producers {
            for (who, runs) in stalled::interleaved(producers, only.as_deref(), reps, length) {
                let mean = latency::time(stalled::mean(&runs));
                report +=
                    &format!("full queue, sender stalled, {producers} producers, {}: {mean} a call\n", who.name());
            }
        }
    }
    if matches!(what, What::All | What::Aims | What::Latency) {
        let cells = latency::grid(reps, length);
        report += &format!("\n{}", latency::table(&cells));
        aims.extend(aims::of_cells(&cells));
        let draw = |name: &str, title, of| plot::percentiles(&out.join(name), title, &cells, of).expect("a plot");
        draw("publish-latency.svg", "A publish call, flat out", |sample| &sample.service);
        draw("receive-latency.svg", "From the call to the subscriber, flat out", |sample| &sample.receive);
        results["latency"] = json!(cells);
    }
    if matches!(what, What::All | What::Aims | What::Extra) {
        let (extra, more) = aims::extra(reps, length);
        aims.extend(more);
        results["extra"] = json!(extra);
    }
    if matches!(what, What::All | What::Growth) {
        let sweeps = growth::sweeps(reps.min(3), length);
        report += &format!("\n{}", growth::table(&sweeps));
        plot::growth(&out.join("growth.svg"), &sweeps).expect("a plot");
        results["growth"] = json!(sweeps);
    }
    if !aims.is_empty() {
        report += &format!("\n{}", aims::table(&aims));
        results["aims"] = json!(aims);
    }
    let text = serde_json::to_string_pretty(&results).expect("results as JSON");
    std::fs::write(out.join("compare.json"), text).expect("a file to write to");
    std::fs::write(out.join("compare.md"), &report).expect("a file to write to");
    println!("{report}");
}
