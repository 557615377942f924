//! Clocks that mean the same in every process of a run.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Nanoseconds of the machine's monotonic clock.
#[inline]
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time the calling thread has used.
pub fn thread_cpu() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of processor time the process has used.
pub fn process_cpu() -> u64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("a clock that every Linux has");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// How often the calling thread gave the processor up: of its own accord (it waited), and because it was taken away.
pub fn switches() -> (u64, u64) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("a figure that every Linux has");
    (usage.voluntary_context_switches() as u64, usage.involuntary_context_switches() as u64)
}

/// The most memory the process has held so far, KiB. (What `getrusage` says would include the process that started it.)
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a file that every Linux has");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    peak.expect("a figure that every Linux has")
}

pub fn sleep_until(due: u64) {
    loop {
        let now = now();
        if now >= due {
            return;
        }
        std::thread::sleep(Duration::from_nanos(due - now));
    }
}
