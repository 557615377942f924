//! The Python that some tests need, and how they say that there is none.

use crate::skipped;
use std::ffi::OsString;

/// The interpreter that `KV_EVENTS_PYTHON` names. Where it names none the test has nothing to run, and says so.
///
/// An interpreter that is named and is of no use is not for this to find out: the test fails by it.
pub fn python(packages: &str) -> Option<OsString> {
    let python = std::env::var_os("KV_EVENTS_PYTHON");
    if python.is_none() {
        skipped(&format!("it needs a Python with {packages}; set KV_EVENTS_PYTHON=$(.ci/venv)"));
    }
    python
}
