//! Threads that are timed together.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs `work(thread, iterations)` on `threads` threads, `iterations` in all, and returns how long it took from when all
/// stood ready until the last was done.
pub fn timed(threads: usize, iterations: u64, work: impl Fn(usize, u64) + Sync) -> Duration {
    let share = iterations.div_ceil(threads as u64);
    let (ready, done) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, ready, done) = (&work, &ready, &done);
            scope.spawn(move || {
                ready.wait();
                work(thread, share);
                done.wait();
            });
        }
        ready.wait();
        let start = Instant::now();
        done.wait();
        start.elapsed()
    })
}
