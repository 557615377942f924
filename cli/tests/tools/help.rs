//! What `kv-events` says of itself to somebody who has nothing else.

use std::process::Command;

fn help(tool: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kv-events")).args([tool, "--help"]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// The part about each option that is the tool's own.
fn options(help: &str) -> Vec<String> {
    let (_, options) = help.split_once("\nOptions:\n").unwrap();
    let mut parts: Vec<String> = Vec::new();
    for line in options.lines().take_while(|line| line.is_empty() || line.starts_with(' ')) {
        if line.trim_start().starts_with('-') && line.len() - line.trim_start().len() < 8 {
            parts.push(String::new());
        }
        parts.last_mut().unwrap().push_str(&format!("{line}\n"));
    }
    parts.retain(|part| !part.contains("--help") && !part.contains("--version"));
    parts
}

#[test]
fn every_option_tells_its_default() {
    for (tool, count) in [("tail", 10), ("decode", 2), ("replay", 15)] {
        let options = options(&help(tool));
        assert!(options.len() >= count, "{tool}: {options:?}");
        for option in options {
            // What leaves out something else says what, and needs no default.
            assert!(option.contains("[default: ") || option.contains("instead of"), "{tool}: {option}");
        }
    }
}

#[test]
fn tail_tells_how_to_watch_engines() {
    let help = help("tail");
    let command = "kv-events tail --source engine --topic kv-events tcp://127.0.0.1:5557";
    for engine in ["vLLM", "SGLang"] {
        let (_, example) = help.rsplit_once(&format!("  {engine}, started with")).unwrap();
        assert!(example.contains(command), "{engine}: {help}");
    }
}

#[test]
fn tail_tells_what_its_lines_of_json_are() {
    let help = help("tail");
    let (_, table) = help.split_once("Lines of --json").unwrap();
    // The kinds, as `tail/json.rs` writes them.
    let source = include_str!("../../src/tail/json.rs");
    let written = |call| source.split(call).skip(1).map(|rest: &str| rest.split_once('"').unwrap().0);
    let kinds: Vec<_> = written("self.write(\"").chain(written("Line::new(\"")).collect();
    assert!(kinds.len() >= 7, "{kinds:?}");
    for kind in kinds {
        assert!(table.lines().any(|line| line.starts_with(&format!("  {kind} "))), "{kind}: {table}");
    }
}
