//! What peers that mean no good cost a publisher, in figures: those that README and documentation quote. Nothing is judged.

use crate::child::Child;
use crate::os;
use crate::rig::{Load, Rig, run_for};
use std::time::{Duration, Instant};

/// How often the memory is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a publisher has to give back what its peers took.
const AFTER: Duration = Duration::from_secs(3);

pub fn run(each: Duration) {
    for (peers, bytes) in [(1, 240), (8, 240), (1, 20), (8, 20)] {
        for is_idle in [true, false] {
            let what = format!(
                "{peers} {} subscribing to topics of {bytes} bytes, {:.0} s, the publisher {}",
                if peers == 1 { "peer" } else { "peers" },
                each.as_secs_f64(),
                if is_idle { "idle" } else { "at 60,000 calls/s" }
            );
            match if is_idle { idle(peers, bytes, each) } else { busy(peers, bytes, each) } {
                Ok(figures) => println!("flood {what}: {figures}"),
                Err(what_went_wrong) => println!("flood {what}: {what_went_wrong}"),
            }
        }
    }
}

fn idle(peers: usize, bytes: usize, time: Duration) -> Result<String, String> {
    let mut idle = Child::spawn("idle", "");
    let endpoint = idle.wait_for("ready")?.text("endpoint").to_owned();
    let figures = flood(idle.pid(), &endpoint, peers, bytes, time)?;
    idle.tell("stop");
    idle.wait_for("stopped")?;
    Ok(figures)
}

fn busy(peers: usize, bytes: usize, time: Duration) -> Result<String, String> {
    let mut rig = Rig::start(Load::default(), 1)?;
    rig.go();
    run_for(Duration::from_secs(1));
    let figures = flood(rig.publisher.pid(), &rig.endpoint.clone(), peers, bytes, time)?;
    // Not judged by the bench's rules, which such a flood may break: a stop that is not done by its deadline, say.
    let publisher = rig.end()?;
    let [calls, accepted, evicted, worst] =
        ["calls", "accepted", "evicted", "worst_us"].map(|name| publisher.number(name));
    let stopped = if publisher.number("closed") == 1 { "" } else { ", not stopped by its deadline" };
    Ok(format!("{figures}; {calls} calls, {accepted} events, {evicted} evicted, worst call {worst} us{stopped}"))
}

fn flood(pid: u32, endpoint: &str, peers: usize, bytes: usize, time: Duration) -> Result<String, String> {
    let before = os::rss_kb(pid);
    let mut hostile = Child::spawn("hostile", &format!("endpoint={endpoint} what=topics peers={peers} bytes={bytes}"));
    hostile.wait_for("begun")?;
    let (until, mut most) = (Instant::now() + time, before);
    while Instant::now() < until {
        run_for(LOOK);
        most = most.max(os::rss_kb(pid));
    }
    hostile.tell("enough");
    let sent = hostile.wait_for("report")?.number("done");
    most = most.max(os::rss_kb(pid));
    run_for(AFTER);
    let after = os::rss_kb(pid);
    if after == 0 {
        return Err("the publisher is gone".to_owned());
    }
    let grown = most - before;
    Ok(format!(
        "{sent} topics sent, grown by {} MiB ({:.0} MiB/s), {} MiB more than before after they left",
        grown >> 10,
        grown as f64 / 1024.0 / time.as_secs_f64(),
        after.saturating_sub(before) >> 10
    ))
}
