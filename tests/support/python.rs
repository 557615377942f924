//! The Python that some tests need, and how they say that there is none.

use std::ffi::OsString;
use std::io::Write;

/// The interpreter that `KV_EVENTS_PYTHON` names. Where it names none the test has nothing to run, and says so on the real
/// standard error, which the test harness does not hold back as it does what `println!` and `eprintln!` write.
///
/// An interpreter that is named and is of no use is not for this to find out: the test fails by it.
pub fn python(packages: &str) -> Option<OsString> {
    let python = std::env::var_os("KV_EVENTS_PYTHON");
    if python.is_none() {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        let line = format!("skipped: {test} needs a Python with {packages}; set KV_EVENTS_PYTHON=$(.ci/venv)\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    python
}
