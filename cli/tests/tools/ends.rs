//! The tools where what they write to is full, closed, dead or unread, and where they are asked to end: every way out has
//! its exit status, and none is a panic or a signal.
#![cfg(target_os = "linux")]

use test_support::publisher;

use nix::fcntl::OFlag;
use nix::pty::{Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::termios::{FlowArg, SetArg, cfmakeraw, tcflow, tcgetattr, tcsetattr};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::Builder;
use test_support::pty::Pty;
use test_support::publisher::{Publisher, engine, master};

fn tool(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kv-events"));
    command.args(args);
    command
}

/// The same by a shell, with these redirections.
fn redirected(redirections: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" \"$@\" {redirections}"), env!("CARGO_BIN_EXE_kv-events")]).args(args);
    command
}

fn trace() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace.jsonl").to_str().unwrap().to_owned()
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: the child was not waited for, so its id is its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A reader that has gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_standard_error_that_takes_nothing_ends_no_replay() {
    let trace = trace();
    let args = ["replay", "--rate", "max", "--trace", &trace];
    for redirection in ["2>/dev/full", "2>&-", "2>/dev/null"] {
        // A filter of the log that cannot be read is complained of too.
        for filter in ["debug", "a=b=c"] {
            let output = redirected(redirection, &args).env("RUST_LOG", filter).output().unwrap();
            let report = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(0), "{redirection}: {output:?}");
            assert!(report.contains("view        equal"), "{redirection}: {report}");
        }
    }
    let output = tool(&args).stderr(closed_pipe()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Nor does one that changes what a failure comes to.
    let output = redirected("2>/dev/full", &["replay", "--trace", "/nonexistent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = redirected("2>/dev/full", &["replay", "--nonsense"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_standard_output_that_takes_nothing_is_a_failure_unless_its_reader_has_gone() {
    let trace = trace();
    let replay = ["replay", "--json", "--rate", "max", "--trace", &trace];
    for args in [replay.as_slice(), &["decode"], &["--help"], &["tail", "--help"], &["--version"]] {
        for (redirection, code, expected) in
            [(">/dev/full", 1, "cannot write"), (">&-", 0, ""), (">/dev/full 2>/dev/full", 1, ""), (">&- 2>&-", 0, "")]
        {
            let mut child = redirected(redirection, args).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(b"920190\n").unwrap_or_default();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{args:?} {redirection}: {output:?}");
            assert!(said(&output).contains(expected), "{args:?} {redirection}: {output:?}");
        }
        let mut child = tool(args).stdin(Stdio::piped()).stdout(closed_pipe()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"920190\n").unwrap_or_default();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(!said(&output).contains("cannot write"), "{args:?}: {output:?}");
    }
}

#[test]
fn a_tail_ends_by_the_same_rules() {
    for mode in [[].as_slice(), &["--json"], &["--top"]] {
        for (redirection, code, expected) in [
            (">/dev/full", 1, "cannot write"),
            (">/dev/full 2>/dev/full", 1, ""),
            (">&-", 0, ""),
            (">&- 2>&-", 0, ""),
            (">/dev/null 2>/dev/full", 0, ""),
        ] {
            let publisher = Publisher::new();
            let args = [&["tail", &publisher.endpoint, "--limit", "1"], mode].concat();
            let child = redirected(redirection, &args).stderr(Stdio::piped()).spawn().unwrap();
            publisher.await_subscription();
            publisher.send(1, &master(1000, 1, &["a"]));
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{mode:?} {redirection}: {output:?}");
            assert!(said(&output).contains(expected), "{mode:?} {redirection}: {output:?}");
        }
    }
}

/// A program whose controlling terminal can be closed.
struct Closable {
    terminal: File,
    slave: String,
    child: Child,
}

impl Closable {
    fn run(command: &mut Command, has_signal: bool) -> Self {
        // No other program that a test starts meanwhile may keep it open.
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname_r(&master).unwrap();
        let mut options = File::options();
        let slave = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open(&name).unwrap();
        // Nobody echoes what nobody types.
        let mut raw = tcgetattr(&slave).unwrap();
        cfmakeraw(&mut raw);
        tcsetattr(&slave, SetArg::TCSANOW, &raw).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the descriptor is open, and the call reads one `winsize`, which outlives it.
        assert_eq!(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
        let end = || slave.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        if has_signal {
            // SAFETY: both calls may be made between fork and exec, and touch no memory.
            unsafe {
                command.pre_exec(|| {
                    libc::setsid();
                    libc::ioctl(0, libc::TIOCSCTTY, 0);
                    Ok(())
                });
            }
        }
        let child = command.spawn().unwrap();
        // The command keeps its ends otherwise.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Closable { terminal: File::from(OwnedFd::from(master)), slave: name, child }
    }

    /// Reads until this was written.
    fn until(&mut self, wanted: &str) {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&read).contains(wanted) {
            let count = self.terminal.read(&mut buffer).expect("the program writes what is waited for");
            read.extend(&buffer[..count]);
        }
    }

    /// Closes the terminal: whoever reads or writes there fails from now on, and it is told by SIGHUP if it is its terminal.
    fn close(self) -> ExitStatus {
        let Closable { terminal, mut child, .. } = self;
        drop(terminal);
        child.wait().unwrap()
    }
}

#[test]
fn a_terminal_that_is_closed_ends_a_tail_in_order() {
    for mode in ["--top", "--json", "--duplicates"] {
        for has_signal in [true, false] {
            let publisher = Publisher::new();
            let mut closable = Closable::run(&mut tool(&["tail", mode, &publisher.endpoint]), has_signal);
            publisher.await_subscription();
            publisher.send(1, &master(1000, 1, &["a", "b"]));
            closable.until(if mode == "--top" { "q quits" } else { "started" });
            let (mut sequence, mut closed) = (1, Builder::new());
            closed = closed.name("closes it".to_owned());
            let closed = closed.spawn(|| closable.close()).unwrap();
            // Without the signal a write is what finds out.
            while !closed.is_finished() {
                sequence += 1;
                publisher.send(sequence, &master(1000, sequence + 1, &["a"]));
                std::thread::yield_now();
            }
            let status = closed.join().unwrap();
            assert_eq!(status.code(), Some(0), "{mode}, signal {has_signal}: {status}");
        }
    }
}

#[test]
fn a_terminal_that_is_closed_interrupts_a_replay() {
    let mut closable = Closable::run(&mut tool(&["replay", "--loops", "1000"]), true);
    closable.until("checkpoints, ");
    assert_eq!(closable.close().code(), Some(3));
    // Without the signal nothing tells, and the run goes on to its end.
    let trace = trace();
    let mut closable = Closable::run(&mut tool(&["replay", "--trace", &trace, "--rate", "max"]), false);
    closable.until("publishing on");
    assert_eq!(closable.close().code(), Some(0));
}

#[test]
fn a_terminal_that_nobody_reads_holds_up_no_replay() {
    let mut closable = Closable::run(&mut tool(&["replay", "--loops", "1000"]), true);
    closable.until("checkpoints, ");
    // As Ctrl-S does: from now on the terminal takes nothing.
    let stopped = File::options().write(true).custom_flags(libc::O_NOCTTY).open(&closable.slave).unwrap();
    tcflow(&stopped, FlowArg::TCOOFF).unwrap();
    signal(&closable.child, libc::SIGTERM);
    // The report cannot be written.
    assert_eq!(closable.child.wait().unwrap().code(), Some(1));
}

#[test]
fn who_ignores_the_end_of_a_terminal_is_not_ended_by_it() {
    let publisher = Publisher::new();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_kv-events"), "tail", "--json"]);
    let mut child = command.arg(&publisher.endpoint).stdout(Stdio::piped()).spawn().unwrap();
    publisher.await_subscription();
    signal(&child, libc::SIGHUP);
    publisher.send(1, &master(1000, 1, &["a"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("started") && lines.next().unwrap().contains("event"));
    signal(&child, libc::SIGTERM);
    assert!(lines.next().unwrap().contains("summary"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_replay_that_is_interrupted_reports_what_it_has() {
    // As fast as it goes; with years between two events; and before the first.
    for args in [&["--loops", "1000000"], &["--rate", "0.001"], &["--start-after", "1000000"]] {
        for end in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let mut command = tool(&["replay", "--json"]);
            let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut stderr = BufReader::new(child.stderr.take().unwrap());
            let mut line = String::new();
            stderr.read_line(&mut line).unwrap();
            // Joined once a message was received from outside.
            join(line.trim_end().strip_prefix("publishing on ").unwrap());
            signal(&child, end);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(3), "{args:?}: {output:?}");
            let report = String::from_utf8(output.stdout).unwrap();
            let report: Value = serde_json::from_str(report.trim_end()).unwrap();
            assert_eq!(
                (&report["interrupted"], &report["view"]),
                (&true.into(), &"equal".into()),
                "{args:?}: {report}"
            );
            assert_eq!(report["events_accepted"], report["events_received"], "{args:?}: {report}");
        }
    }
}

/// Waits until a subscriber from outside has received two messages: the second one is said when the first was heard.
fn join(endpoint: &str) {
    let subscriber = zmq::Context::new().socket(zmq::SUB).unwrap();
    subscriber.set_rcvtimeo(publisher::PATIENCE_MS).unwrap();
    subscriber.set_subscribe(b"").unwrap();
    subscriber.connect(endpoint).unwrap();
    // Probes come every 50 ms until the subscriber of the replay itself has joined, then only what it is about.
    for _ in 0..2 {
        subscriber.recv_multipart(0).unwrap();
    }
}

#[test]
fn a_replay_that_is_interrupted_leaves_the_terminal_as_it_was() {
    let mut pty = Pty::run(&mut tool(&["replay", "--loops", "1000"]), 24, 100);
    pty.until(|screen| screen.contents().contains("1/"));
    signal(&pty.child, libc::SIGINT);
    let (screen, status) = pty.end("interrupted by a signal");
    assert_eq!(status.code(), Some(3), "{screen}");
    assert!(screen.contains("view        equal") && !screen.contains("checkpoints,"), "{screen}");
}

#[test]
fn a_dumb_terminal_gets_text_and_nothing_else() {
    let publisher = Publisher::new();
    let trace = trace();
    for (args, part) in [
        (vec!["tail", &publisher.endpoint, "--limit", "1"], "1 events in"),
        (vec!["tail", "--top", &publisher.endpoint, "--limit", "1"], "1 events in"),
        (vec!["replay", "--rate", "max", "--trace", &trace], "view        equal"),
    ] {
        for term in ["dumb", ""] {
            let mut pty = Pty::run(tool(&args).env("TERM", term), 24, 100);
            if args[0] == "tail" {
                publisher.await_subscription();
                publisher.send(1, &master(1000, 1, &["a"]));
            }
            pty.until_shown(&[part]);
            assert!(!pty.written.contains(&b'\x1b'), "{args:?}: {}", String::from_utf8_lossy(&pty.written));
            assert_eq!(pty.end(part).1.code(), Some(0));
        }
    }
    for (no_colour, has_colour) in [("1", false), ("", true)] {
        let mut pty =
            Pty::run(tool(&["tail", &publisher.endpoint, "--limit", "1"]).env("NO_COLOR", no_colour), 24, 100);
        publisher.await_subscription();
        publisher.send(1, &master(1000, 1, &["a"]));
        pty.until_shown(&["1 events in"]);
        assert_eq!(pty.written.contains(&b'\x1b'), has_colour, "{}", String::from_utf8_lossy(&pty.written));
    }
}

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
