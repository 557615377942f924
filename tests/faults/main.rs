//! The fault bench: the real publisher, subscribers in other processes, and what happens to them in production.
//!
//! `cargo test --test faults` gives every fault a short moment; names pick some. For real runs:
//!
//! ```text
//! KV_EVENTS_FAULT_SECONDS=600 cargo test --release --test faults
//! KV_EVENTS_SOAK_SECONDS=1200 cargo test --release --test faults -- soak
//! KV_EVENTS_FLOOD_SECONDS=10 cargo test --release --test faults -- flood
//! ```
//!
//! After each fault the publisher's account has to balance, and every reader must have seen what the contract promises
//! (see `reader.rs`). Each row names the least that it must have done, and goes on until it has; one that did less fails.
//! One line tells the verdict: `ok` or `BAD`.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the fault bench needs Linux");
}

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod combined;
#[cfg(target_os = "linux")]
mod flood;
#[cfg(target_os = "linux")]
mod master;
#[cfg(target_os = "linux")]
mod os;
#[cfg(target_os = "linux")]
mod payload;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod reader;
#[cfg(target_os = "linux")]
mod rig;
#[cfg(target_os = "linux")]
mod scenarios;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
#[path = "../common/transport.rs"]
mod transport;
#[cfg(target_os = "linux")]
mod words;
#[cfg(target_os = "linux")]
use test_support::zmtp;

#[cfg(target_os = "linux")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words = words::Words::parse(args.iter().map(String::as_str));
    match args.first().map(String::as_str) {
        Some("role:master") => master::main(&words),
        Some("role:reader") => reader::main(&words),
        Some("role:storm") => peers::storm(&words),
        Some("role:hostile") => peers::hostile(&words),
        Some("role:idle") => master::idle(),
        Some("role:heartbeats") => peers::heartbeats(&words),
        Some("role:hog") => hog(&words),
        _ => bench(args.iter().map(String::as_str).filter(|arg| !arg.starts_with("--")).collect()),
    }
}

/// Keeps a core busy until it is killed.
#[cfg(target_os = "linux")]
fn hog(words: &words::Words) {
    os::bind(0, words.number("core") as usize).unwrap();
    println!("ready");
    loop {
        std::hint::spin_loop();
    }
}

#[cfg(target_os = "linux")]
fn bench(names: Vec<&str>) {
    use std::time::{Duration, Instant};
    let seconds = |name| std::env::var(name).ok().map(|text| text.parse::<f64>().expect("a number of seconds"));
    if names.contains(&"soak") {
        soak::run(Duration::from_secs_f64(seconds("KV_EVENTS_SOAK_SECONDS").unwrap_or(20.0)));
        return;
    }
    if names.contains(&"flood") {
        flood::run(Duration::from_secs_f64(seconds("KV_EVENTS_FLOOD_SECONDS").unwrap_or(10.0)));
        return;
    }
    let chosen: Vec<_> = scenarios::FAULTS
        .iter()
        .chain(combined::FAULTS)
        .filter(|fault| names.is_empty() || names.iter().any(|name| fault.name.contains(name)))
        .collect();
    let total = seconds("KV_EVENTS_FAULT_SECONDS").unwrap_or(chosen.len() as f64 * 0.5);
    let weights: u32 = chosen.iter().map(|fault| fault.weight).sum();
    let mut bad = 0;
    for fault in &chosen {
        let began = Instant::now();
        let share = total * f64::from(fault.weight) / f64::from(weights);
        let (word, figures) = match fault.verdict(Duration::from_secs_f64(share)) {
            Ok(seen) => match seen.skipped {
                Some(why) => ("skipped:", why.to_owned()),
                None => ("ok ", seen.text),
            },
            Err(what) => {
                bad += 1;
                ("BAD", what)
            }
        };
        println!("{word} {:<10} {}: {figures} ({:.1} s)", fault.name, fault.what, began.elapsed().as_secs_f64());
    }
    // In the words of test runners, for whoever counts.
    println!(
        "\ntest result: {}. {} passed; {bad} failed",
        if bad == 0 { "ok" } else { "FAILED" },
        chosen.len() as u32 - bad
    );
    std::process::exit(i32::from(bad > 0));
}
