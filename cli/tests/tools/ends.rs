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
use test_support::publisher::{Publisher, master};

pub fn tool(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kv-events"));
    command.args(args);
    command
}

/// The same by a shell, with these redirections.
pub fn redirected(redirections: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" \"$@\" {redirections}"), env!("CARGO_BIN_EXE_kv-events")]).args(args);
    command
}

pub fn trace() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace.jsonl").to_str().unwrap().to_owned()
}

pub fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: the child was not waited for, so its id is its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A reader that has gone.
pub fn closed_pipe() -> Stdio {
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
