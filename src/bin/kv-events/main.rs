//! `kv-events`: the tools people run beside a master, a router or an engine.

mod abort;
mod decode;
mod json;
mod replay;
mod tail;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// KV-cache event streams: replay traffic through a publisher, watch streams live, decode what was captured.
#[derive(Parser)]
#[command(name = "kv-events", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Decode(decode::Args),
    Replay(replay::Args),
    Tail(tail::Args),
}

fn main() -> ExitCode {
    abort::exit_instead();
    let command = Cli::parse().command;
    // What `tail` would be warned of is what it prints.
    let filter = if matches!(command, Command::Tail(_)) { "error" } else { "warn" };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(filter)).init();
    let outcome = match command {
        Command::Decode(args) => decode::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Tail(args) => tail::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("kv-events: {error:#}");
        ExitCode::FAILURE
    })
}
