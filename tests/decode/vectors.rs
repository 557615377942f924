//! Encoded events and payloads, each with its expected normal form or error class: the project's own, and more where
//! they are at hand.

#![cfg(feature = "serde")]

use test_support::skipped;

use std::path::Path;

use kv_events::decode::{Batch, Event, OwnedBatch};
use serde_json::{Value, json};

/// Equal, numbers by value: an integer and a float can be the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    assert_eq!(hex.len() % 2, 0, "{hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn decoded(kind: &str, input: &[u8]) -> Value {
    let value = match kind {
        "event" => Event::parse(input).map_or_else(serde_json::to_value, serde_json::to_value),
        "batch" => {
            let value = Batch::parse(input).map_or_else(serde_json::to_value, serde_json::to_value);
            let owned = OwnedBatch::parse(input.to_vec()).map_or_else(serde_json::to_value, serde_json::to_value);
            assert_eq!(value.as_ref().ok(), owned.as_ref().ok(), "the owned form differs");
            value
        }
        other => panic!("a vector of the kind {other}"),
    };
    value.expect("every outcome has a JSON form")
}

/// Checks all vectors of a file, and gives their number.
fn check(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).expect("the vectors can be read");
    let file: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    let vectors = file["vectors"].as_array().expect("an array of vectors");
    let mut wrong = Vec::new();
    for vector in vectors {
        let want = vector.get("expect").cloned().unwrap_or_else(|| json!({ "error": vector["error"] }));
        let kind = vector["kind"].as_str().expect("a kind");
        let got = decoded(kind, &bytes(vector["hex"].as_str().expect("hex")));
        if !same(&got, &want) {
            wrong.push(format!("{}\n  want {want}\n  got  {got}", vector["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
    vectors.len()
}

#[test]
fn own_vectors() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors.json");
    assert!(check(&own) > 500);
}

#[test]
fn vectors_beside_the_project() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/wire/vectors.json");
    if !beside.exists() {
        skipped(&format!("no vectors at {}", beside.display()));
        return;
    }
    assert_eq!(check(&beside), 586);
}
