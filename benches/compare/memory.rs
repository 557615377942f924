//! Peak memory with a full queue, in a process of its own.

use super::clock::peak_memory;
use super::run::{Who, start_ours};
use super::stalled::fill;
use super::subscriber::Subscriber;
use crate::support::peer::{Peer, Settings};
use crate::support::sinks::Gate;
use crate::support::{CAPACITY, KEY, Publish, config, keys, object};
use kv_events::Publisher;
use serde::Serialize;
use std::process::Command;
use std::time::{Duration, Instant};

/// Growth of the resident set at its peak, MiB.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Peak {
    /// The sender stands still: queue and buffers alone.
    pub queue: f64,
    /// The subscriber reads nothing: and all that ZeroMQ holds for it, `send_hwm` messages.
    pub stalled_subscriber: f64,
}

pub fn measure(who: Who) -> Peak {
    let name = if who == Who::Peer { "peer" } else { "ours" };
    let of = |case: &str| -> f64 {
        let output = Command::new(std::env::current_exe().expect("this binary"))
            .args(["memory", name, case])
            .output()
            .expect("this binary again");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let kib: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("KiB");
        kib / 1024.0
    };
    Peak { queue: of("queue"), stalled_subscriber: of("subscriber") }
}

/// The other process: prints KiB.
pub fn main(who: &str, case: &str) {
    let before = peak_memory();
    let gate = Gate::new(true);
    match (who, case) {
        ("ours", "queue") => {
            let publisher = Publisher::start_with(config(CAPACITY), gate.transport()).expect("a publisher");
            fill_up(&publisher, &gate);
        }
        ("peer", "queue") => {
            fill_up(&Peer::start_with(Settings::new(CAPACITY), String::new(), gate.peer_sink()), &gate);
        }
        ("ours", _) => flood(&start_ours(CAPACITY, 16, Default::default())),
        _ => flood(&Peer::start(Settings::new(CAPACITY))),
    }
    println!("{}", peak_memory() - before);
}

fn fill_up<P: Publish>(publisher: &P, gate: &Gate) {
    fill(publisher, gate, CAPACITY * 2);
    gate.set_open(true);
}

fn flood<P: Publish>(publisher: &P) {
    let mut subscriber = Subscriber::spawn(&publisher.endpoint(), "stalled");
    subscriber.wait_joined(|| publisher.stored(&object("probe")));
    let keys = keys(KEY);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        for key in &keys {
            publisher.stored(&object(key));
        }
    }
    let full = peak_memory();
    drop(subscriber);
    publisher.finish();
    assert!(peak_memory() < full + (64 << 10), "stopping took memory");
}
