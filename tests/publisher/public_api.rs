//! Compares the public interface with the one checked in. Run by `.ci/public_api`, which has rustdoc describe it.

use std::collections::BTreeSet;
use std::{env, fs};

const LISTING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/public-api.txt");

#[test]
#[ignore = "run by .ci/public_api"]
fn the_public_interface_is_the_one_checked_in() {
    let path = env::var("KV_EVENTS_RUSTDOC_JSON").expect(".ci/public_api names rustdoc's description");
    let description: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    if description["format_version"] != rustdoc_types::FORMAT_VERSION {
        println!(
            "NOT COMPARED: this rustdoc describes in format {}, the crate `rustdoc-types` here reads format {}",
            description["format_version"],
            rustdoc_types::FORMAT_VERSION
        );
        return;
    }
    let api = public_api::Builder::from_rustdoc_json(path).omit_blanket_impls(true).build().unwrap();
    let lines: BTreeSet<String> =
        api.items().map(|item| item.to_string()).filter(|line| tells_something(line)).collect();
    let now: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();

    let listed = fs::read_to_string(LISTING).unwrap_or_default();
    if now != listed && env::var_os("KV_EVENTS_RENEW").is_some() {
        fs::write(LISTING, now).unwrap();
        return;
    }
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    for line in listed.difference(&lines) {
        println!("- {line}");
    }
    for line in lines.difference(&listed) {
        println!("+ {line}");
    }
    assert!(
        lines == listed,
        "the public interface has changed; if that is meant: `.ci/public_api --renew`, and a line in CHANGELOG.md"
    );
}

/// Whether it is more than what another line implies: of the traits that the compiler implements by itself only `Send` and
/// `Sync` are chosen by anybody, and a trait's methods come with the trait.
fn tells_something(line: &str) -> bool {
    let by_itself = ["Freeze for", "Unpin for", "UnsafeUnpin for", "UnwindSafe for", "StructuralPartialEq for"];
    let of_traits = [
        "::fmt(&self, ",
        "::eq(&self, ",
        "::clone(&self)",
        "::hash<",
        "::cmp(&self, ",
        "::partial_cmp(&self, ",
        "::serialize<",
        "::deserialize<",
        "::drop(&mut self)",
    ];
    !(line.starts_with("impl") && by_itself.iter().any(|name| line.contains(name))
        || line.starts_with("pub fn") && of_traits.iter().any(|name| line.contains(name)))
}
