//! `kv-events`: the tools people run beside a master, a router or an engine.

mod decode;
mod tail;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// KV-cache event streams: watch them live, decode what was captured.
#[derive(Parser)]
#[command(name = "kv-events", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Decode(decode::Args),
    Tail(tail::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Decode(args) => decode::run(&args),
        Command::Tail(args) => tail::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("kv-events: {error:#}");
        ExitCode::FAILURE
    })
}
