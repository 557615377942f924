//! Reads an engine's stream (vLLM, SGLang ...), counts it, and publishes it again as a store's: an object for each block.
//!
//! `cargo run --example relay -- tcp://127.0.0.1:5556 tcp://127.0.0.1:5557`; a number behind them ends it after so many
//! messages.

use kv_events::decode::{Event, MediumName};
use kv_events::subscriber::{Delivery, Settings, Subscriber};
use kv_events::tracker::{Base, Verdict};
use kv_events::{Config, Medium, Object, Publisher};
use std::time::Duration;

const TENANT: &str = "engine";

/// An engine's own memory is memory, whatever it calls it.
fn medium(name: Option<MediumName<'_>>) -> Medium {
    if name.is_some_and(|name| name == "disk") { Medium::Disk } else { Medium::Cpu }
}

fn publish_again(publisher: &Publisher, event: &Event<'_>) {
    match event {
        Event::Stored(stored) => {
            for hash in stored.block_hashes.iter().filter_map(|hash| hash.low64()) {
                publisher.stored_on(&Object::new(TENANT, &format!("{hash:016x}")), medium(stored.medium));
            }
        }
        Event::Removed(removed) => {
            for hash in removed.block_hashes.iter().filter_map(|hash| hash.low64()) {
                publisher.removed_from(&Object::new(TENANT, &format!("{hash:016x}")), medium(removed.medium));
            }
        }
        Event::Cleared(_) => {
            publisher.cleared(TENANT);
        }
        _ => {}
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let engine = arguments.next().unwrap_or("tcp://127.0.0.1:5556".into());
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:5557".into());
    let limit: u64 = arguments.next().map_or(Ok(u64::MAX), |limit| limit.parse())?;
    let publisher = Publisher::start(Config::new(endpoint, "relay-example"))?;
    println!("publishing on {}", publisher.bound_endpoint().unwrap_or_default());
    let mut subscriber = Subscriber::connect([&engine], &Settings { base: Base::ENGINE, ..Settings::default() })?;
    let (mut messages, mut events, mut missed) = (0u64, 0u64, 0u64);
    while messages < limit {
        match subscriber.recv()? {
            Delivery::Notice { verdict: Verdict::Duplicate, .. } => {}
            Delivery::Notice { verdict, .. } => {
                // What was lost upstream is unknown, so everything said so far is taken back.
                missed += verdict.gap_size();
                publisher.cleared(TENANT);
            }
            Delivery::Message(message) => {
                messages += 1;
                for event in message.batch().events().flatten() {
                    events += 1;
                    publish_again(&publisher, &event);
                }
            }
            Delivery::Reconnected { .. } => {} // the next message tells
            Delivery::Malformed { reason, .. } => println!("not a message: {reason}"),
        }
    }
    let report = publisher.stop(Duration::from_secs(5));
    println!("in: {messages} messages, {events} events, {missed} missed; out: {} events", report.published);
    Ok(())
}
