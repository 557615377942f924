//! `kv-events`: the tools people run beside a master, a router or an engine.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "these panic where nobody listens; `out` is for all that is written"
)]

mod abort;
mod decode;
mod input;
mod out;
mod replay;
mod signals;
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
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(told) => return tell(&told),
    };
    // What `tail` would be warned of is what it prints.
    let filter = if matches!(command, Command::Tail(_)) { "error" } else { "warn" };
    log_to_stderr(filter);
    let outcome = match command {
        Command::Decode(args) => decode::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Tail(args) => tail::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        out::say(format_args!("kv-events: {error:#}"));
        ExitCode::FAILURE
    })
}

/// Logs what `RUST_LOG` says, or if it says nothing what `default` does.
fn log_to_stderr(default: &str) {
    let wanted = std::env::var(env_logger::DEFAULT_FILTER_ENV).unwrap_or_else(|_| default.to_owned());
    // The logger's own complaint about a filter that cannot be read would be a panic if nobody listened.
    let read = env_filter::Builder::new().try_parse(&wanted).map(drop);
    if let Err(error) = &read {
        out::say(format_args!("kv-events: {}: {error}; it is taken as {default}", env_logger::DEFAULT_FILTER_ENV));
    }
    env_logger::Builder::new()
        .parse_filters(if read.is_ok() { &wanted } else { default })
        .target(env_logger::Target::Pipe(Box::new(out::Log)))
        .init();
}

/// Help and the version were asked for, so they must be written; what is wrong with the arguments is told as far as it can
/// be.
fn tell(told: &clap::Error) -> ExitCode {
    match told.print() {
        Err(error) if !told.use_stderr() && !out::is_gone(&error) => {
            out::say(format_args!("kv-events: cannot write: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2)),
    }
}
