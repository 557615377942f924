//! The replay's checks are themselves checked: over a publisher with a fault put in on purpose (`--cfg kv_events_faults`, see
//! `.ci/replay_faults`) the same run must fail. In any other build there is no fault to switch on.

use std::process::{Command, Output};

/// Runs overloaded until the fault shows, at most so many rounds of the built-in workload. One round shows it several
/// times on average.
fn replay(fault: &str, loops: &str, producers: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kv-events"))
        .args([
            "replay",
            "--json",
            "--rate",
            "max",
            "--queue-capacity",
            "64",
            "--loops",
            loops,
            "--producers",
            producers,
        ])
        .env("KV_EVENTS_FAULT", fault)
        .output()
        .unwrap()
}

fn view(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value = serde_json::from_str(stdout.trim_end()).unwrap();
    report["view"].as_str().unwrap().to_owned()
}

#[cfg(kv_events_faults)]
fn must_differ(fault: &str) {
    for producers in ["1", "4"] {
        let output = replay(fault, "60", producers);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(view(&output), "differs", "{producers} producers: {stderr}");
        assert!(!output.status.success(), "a run that differs must not exit with 0");
        assert!(stderr.contains("at message"), "it must say where: {stderr}");
    }
}

#[cfg(kv_events_faults)]
#[test]
fn a_gap_that_is_told_a_message_late_is_found() {
    must_differ("gap-late");
}

#[cfg(kv_events_faults)]
#[test]
fn a_call_carried_over_to_the_next_message_is_found() {
    must_differ("carry-over");
}

#[test]
fn without_a_fault_the_same_build_passes() {
    let output = replay("", "1", "4");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ne!(view(&output), "differs");
}

#[cfg(not(kv_events_faults))]
#[test]
fn a_tool_as_it_ships_has_no_faults() {
    let tool = std::fs::read(env!("CARGO_BIN_EXE_kv-events")).unwrap();
    let holds = |text: &[u8]| tool.windows(text.len()).any(|bytes| bytes == text);
    assert!(holds(b"queue-capacity") && !holds(b"KV_EVENTS_FAULT"));
    let output = replay("gap-late", "1", "4");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
