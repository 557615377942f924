//! Producers on one processor, all else on the others: figures that do not depend on where the scheduler puts whom.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::OnceLock;

/// The producers' processor, if they have one.
static PRODUCERS: OnceLock<usize> = OnceLock::new();

/// Has the first processor for producers, and moves the calling thread, with all that it will start, to the others.
pub fn start() {
    let this = Pid::from_raw(0);
    let all = sched_getaffinity(this).expect("the processors that there are");
    let mut has = (0..CpuSet::count()).filter(|&processor| all.is_set(processor).unwrap_or(false));
    let first = has.next().expect("a processor");
    let mut others = CpuSet::new();
    for processor in has {
        others.set(processor).expect("a processor");
    }
    sched_setaffinity(this, &others).expect("more than one processor");
    PRODUCERS.set(first).expect("once");
}

/// Moves the calling thread to where producers are.
pub fn producer() {
    if let Some(&first) = PRODUCERS.get() {
        let mut own = CpuSet::new();
        own.set(first).expect("a processor");
        sched_setaffinity(Pid::from_raw(0), &own).expect("a processor that there is");
    }
}
