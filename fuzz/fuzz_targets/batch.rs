//! Payloads.
#![no_main]

mod checks;

libfuzzer_sys::fuzz_target!(|payload: &[u8]| checks::batch(payload));
