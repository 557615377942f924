//! The crate against the usual design, on this machine, in one run.
//!
//! ```text
//! cargo bench --bench compare                  # all of it, about half an hour
//! cargo bench --bench compare -- latency       # calls and deliveries at every pace
//! cargo bench --bench compare -- deep          # into a queue that fills and does not evict
//! cargo bench --bench compare -- tails         # the slowest calls on a full queue
//! cargo bench --bench compare -- bursts        # what evicting several calls at once is worth
//! cargo bench --bench compare -- transports    # libzmq's socket and our own
//! cargo bench --bench compare -- --quick aims  # is it alive? The figures mean nothing
//! ```
//!
//! Prints tables; writes `compare.json` and SVG plots into `--out`. Ours and the peer's runs alternate, and figures are
//! medians over them, so that what else the machine does meets both alike: believe the ratios before the figures. The
//! subscriber is always another process, and delivered events are those it counted. Linux only.

mod aims;
mod alloc;
mod ceiling;
mod clock;
mod deep;
mod growth;
mod latency;
mod load;
mod machine;
mod memory;
mod pin;
mod plot;
mod run;
mod stalled;
mod subscriber;
#[path = "../support/mod.rs"]
mod support;
mod tails;
mod transports;

use clap::{Parser, Subcommand};
use growth::Sweep;
use latency::Cell;
use run::Length;
use serde_json::{Value, json};
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
    /// Producers on a processor of their own, all else on the others.
    #[arg(long, global = true)]
    pin: bool,
    /// Only who has this name, say `ours`; can be said several times.
    #[arg(long, global = true)]
    only: Vec<String>,
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
    Latency {
        /// Events per second of all producers together; 0 is flat out.
        #[arg(long, value_delimiter = ',')]
        rates: Vec<f64>,
        #[arg(long, value_delimiter = ',', default_values_t = latency::PRODUCERS)]
        producers: Vec<usize>,
    },
    /// Calls and deliveries flat out, with so many producers.
    Flat {
        #[arg(default_values_t = latency::PRODUCERS)]
        producers: Vec<usize>,
    },
    /// Flat out into a queue that fills and does not evict, with so many producers.
    Deep {
        #[arg(default_values_t = deep::PRODUCERS)]
        producers: Vec<usize>,
        /// Calls that the queue has room for.
        #[arg(long, default_value_t = deep::CAPACITY)]
        capacity: usize,
    },
    /// The slowest calls on a full queue, with so many producers.
    Tails {
        #[arg(default_values_t = deep::PRODUCERS)]
        producers: Vec<usize>,
        /// Events per second of all producers together; flat out without it.
        #[arg(long)]
        rate: Option<f64>,
    },
    /// What evicting several calls at once is worth, with so many producers.
    Bursts {
        #[arg(default_values_t = [1, 4])]
        producers: Vec<usize>,
    },
    /// Calls on a full queue while the sender stands still, with so many producers: for a look while tuning.
    Full {
        #[arg(default_values_t = latency::PRODUCERS)]
        producers: Vec<usize>,
    },
    /// What can be sent without a loss, as a share of what a bare socket can.
    Lossless,
    /// The two transports: flat out, receipt, cost, burst; all of it or the cases whose names contain one of these.
    Transports { cases: Vec<String> },
    /// Latency, and whether what is promised holds.
    Aims,
    /// Only the aims that need no latency cells: ceiling, full queue, allocations, memory.
    Extra,
    /// How cost grows.
    Growth {
        /// By what, say `producers`; all ways without it.
        by: Vec<String>,
    },
    /// Draws the plots of results that are there already.
    Draw {
        /// Files that were written as `compare.json`.
        results: Vec<PathBuf>,
        /// Another commit's, whose growth is to be seen beside.
        #[arg(long)]
        beside: Option<PathBuf>,
    },
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
        What::Draw { results, beside } => return draw_results(&args.out, results, beside.as_deref()),
        _ => {}
    }
    if args.pin {
        pin::start();
    }
    // `cargo test --benches` runs it without `--bench`: to see that it works.
    let (reps, seconds) = if args.quick || !args.bench { (1, 0.1) } else { (args.reps, args.seconds) };
    let length = Length { warm_up: Duration::from_secs_f64(seconds * 0.3), window: Duration::from_secs_f64(seconds) };
    std::fs::create_dir_all(&args.out).expect("a directory to write to");
    measure(&what, &run::Only(args.only), reps, length, &args.out);
}

fn measure(what: &What, only: &run::Only, reps: usize, length: Length, out: &Path) {
    let machine = machine::Machine::this();
    let mut report = machine.text();
    let mut results = json!({ "machine": machine, "reps": reps, "seconds": length.window.as_secs_f64() });
    let mut aims = Vec::new();
    let mut show = |name: &str, cells: &[Cell]| {
        report += &format!("\n{}", latency::table(cells));
        results[name] = json!(cells);
    };
    let (all, no_aims) = (*what == What::All, matches!(what, What::Flat { .. } | What::Latency { .. }));
    let grid = match what {
        What::All | What::Aims => Some((latency::RATES.to_vec(), &latency::PRODUCERS[..])),
        What::Flat { producers } => Some((vec![None], &producers[..])),
        What::Latency { rates, producers } if rates.is_empty() => Some((latency::RATES.to_vec(), &producers[..])),
        What::Latency { rates, producers } => {
            Some((rates.iter().map(|rate| Some(*rate).filter(|rate| *rate > 0.0)).collect(), &producers[..]))
        }
        _ => None,
    };
    if let Some((rates, producers)) = grid {
        let cells = latency::grid(&rates, producers, only, reps, length);
        show("latency", &cells);
        if !no_aims {
            aims.extend(aims::of_cells(&cells));
            draw_latency(out, &cells);
        }
    }
    if let What::Deep { producers, capacity } = what {
        show("deep", &deep::cells(producers, *capacity, only, reps, length));
    } else if all {
        show("deep", &deep::cells(&deep::PRODUCERS, deep::CAPACITY, only, reps, length));
    }
    if let What::Tails { producers, rate } = what {
        show("tails", &tails::full(producers, *rate, only, reps, length));
    } else if all {
        show("tails", &tails::full(&deep::PRODUCERS, None, only, reps, length));
    }
    if let What::Bursts { producers } = what {
        show("bursts", &tails::bursts(producers, reps, length));
    }
    if let What::Full { producers } = what {
        for &producers in producers {
            for (who, runs) in stalled::interleaved(producers, only, reps, length) {
                let mean = latency::time(stalled::mean(&runs));
                report +=
                    &format!("full queue, sender stalled, {producers} producers, {}: {mean} a call\n", who.name());
            }
        }
    }
    if let What::Transports { cases } = what {
        let cells = transports::cells(cases, only, reps, length);
        report += &format!("\n{}", transports::table(&cells));
        results["transports"] = json!(cells);
    }
    if *what == What::Lossless {
        aims::shares(reps, length, &mut aims);
    }
    if matches!(what, What::All | What::Aims | What::Extra) {
        let (extra, more) = aims::extra(reps, length);
        aims.extend(more);
        results["extra"] = json!(extra);
    }
    let by = if let What::Growth { by } = what { Some(&by[..]) } else { all.then_some(&[][..]) };
    if let Some(by) = by {
        let sweeps = growth::sweeps(by, only, reps.min(3), length);
        report += &format!("\n{}", growth::table(&sweeps));
        plot::growth(&out.join("growth.svg"), &sweeps, &plot::Beside::nothing()).expect("a plot");
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

fn draw_latency(out: &Path, cells: &[Cell]) {
    let draw = |name: &str, title, of| plot::percentiles(&out.join(name), title, cells, of).expect("a plot");
    draw("publish-latency.svg", "A publish call, flat out", |sample| &sample.service);
    draw("receive-latency.svg", "From the call to the subscriber, flat out", |sample| &sample.receive);
}

fn draw_results(out: &Path, results: &[PathBuf], beside: Option<&Path>) {
    std::fs::create_dir_all(out).expect("a directory to write to");
    let read = |path: &Path| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("results")).expect("results as JSON")
    };
    let sweeps = |results: &Value| -> Vec<Sweep> {
        results.get("growth").map_or_else(Vec::new, |all| serde_json::from_value(all.clone()).expect("growth"))
    };
    let results: Vec<Value> = results.iter().map(|path| read(path)).collect();
    let latency = results.iter().filter_map(|results| results.get("latency"));
    let cells: Vec<Cell> =
        latency.flat_map(|cells| serde_json::from_value::<Vec<Cell>>(cells.clone()).expect("latency")).collect();
    if !cells.is_empty() {
        draw_latency(out, &cells);
    }
    let beside = beside.map(read).map_or_else(plot::Beside::nothing, |results| plot::Beside {
        name: format!("ours at {}", results["machine"]["commit"].as_str().unwrap_or("another commit")),
        sweeps: sweeps(&results),
    });
    let grown: Vec<Sweep> = results.iter().flat_map(sweeps).collect();
    if !grown.is_empty() {
        plot::growth(&out.join("growth.svg"), &grown, &beside).expect("a plot");
    }
}
