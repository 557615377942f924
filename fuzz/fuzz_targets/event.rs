//! Single events, bare and as one of a batch.
#![no_main]

mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    checks::event(bytes);
    // The same event among good siblings, which it must not harm.
    let mut payload = b"\x93\x01\x93\x91\xb0AllBlocksCleared".to_vec();
    payload.extend_from_slice(bytes);
    payload.extend_from_slice(b"\x91\xb0AllBlocksCleared\x00");
    checks::batch(&payload);
});
