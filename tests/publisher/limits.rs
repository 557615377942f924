//! What a start and a connect come to where the system is short of descriptors, threads or memory: an error that says what
//! is missing, never the end of the process. Each case is a process of its own, since limits are a process's.
#![cfg(all(feature = "zmq", target_os = "linux"))]

use test_support::skipped;

use kv_events::subscriber::{ConnectError, Settings, Subscriber};
use kv_events::{Config, MediaSet, Object, Publisher, Shortage, StartError};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

/// What a case's process is told, as `JOB LIMIT NUMBER`.
const CASE: &str = "KV_EVENTS_LIMITS_CASE";
/// Descriptors of a publisher, and of a subscriber with two endpoints.
const PUBLISHER: u64 = 12;
const SUBSCRIBER: u64 = 2 + 2;

/// Runs `job` in a process with room for `number` of what `limit` limits. Returns what it came to.
fn case(job: &str, limit: &str, number: u64) -> String {
    outcome(job, limit, number, |command| command)
}

fn outcome(job: &str, limit: &str, number: u64, change: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["limits::limited", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(CASE, format!("{job} {limit} {number}"));
    let output = change(&mut command).output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{job}, {number} {limit}: {:?}: {text}", output.status);
    let came = text.lines().find_map(|line| line.split_once("came to: "));
    came.unwrap_or_else(|| panic!("{job}, {number} {limit}: {text}")).1.to_owned()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// The process of one case, where the environment says so; else nothing.
#[test]
fn limited() {
    let Ok(case) = std::env::var(CASE) else { return };
    let words: Vec<&str> = case.split(' ').collect();
    let number: u64 = words[2].parse().unwrap();
    // Whatever is needed to say what it came to is there before.
    println!("limited");
    match words[1] {
        "descriptors" => limit(libc::RLIMIT_NOFILE, descriptors_for(number)),
        "threads" => limit(libc::RLIMIT_NPROC, count_of("/proc/self/task") + number),
        _ => limit(libc::RLIMIT_AS, address_space() + (number << 10)),
    }
    let came_to = if words[0] == "start" { start() } else { connect() };
    println!("came to: {came_to}");
}

fn limit(resource: libc::__rlimit_resource_t, number: u64) {
    let limit = libc::rlimit { rlim_cur: number, rlim_max: number };
    // SAFETY: `limit` is valid and only read.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

/// The limit that leaves `free` descriptors.
fn descriptors_for(free: u64) -> u64 {
    // SAFETY: asks about a number, which need not be a descriptor.
    let is_open = |number: u64| unsafe { libc::fcntl(number as i32, libc::F_GETFD) } != -1;
    let (mut limit, mut found) = (0, 0);
    while found < free || is_open(limit) {
        found += u64::from(!is_open(limit));
        limit += 1;
    }
    limit
}

fn count_of(folder: &str) -> u64 {
    std::fs::read_dir(folder).unwrap().count() as u64
}

/// Bytes.
fn address_space() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

/// Starts a publisher, uses it and stops it.
fn start() -> String {
    match Publisher::start(Config::new("tcp://127.0.0.1:0", "b")) {
        Err(StartError::Resources(shortage)) => name(&shortage),
        Err(error) => format!("{error:?}"),
        Ok(publisher) => {
            publisher.committed(&Object::new("t", "k"), MediaSet::BOTH);
            let report = publisher.stop(Duration::from_secs(60));
            if report.closed && report.published == 2 { "ok".to_owned() } else { format!("{report:?}") }
        }
    }
}

fn connect() -> String {
    match Subscriber::connect(["tcp://127.0.0.1:1", "tcp://127.0.0.1:2"], &Settings::default()) {
        Err(ConnectError::Resources(shortage)) => name(&shortage),
        Err(error) => format!("{error:?}"),
        Ok(mut subscriber) => {
            let _ = subscriber.recv_timeout(Duration::from_millis(20));
            "ok".to_owned()
        }
    }
}

fn name(shortage: &Shortage) -> String {
    match shortage {
        Shortage::Descriptors { more, .. } => format!("descriptors {more}"),
        Shortage::Threads { more, .. } => format!("threads {more}"),
        Shortage::Memory { .. } => "memory".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_number_of_descriptors() {
    for free in 0..=40 {
        for (job, needed) in [("start", PUBLISHER), ("connect", SUBSCRIBER)] {
            let expected = match needed.saturating_sub(free) {
                0 => "ok".to_owned(),
                more => format!("descriptors {more}"),
            };
            assert_eq!(case(job, "descriptors", free), expected, "{job} with {free}");
        }
    }
}

/// As a user of its own, since root may have as many threads as it likes.
#[test]
fn every_number_of_threads() {
    let user = 1_900_000_000 + std::process::id();
    let as_user = |job: &str, free| outcome(job, "threads", free, |command| command.uid(user).current_dir("/"));
    let mut probe = Command::new(std::env::current_exe().unwrap());
    if !probe.uid(user).current_dir("/").arg("--list").output().is_ok_and(|output| output.status.success()) {
        skipped("nobody may become another user here, or that one may not read this program");
        return;
    }
    for free in 0..=6 {
        for (job, needed) in [("start", 3_u64), ("connect", 0)] {
            let expected = match needed.saturating_sub(free) {
                0 => "ok".to_owned(),
                more => format!("threads {more}"),
            };
            assert_eq!(as_user(job, free), expected, "{job} with {free}");
        }
    }
}

/// In steps of a MiB where something is about to fit, and some odd ones, then larger ones.
#[test]
fn address_space_in_steps() {
    const STEPS: usize = 64 + 33;
    let steps = (0..64).map(|mib| mib * 1024 + 4 * (mib % 5)).chain((64..=320).step_by(8).map(|mib| mib * 1024));
    let mut came = [0_usize; 2];
    for kib in steps {
        for (job, place) in [("start", 0), ("connect", 1)] {
            match &*case(job, "address-space", kib) {
                "ok" => came[place] += 1,
                "memory" => {}
                // A thread's stack is memory too.
                other if other.starts_with("threads") => {}
                other => panic!("{job} with {kib} KiB: {other}"),
            }
        }
    }
    // A subscriber takes less than a publisher.
    assert!(came[0] > 0 && came[0] < came[1] && came[1] < STEPS, "some are enough, some are not: {came:?}");
}

#[test]
fn what_is_missing_is_said_with_its_number() {
    let cause = || std::io::Error::from_raw_os_error(libc::EMFILE);
    let error = StartError::from(Shortage::Descriptors { more: 5, cause: cause() });
    assert!(error.to_string().starts_with("cannot open the socket: 5 more file descriptors are needed"), "{error}");
    let error = ConnectError::from(Shortage::Threads { more: 1, cause: cause() });
    assert!(error.to_string().starts_with("cannot open the socket: 1 more thread is needed"), "{error}");
    let error = StartError::from(Shortage::Memory { bytes: 16 << 20, cause: cause() });
    assert!(error.to_string().starts_with("cannot open the socket: 16 MiB of memory"), "{error}");
}
