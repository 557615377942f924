//! What the tools come to where the system is short of descriptors or memory: an end with an error, never by a signal.
#![cfg(target_os = "linux")]

use kv_events::{Config, Publisher};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A tool under one limit from its first instruction on.
fn run(args: &[&str], resource: libc::__rlimit_resource_t, number: u64) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kv-events"));
    let limit = libc::rlimit { rlim_cur: number, rlim_max: number };
    // SAFETY: `setrlimit` may be called between fork and exec; `limit` is valid and only read.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(resource, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command.args(args).output()
}

/// Neither tool dies of a signal under any of the limits that lets the program begin at all, and the largest lets
/// both do their work.
fn none_dies(resource: libc::__rlimit_resource_t, limits: impl Iterator<Item = u64>) {
    let publisher = Arc::new(Publisher::start(Config::new("tcp://127.0.0.1:0", "b")).unwrap());
    let endpoint = publisher.bound_endpoint().unwrap();
    let speaker = Arc::downgrade(&publisher);
    std::thread::spawn(move || {
        while let Some(publisher) = speaker.upgrade() {
            publisher.cleared("t");
            drop(publisher);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/trace.jsonl");
    let tail = ["tail", "--limit", "1", endpoint];
    let replay = ["replay", "--json", "--rate", "max", "--producers", "2", "--trace", trace];
    let (mut begun, mut done) = (0, false);
    for number in limits {
        if !run(&["--version"], resource, number).is_ok_and(|output| output.status.success()) {
            continue;
        }
        begun += 1;
        let outputs = [&tail[..], &replay[..]].map(|args| run(args, resource, number).unwrap());
        for output in &outputs {
            assert_eq!(output.status.signal(), None, "limit {number}: {}", text(output));
        }
        done = outputs.iter().all(|output| output.status.success());
    }
    assert!(begun > 10 && done, "{begun} began, the last one: {done}");
}

#[test]
fn no_tool_dies_for_want_of_descriptors() {
    none_dies(libc::RLIMIT_NOFILE, (3..=40).chain([100]));
}

#[test]
fn no_tool_dies_for_want_of_memory() {
    none_dies(libc::RLIMIT_AS, (4..=120).step_by(4).chain((128..=512).step_by(32)).chain([4096]).map(|mib| mib << 20));
}
