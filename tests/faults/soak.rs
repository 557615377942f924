//! The soak: a long time flat out, then a long time at 50,000 calls a second, subscribers coming and going all the while.

use crate::os;
use crate::rig::{Load, Reading, Rig, run_for};
use crate::scenarios::figures;
use std::time::{Duration, Instant};

/// How often a subscriber is replaced.
const TERM: Duration = Duration::from_secs(5);

pub fn run(each: Duration) {
    let flat_out = Load { rate: 0, capacity: 65_536, hwm: 1_000, ..Load::default() };
    let paced = Load { rate: 50_000, ..Load::default() };
    for (name, load) in [("flat out", flat_out), ("50,000 calls/s", paced)] {
        match soak(each, load) {
            Ok(figures) => println!("ok  soak {name}: {figures}"),
            Err(what) => {
                println!("BAD soak {name}: {what}");
                std::process::exit(1);
            }
        }
    }
    println!("\ntest result: ok. 2 passed; 0 failed");
}

fn soak(time: Duration, load: Load) -> Result<String, String> {
    let mut rig = Rig::start(load, 1)?;
    rig.go();
    let began = Instant::now();
    let mut samples = Vec::new();
    let mut replaced = 0;
    while began.elapsed() < time {
        rig.join(Reading { hwm: 1_000, ..Reading::default() })?;
        run_for(TERM.min(time / 4));
        // Every other one is killed, the rest leave when all ends.
        if rig.readers.len() > 1 {
            rig.readers.remove(0).kill();
            replaced += 1;
        }
        samples.push(os::rss_kb(rig.publisher.pid()));
        println!("   {:>5.0} s: {} MiB resident", began.elapsed().as_secs_f64(), samples.last().unwrap() >> 10);
    }
    let outcome = rig.finish()?;
    // The first quarter is for queue and pool to fill.
    let steady = &samples[samples.len() / 4..];
    let (least, most) = (steady.iter().min().unwrap_or(&0), steady.iter().max().unwrap_or(&0));
    if *most > least + (32 << 10) {
        return Err(format!("memory is not constant: {least} to {most} KiB; {}", figures(&outcome)));
    }
    Ok(format!(
        "{replaced} subscribers replaced, {} to {} MiB resident; {}",
        least >> 10,
        most >> 10,
        figures(&outcome)
    ))
}
