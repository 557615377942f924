//! How a test says that it tested nothing.

use std::io::Write;

/// Says so on the real standard error, which the test harness does not hold back as it does what `println!` and `eprintln!`
/// write.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
