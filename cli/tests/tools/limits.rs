//! What the tools come to where the system is short of descriptors, threads or memory: an end with an error, never by a signal
//! or a panic.
#![cfg(target_os = "linux")]

use kv_events::{Config, Publisher};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use test_support::skipped;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A user that nobody else is, whose threads are those of one tool, if it may be had.
type User = Option<u32>;

/// A tool under one limit from its first instruction on.
fn run(args: &[&str], resource: libc::__rlimit_resource_t, number: u64, user: User) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kv-events"));
    let limit = libc::rlimit { rlim_cur: number, rlim_max: number };
    // SAFETY: `setrlimit` may be called between fork and exec; `limit` is valid and only read.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(resource, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    if let Some(user) = user {
        command.uid(user).current_dir("/");
    }
    command.args(args).output()
}

/// No tool dies of a signal or a panic under any of the limits that lets the program begin at all, and the largest lets
/// all do their work. Returns how many let it begin.
fn none_dies(resource: libc::__rlimit_resource_t, limits: impl Iterator<Item = u64>, user: User) -> usize {
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
    let tools = [
        &["tail", "--limit", "1", endpoint][..],
        &["replay", "--json", "--rate", "max", "--producers", "2", "--trace", trace],
        &["decode", trace],
    ];
    let (mut begun, mut done) = (0, false);
    for number in limits {
        if !run(&["--version"], resource, number, user).is_ok_and(|output| output.status.success()) {
            continue;
        }
        begun += 1;
        let outputs = tools.map(|args| run(args, resource, number, user).unwrap());
        for (args, output) in tools.iter().zip(&outputs) {
            let said = text(output);
            assert_eq!(output.status.signal(), None, "{args:?}, limit {number}: {said}");
            assert_ne!(output.status.code(), Some(101), "{args:?}, limit {number}: {said}");
        }
        done = outputs.iter().all(|output| output.status.success());
    }
    assert!(done, "the last of {begun} lets all be done");
    begun
}

#[test]
fn no_tool_dies_for_want_of_descriptors() {
    assert!(none_dies(libc::RLIMIT_NOFILE, (0..=40).chain([100]), None) > 10);
}

#[test]
fn no_tool_dies_for_want_of_memory() {
    let limits = (4..=120).step_by(4).chain((128..=512).step_by(32)).chain([4096]);
    assert!(none_dies(libc::RLIMIT_AS, limits.map(|mib| mib << 20), None) > 10);
}

/// As a user of its own, since root may have as many threads as it likes.
#[test]
fn no_tool_dies_for_want_of_threads() {
    let user = 1_910_000_000 + std::process::id();
    if !run(&["--version"], libc::RLIMIT_NPROC, 100, Some(user)).is_ok_and(|output| output.status.success()) {
        skipped("nobody may become another user here, or that one may not run this program");
        return;
    }
    assert!(none_dies(libc::RLIMIT_NPROC, (0..=16).chain([100]), Some(user)) > 10);
}
