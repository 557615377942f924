//! `kv-events tail --top` as a process, in a pseudo terminal and without one.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use test_support::pty::Pty;
use test_support::publisher::{Publisher, engine, master};

fn top(endpoints: &[&Publisher]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kv-events"));
    command.args(["tail", "--top"]).args(endpoints.iter().map(|publisher| &publisher.endpoint));
    command
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A line's words behind the name it begins with, of the `n`th such line.
fn figures(screen: &str, name: &str, n: usize) -> Vec<String> {
    let lines = screen.lines().filter_map(|line| line.trim_start().strip_prefix(name));
    lines.map(|rest| rest.split_whitespace().map(str::to_owned).collect()).nth(n).unwrap_or_default()
}

/// Events so far, and the last lag. A state may have two words, so it is counted from the end.
fn events_and_lag(screen: &str, source: &str) -> (String, String) {
    match &figures(screen, source, 0)[..] {
        [.., events, lag, _, _] => (events.clone(), lag.clone()),
        _ => Default::default(),
    }
}

#[test]
fn figures_stand_on_the_screen_and_q_gives_the_terminal_back() {
    let (first, second) = (Publisher::new(), Publisher::new());
    let mut pty = Pty::run(&mut top(&[&first, &second]), 24, 80);
    [&first, &second].into_iter().for_each(Publisher::await_subscription);
    let (one, two) = (first.endpoint.as_str(), second.endpoint.as_str());
    pty.until(|screen| figures(&screen.contents(), two, 0).first().is_some_and(|state| state == "waiting"));
    assert!(pty.is_raw());

    first.send(1, &master(now_ms(), 1, &["a", "b"]));
    // The same to the millisecond, or it would be a restart.
    let repeated = master(now_ms(), 3, &["c"]);
    first.send(5, &repeated);
    first.send(5, &repeated);
    first.send_frames(&[b"only one"]);
    second.send(0, &engine(12.5, &[7, 8, 9]));
    let screen = pty.until(|screen| {
        let screen = screen.contents();
        events_and_lag(&screen, one).0 == "3"
            && events_and_lag(&screen, two).0 == "3"
            && figures(&screen, one, 1).get(6).is_some_and(|malformed| malformed == "1")
    });
    // Messages, gaps, missed, share of events evicted (3 beside 3 received), restarts, duplicates, malformed, bad.
    let loss = figures(&screen, one, 1);
    assert_eq!(loss, ["2", "1", "3", "50.0%", "0", "1", "1", "0"], "{screen}");
    // An engine's clock that is no time of day has no lag; a master's has.
    assert_eq!(events_and_lag(&screen, two).1, "-", "{screen}");
    assert!(events_and_lag(&screen, one).1.ends_with('s'), "{screen}");
    assert_eq!(figures(&screen, "cpu", 0)[..3], ["3", "0", "0"], "{screen}");
    assert_eq!(figures(&screen, "gpu", 0)[..3], ["0", "3", "0"], "{screen}");
    assert!(screen.contains("TENANT (1)") && screen.contains("100%"), "{screen}");
    pty.until_shown(&["silent "]);

    pty.type_in(b"q");
    let (screen, status) = pty.end("2 messages, 3 events in ");
    assert!(status.success());
    assert!(
        screen.contains(
            "1 gaps, 3 numbers missed (3 events evicted, 50.00 % of all), 1 duplicates, 0 restarts, 1 malformed"
        ),
        "{screen}"
    );
    assert!(!screen.contains("q quits"), "{screen}");
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let publisher = Publisher::new();
    let mut pty = Pty::run(&mut top(&[&publisher]), 24, 80);
    pty.until(|screen| screen.contents().lines().filter(|line| line.starts_with("SOURCE")).count() == 2);
    pty.resize(30, 160);
    pty.until(|screen| {
        let contents = screen.contents();
        let heads: Vec<_> = contents.lines().filter(|line| line.starts_with("SOURCE")).collect();
        matches!(heads[..], [head] if head.contains("WORST") && head.contains("MALFORMED"))
    });
    pty.resize(3, 9);
    pty.until(|screen| screen.contents().lines().all(|line| !line.contains("STATE")));
    pty.resize(24, 80);
    pty.until_shown(&["MALFORMED", "q quits"]);
    pty.type_in(b"q");
    assert!(pty.end("0 messages").1.success());
}

#[test]
fn a_key_pressed_right_after_a_resize_is_heeded() {
    // Several times, since a look at the keys may fall between the two, and the signal may come behind the key.
    for _ in 0..5 {
        let publisher = Publisher::new();
        let mut pty = Pty::run(&mut top(&[&publisher]), 24, 80);
        pty.until_shown(&["q quits"]);
        pty.resize(30, 100);
        pty.type_in(b"q");
        pty.until(|screen| !screen.alternate_screen());
        assert!(pty.end("0 messages").1.success());
    }
}

#[test]
fn every_end_gives_the_terminal_back() {
    for end in ["ctrl-c", "SIGTERM", "limit"] {
        let publisher = Publisher::new();
        let mut command = top(&[&publisher]);
        if end == "limit" {
            command.args(["--limit", "2"]);
        }
        let mut pty = Pty::run(&mut command, 24, 80);
        publisher.await_subscription();
        pty.until_shown(&["q quits"]);
        match end {
            "ctrl-c" => pty.type_in(b"\x03"),
            "SIGTERM" => {
                // SAFETY: the child was not waited for, so its id is its own.
                assert_eq!(unsafe { libc::kill(pty.child.id() as libc::pid_t, libc::SIGTERM) }, 0);
            }
            _ => publisher.send(1, &master(1000, 1, &["a", "b", "c"])),
        }
        let events = if end == "limit" { 2 } else { 0 };
        assert!(pty.end(&format!("{events} events in")).1.success(), "{end}");
    }
}

#[test]
fn a_hostile_stream_writes_nothing_to_the_terminal_but_text() {
    let publisher = Publisher::new();
    let mut pty = Pty::run(&mut top(&[&publisher]), 24, 80);
    publisher.await_subscription();
    let mut payload = master(1000, 1, &["a"]);
    // A tenant of the same length that would clear the screen and leave it, and a medium that rings.
    let put = |payload: &mut Vec<u8>, old: &[u8], new: &[u8]| {
        let at = payload.windows(old.len()).position(|window| window == old).unwrap();
        payload[at..at + old.len()].copy_from_slice(new);
    };
    put(&mut payload, b"default", b"\x1b[2J\x1bcx");
    put(&mut payload, b"cpu", b"\x07\x07\x07");
    publisher.send_to(b"\x1b[?1049l", 1, &payload);
    let screen = pty.until_shown(&[r"\u{1b}[2J\u{1b}cx", r"\u{7}"]);
    assert!(screen.contains("q quits") && screen.contains(r"\u{1b}"), "{screen}");
    pty.type_in(b"q");
    let (screen, _) = pty.end("1 messages");
    assert!(screen.contains(r"\u{1b}[?1049l"), "{screen}");
}

#[test]
fn without_a_terminal_it_prints_lines() {
    let publisher = Publisher::new();
    let mut child = top(&[&publisher]).args(["--limit", "4"]).stdout(Stdio::piped()).spawn().unwrap();
    publisher.await_subscription();
    publisher.send(1, &master(now_ms(), 1, &["a", "b"]));
    publisher.send(3, &master(now_ms(), 3, &["c"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let so_far = "so far 2 messages, 3 events, 1 gaps, 1 missed, 0 restarts, 0 duplicates, 0 malformed, 0 bad";
    let line = lines.find(|line| line.ends_with(so_far)).expect("a line comes");
    assert!(line.contains(&publisher.endpoint) && line.contains(" messages/s, "), "{line}");
    publisher.send(4, &master(now_ms(), 4, &["d"]));
    let rest: Vec<_> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("3 messages, 4 events in ")), "{rest:?}");
    assert!(rest.iter().chain([&line]).all(|line| !line.contains(char::is_control)), "{rest:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_goes_with_other_output_is_refused() {
    for other in ["--json", "--duplicates"] {
        let output = top(&[]).args(["tcp://127.0.0.1:9", other]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{other}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(other));
    }
}
