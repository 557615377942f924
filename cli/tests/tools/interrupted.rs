//! The tools interrupted in the middle of their work, or with an output that nobody reads, and what they show on terminals.
#![cfg(target_os = "linux")]

use super::ends::{said, signal, tool};

use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::Builder;
use test_support::pty::Pty;
use test_support::publisher::{Publisher, engine, master};

/// A payload of so many events, none of which is one.
fn nils(count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    rmp::encode::write_array_len(&mut out, 2).unwrap();
    rmp::encode::write_uint(&mut out, 1).unwrap();
    rmp::encode::write_array_len(&mut out, count).unwrap();
    out.resize(out.len() + count as usize, 0xc0);
    out
}

#[test]
fn work_inside_one_message_is_interrupted() {
    const NILS: u32 = 15 << 20;
    for mode in [["--json"].as_slice(), &[]] {
        let publisher = Publisher::new();
        let args = [&["tail", &publisher.endpoint], mode].concat();
        let mut child = tool(&args).stdout(Stdio::piped()).spawn().unwrap();
        publisher.await_subscription();
        publisher.send(1, &nils(NILS));
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("wrong_type") {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0);
        }
        signal(&child, libc::SIGINT);
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let before = if mode.is_empty() { "messages, " } else { "\"events\":" };
        let (_, events) = rest.rsplit_once(before).expect("there is a summary");
        let events: u32 = events.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        assert!((1..NILS).contains(&events), "{mode:?}: {events}");
    }
}

#[test]
fn work_inside_one_event_is_interrupted() {
    const HASHES: u32 = 5 << 20;
    let mut payload = vec![0x92, 1, 0x91, 0x93];
    rmp::encode::write_str(&mut payload, "BlockRemoved").unwrap();
    rmp::encode::write_array_len(&mut payload, HASHES).unwrap();
    payload.extend([0xc4, 1, 5].repeat(HASHES as usize));
    payload.push(0xc0);
    let publisher = Publisher::new();
    let mut child =
        tool(&["tail", "--json", &publisher.endpoint]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    publisher.await_subscription();
    publisher.send(1, &payload);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut event) = (String::new(), vec![0; 100_000]);
    lines.read_line(&mut line).unwrap();
    lines.read_exact(&mut event).unwrap();
    signal(&child, libc::SIGINT);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(said(&output).contains("the line of an event is cut") && output.status.code() == Some(0), "{output:?}");
    // A line of its own, all the same.
    let summary: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["line"], &summary["events"]), (&"summary".into(), &1.into()));
}

#[test]
fn a_key_ends_the_figures_inside_one_message() {
    const NILS: u32 = 15 << 20;
    let publisher = Publisher::new();
    let mut pty = Pty::run(&mut tool(&["tail", "--top", &publisher.endpoint]), 24, 80);
    publisher.await_subscription();
    pty.until_shown(&["q quits"]);
    publisher.send(1, &nils(NILS));
    // The first message is counted before its events are.
    pty.until(|screen| {
        let contents = screen.contents();
        contents.lines().any(|line| line.contains("live")) && contents.contains("\ntcp://")
    });
    pty.type_in(b"q");
    let (screen, status) = pty.end("1 messages, ");
    let (_, events) = screen.split_once("1 messages, ").unwrap();
    let events: u32 = events.split(' ').next().unwrap().parse().unwrap();
    assert!(status.success() && events < NILS, "{screen}");
}

/// A `tail` that has more to write than any pipe holds.
fn unread_tail(publisher: &Publisher) -> Child {
    let args = ["tail", "--json", &publisher.endpoint];
    let child = tool(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    publisher.await_subscription();
    publisher.send(1, &nils(1 << 20));
    child
}

/// Reads lines until one of them has one of these parts; returns which.
fn until(said: &mut impl Iterator<Item = String>, parts: &[&'static str]) -> &'static str {
    let found = said.find_map(|line| parts.iter().copied().find(|part| line.contains(part)));
    found.unwrap_or_else(|| panic!("it says one of {parts:?}"))
}

#[test]
fn an_output_that_nobody_reads_is_told_and_given_up_at_the_first_signal() {
    let publisher = Publisher::new();
    let mut child = unread_tail(&publisher);
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    until(&mut said, &["the standard output is not read; it is waited for"]);
    signal(&child, libc::SIGTERM);
    let first = until(&mut said, &["cannot write: the standard output is not read", "once more"]);
    assert!(first.starts_with("cannot write"), "{first}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn an_output_that_was_read_a_moment_ago_is_waited_for_until_a_second_signal() {
    let publisher = Publisher::new();
    // Unless a second has passed since it was read, which may be so where a machine stands still.
    let waited = (0..20).any(|_| {
        let mut child = unread_tail(&publisher);
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut lines = child.stdout.take().unwrap();
        lines.read_exact(&mut [0; 1 << 17]).unwrap();
        signal(&child, libc::SIGTERM);
        let waits = until(&mut said, &["cannot write", "once more ends it at once"]) == "once more ends it at once";
        signal(&child, libc::SIGTERM);
        assert_eq!(child.wait().unwrap().code(), Some(if waits { 130 } else { 1 }));
        waits
    });
    assert!(waited);
}

/// Waits for its end, and returns the most memory it had resident, bytes.
fn end_and_peak(child: Child) -> (ExitStatus, u64) {
    use std::os::unix::process::ExitStatusExt;
    let mut status = 0;
    // SAFETY: an all-zero `rusage` is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child was not waited for; both places are valid for the call.
    let ended = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    assert_eq!(ended, child.id() as libc::pid_t);
    (ExitStatus::from_raw(status), usage.ru_maxrss as u64 * 1024)
}

#[test]
fn a_line_that_never_ends_is_an_error_and_no_memory() {
    for (args, name) in [
        (vec!["decode"], "the standard input, line 2: longer than 67108864 bytes"),
        (vec!["replay", "--trace", "/dev/stdin"], "line 1: longer than 67108864 bytes"),
        (vec!["decode", "--max-line", "64K"], "the standard input, line 2: longer than 65536 bytes"),
        (vec!["replay", "--trace", "/dev/stdin", "--max-line", "1000"], "line 1: longer than 1000 bytes"),
    ] {
        let mut child =
            tool(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let is_decode = args[0] == "decode";
        let endless = Builder::new().spawn(move || {
            let _ = input.write_all(if is_decode { b"920190\n" } else { b"" });
            let chunk = [b'a'; 1 << 16];
            while input.write_all(&chunk).is_ok() {}
        });
        let (mut output, mut said) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let (status, peak) = end_and_peak(child);
        endless.unwrap().join().unwrap();
        assert_eq!(status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(name), "{args:?}: {said}");
        assert_eq!(output.lines().count(), usize::from(is_decode), "what stood before it was decoded");
        assert!(peak < 200 << 20, "{args:?}: {peak} bytes");
    }
}

#[test]
fn json_on_a_terminal_has_nothing_in_it_that_is_not_seen() {
    let key = "a\u{202e}\u{200d}\u{e0041}\u{2028}\u{9b}b";
    let escaped = r#""object_key":"a\u202e\u200d\udb40\udc41\u2028\u009bb""#;
    let publisher = Publisher::new();
    let args = ["tail", "--json", "--limit", "1", &publisher.endpoint];
    let mut pty = Pty::run(&mut tool(&args), 60, 300);
    publisher.await_subscription();
    publisher.send(1, &master(1000, 1, &[key]));
    pty.until_shown(&[escaped, "summary"]);
    // A program gets the characters themselves, but for those that would be commands if it passed them on to a terminal.
    let child = tool(&args).stdout(Stdio::piped()).spawn().unwrap();
    publisher.await_subscription();
    publisher.send(1, &master(1000, 1, &[key]));
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(output.contains("\"a\u{202e}\u{200d}\u{e0041}\u{2028}\\u009bb\""), "{output}");

    let payload: String = master(1000, 1, &[key]).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = std::env::temp_dir().join(format!("kv-events-ends-{}.hex", std::process::id()));
    std::fs::write(&path, payload).unwrap();
    let mut pty = Pty::run(&mut tool(&["decode", path.to_str().unwrap()]), 60, 300);
    pty.until_shown(&[escaped]);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn figures_in_lines_have_the_rate_of_the_first_second() {
    let publisher = Publisher::new();
    let mut child = tool(&["tail", "--top", &publisher.endpoint]).stdout(Stdio::piped()).spawn().unwrap();
    publisher.await_subscription();
    // A topic of its own is a source that nobody knew of before.
    publisher.send_to(b"kv", 1, &engine(1.0, &[1, 2, 3]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains(&format!("{} kv ", publisher.endpoint))).unwrap();
    assert!(line.contains("so far 1 messages, 3 events"), "{line}");
    assert!(!line.contains(" 0 messages/s, 0 events/s"), "{line}");
    signal(&child, libc::SIGTERM);
    drop(lines);
    child.wait().unwrap();
}

#[test]
fn no_descriptor_of_a_terminal_is_made_not_to_wait() {
    // What is shared with the shell stays as it is: `O_NONBLOCK` on its terminal or pipe would break it.
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let shared = writer.try_clone().unwrap();
    let status = tool(&["decode", "/dev/null"]).stdout(writer).status().unwrap();
    assert!(status.success());
    // SAFETY: the descriptor is open, and no memory is involved.
    let flags = unsafe { libc::fcntl(shared.as_raw_fd(), libc::F_GETFL) };
    assert_eq!(flags & libc::O_NONBLOCK, 0);
    drop(shared);
    assert_eq!(File::from(reader).read(&mut [0]).unwrap(), 0);
}
