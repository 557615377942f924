//! The checked-in C header is the one that the sources make. `KV_EVENTS_WRITE_HEADER=1` writes it instead.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml can be read");
    let builder = cbindgen::Builder::new().with_config(config).with_src(root.join("src/capi/mod.rs"));
    let mut made = Vec::new();
    builder.generate().expect("the sources make a header").write(&mut made);
    // cbindgen knows no prefix for the variants but the type's name.
    let made = String::from_utf8(made).expect("a header is text").replace("KV_EVENTS_CODE_T_", "KV_EVENTS_");

    let header = root.join("include/kv_events.h");
    if std::env::var_os("KV_EVENTS_WRITE_HEADER").is_some() {
        std::fs::create_dir_all(header.with_file_name("")).unwrap();
        std::fs::write(&header, &made).unwrap();
    }
    let checked_in = std::fs::read_to_string(&header).expect("include/kv_events.h is there");
    assert!(
        made == checked_in,
        "include/kv_events.h is not what src/capi makes; run \
         `KV_EVENTS_WRITE_HEADER=1 cargo test --test capi_header` and check the difference in"
    );
}
