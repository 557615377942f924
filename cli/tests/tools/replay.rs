//! `kv-events replay` as people run it.

use simulated_master::workload;
use test_support::skipped;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use test_support::pty::Pty;

const KEYS: [&str; 20] = [
    "events_accepted",
    "events_published",
    "events_evicted",
    "events_failed",
    "events_abandoned",
    "events_skipped",
    "events_refused",
    "messages",
    "bytes",
    "sequence_last",
    "gaps_seen",
    "events_missed",
    "events_received",
    "resyncs",
    "checkpoints",
    "publish_ns",
    "receive_us",
    "elapsed_s",
    "producers",
    "view",
];

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace.jsonl")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kv-events"));
    command.arg("replay").args(args);
    command
}

/// A run over the shipped trace that must succeed.
fn replay(args: &[&str]) -> Report {
    let trace = trace();
    let mut all = vec!["--json", "--trace", trace.to_str().unwrap()];
    all.extend(args);
    Report::of(&command(&all).output().unwrap())
}

#[derive(Debug)]
struct Report(Value);

impl Report {
    fn of(output: &Output) -> Report {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        let report = Report(serde_json::from_str(stdout.lines().last().unwrap()).unwrap());
        report.must_add_up();
        report
    }

    fn figure(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_else(|| panic!("no figure {key} in {}", self.0))
    }

    fn view(&self) -> &str {
        self.0["view"].as_str().unwrap()
    }

    fn must_add_up(&self) {
        let mut keys: Vec<&str> = self.0.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = KEYS.to_vec();
        keys.sort_unstable();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        for histogram in ["publish_ns", "receive_us"] {
            let quantiles = ["p50", "p99", "p999", "max"].map(|quantile| self.0[histogram][quantile].as_u64().unwrap());
            assert!(quantiles.is_sorted() && quantiles[3] > 0, "{histogram}: {quantiles:?}");
        }
        let figure = |key| self.figure(key);
        let lost = figure("events_evicted") + figure("events_failed");
        assert!(figure("events_accepted") > 10_000);
        assert_eq!(figure("events_accepted"), figure("events_published") + lost + figure("events_abandoned"));
        assert_eq!(figure("sequence_last"), figure("messages") + lost);
        assert_eq!(figure("events_missed"), lost);
        assert_eq!(figure("events_received"), figure("events_published"));
        assert_eq!([figure("events_skipped"), figure("events_refused")], [0, 0]);
        assert!(figure("bytes") > figure("events_published") * 100);
        assert!(figure("checkpoints") >= 50);
        assert!(figure("resyncs") <= figure("gaps_seen") && figure("gaps_seen") <= lost);
        assert_eq!(figure("resyncs") == 0, lost == 0);
        assert!(self.0["elapsed_s"].as_f64().unwrap() > 0.0);
        assert_eq!(self.view(), if lost == 0 { "equal" } else { "equal_after_resync" });
    }
}

#[test]
fn an_overloaded_queue_of_any_size_ends_in_the_masters_view() {
    let mut evicted = 0;
    for capacity in ["1", "2", "64"] {
        for burst in ["1", "8"] {
            for producers in ["1", "4"] {
                let report = replay(&[
                    "--rate",
                    "max",
                    "--queue-capacity",
                    capacity,
                    "--eviction-burst",
                    burst,
                    "--producers",
                    producers,
                    "--cpu-objects",
                    "200",
                    "--disk-objects",
                    "500",
                ]);
                assert_eq!(report.figure("producers").to_string(), producers);
                evicted += report.figure("events_evicted");
            }
        }
    }
    assert!(evicted > 0, "none of the runs was overloaded");
}

#[test]
fn a_queue_that_holds_everything_loses_nothing() {
    for (strategy, heartbeat) in [("nap", "0"), ("park", "0"), ("poll:100us", "1")] {
        let report = replay(&[
            "--rate",
            "max",
            "--queue-capacity",
            "1000000",
            "--wait-strategy",
            strategy,
            "--heartbeat",
            heartbeat,
            "--loops",
            "2",
            "--seed",
            "7",
        ]);
        assert_eq!((report.view(), report.figure("gaps_seen")), ("equal", 0));
        assert_eq!(report.figure("events_accepted"), report.figure("events_received"));
    }
}

#[test]
fn a_master_without_a_disk_and_with_hardly_any_memory_will_do() {
    replay(&["--rate", "max", "--cpu-objects", "1", "--disk-objects", "0"]);
}

/// The pace is kept from above, by sleeping; a machine that is too slow only makes the run longer.
#[test]
fn the_pace_is_kept() {
    let report = replay(&["--rate", "40000", "--producers", "2"]);
    let pace = report.figure("events_accepted") as f64 / report.0["elapsed_s"].as_f64().unwrap();
    // The sweeps at the checkpoints come on top.
    assert!(pace < 80_000.0, "{pace} events/s");
}

#[test]
fn the_report_is_readable_without_json() {
    let output = command(&["--rate", "max", "--trace", trace().to_str().unwrap()]).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for word in ["accepted", "published", "lost", "received", "view        equal"] {
        assert!(stdout.contains(word), "{word} is not in {stdout}");
    }
}

#[test]
fn a_terminal_shows_how_far_it_is_from_the_beginning() {
    // It never comes to the first checkpoint.
    let mut pty = Pty::run(&mut command(&["--start-after", "1000000"]), 24, 80);
    pty.until_shown(&["publishing on ", "0/60 checkpoints, starting"]);
    // It moves.
    pty.until(|screen| {
        let contents = screen.contents();
        let (_, elapsed) = contents.split_once("starting, ").unwrap_or_default();
        elapsed.starts_with(|c| ('1'..='9').contains(&c))
    });
    pty.child.kill().unwrap();
    pty.child.wait().unwrap();
}

#[test]
fn a_terminal_is_spared_the_progress_with_json() {
    let trace = trace();
    let args = ["--rate", "max", "--json", "--trace", trace.to_str().unwrap()];
    let mut pty = Pty::run(&mut command(&args), 24, 160);
    pty.until_shown(&["publishing on ", "\"view\":"]);
    let written = String::from_utf8_lossy(&pty.written);
    assert!(!written.contains(" checkpoints,") && !written.contains('\u{1b}'), "{written}");
    assert!(pty.child.wait().unwrap().success());
}

#[test]
fn real_requests_are_followed_without_a_loss() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces/conversation_trace.jsonl");
    if !trace.exists() {
        skipped(&format!("{} is not there", trace.display()));
        return;
    }
    let args = ["--trace", trace.to_str().unwrap(), "--producers", "4", "--json", "--queue-capacity", "1000000"];
    let report = Report::of(&command(&args).output().unwrap());
    assert_eq!((report.view(), report.figure("gaps_seen")), ("equal", 0));
    assert_eq!(report.figure("events_accepted"), report.figure("events_received"));
}

#[test]
fn a_subscriber_from_outside_can_join_before_the_start() {
    let trace = trace();
    let args = ["--trace", trace.to_str().unwrap(), "--start-after", "line", "--json", "--producers", "1"];
    let mut command = command(&args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = child.stdin.take();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let endpoint = line.trim_end().strip_prefix("publishing on ").unwrap();
    let subscriber = zmq::Context::new().socket(zmq::SUB).unwrap();
    subscriber.set_rcvhwm(0).unwrap();
    subscriber.set_rcvtimeo(60_000).unwrap();
    subscriber.set_subscribe(b"").unwrap();
    subscriber.connect(endpoint).unwrap();

    let (mut probes, mut objects, mut cleared, mut last) = (0, 0_u64, 0_u64, None);
    loop {
        let frames = subscriber.recv_multipart(0).unwrap();
        let sequence = u64::from_be_bytes(frames[1][..].try_into().unwrap());
        assert!(last.is_none_or(|last| sequence == last + 1), "{sequence} after {last:?}");
        last = Some(sequence);
        let batch = kv_events::decode::Batch::parse(&frames[2]).unwrap();
        for event in batch.events() {
            let event = event.unwrap();
            let envelope = event.envelope().unwrap();
            match (envelope.tenant_id, envelope.object_key, envelope.group_id) {
                (Some("kv-events-replay"), Some("probe"), _) if objects == 0 => {
                    probes += 1;
                    drop(start.take()); // joined: it may start
                }
                (Some("kv-events-replay"), Some("sentinel"), _) => {
                    let report = Report::of(&child.wait_with_output().unwrap());
                    assert!(probes > 0, "joined before the start");
                    assert_eq!(objects + cleared, report.figure("events_published"));
                    assert_eq!(last, Some(report.figure("sequence_last")));
                    return;
                }
                (Some(_), Some(_), Some(group)) => {
                    let number: Vec<&str> = group.split(':').collect();
                    let n: u64 = number[1].parse().unwrap();
                    assert!(number[0] == "p0" && (n == objects + 1 || n == objects), "{group} after {objects} events");
                    objects += 1;
                }
                (Some(_), None, None) => cleared += 1,
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn bad_input_is_named_and_nothing_is_replayed() {
    let dir = std::env::temp_dir();
    let file = |name: &str, content: &[u8]| {
        let path = dir.join(format!("kv-events-replay-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = br#"{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1, 2]}"#.as_slice();
    let not_json = file("not-json", &[good, b"\n", good, b"\nnot JSON\n", good].concat());
    let blank = file("blank", &[good, b"\n\n", good].concat());
    let cut = file("cut", &[good, b"\n", &good[..40]].concat());
    let no_ids = file("no-ids", br#"{"timestamp": 0, "input_length": 1, "output_length": 1}"#);
    let marked = file("marked", &[b"\xef\xbb\xbf", good].concat());
    let wide = file("wide", b"\xff\xfe{\0");
    let spaces = file("spaces", &[good, b"\n  \t\r\n", good].concat());
    let not_text = file("not-text", &[good, b"\n\xff\xfe\n"].concat());
    let empty = file("empty", b"");
    for (args, expected) in [
        (["--trace", &not_json], "line 3"),
        (["--trace", &blank], "line 2: is blank"),
        (["--trace", &spaces], "line 2: is blank"),
        (["--trace", &marked], "line 1: begins with a byte order mark (UTF-8)"),
        (["--trace", &wide], "line 1: begins with a byte order mark (UTF-16)"),
        (["--trace", &cut], "line 2"),
        (["--trace", &no_ids], "hash_ids"),
        (["--trace", &not_text], "line 2"),
        (["--trace", &empty], "holds no request"),
        (["--trace", "/nonexistent/trace"], "/nonexistent/trace"),
        (["--queue-capacity", "0"], "kv_events_queue_capacity"),
        (["--eviction-burst", "0"], "kv_events_eviction_burst"),
        (["--bind", "tcp://127.0.0.1:70000"], "tcp://127.0.0.1:70000"),
        (["--bind", "127.0.0.1"], "127.0.0.1"),
        (["--producers", "0"], "--producers"),
        (["--cpu-objects", "0"], "--cpu-objects"),
        (["--rate", "0"], "--rate"),
        (["--rate", "fast"], "--rate"),
        (["--wait-strategy", "sleep"], "--wait-strategy"),
        (["--start-after", "soon"], "--start-after"),
        (["--start-after", "1e30"], "--start-after"),
    ] {
        let output = command(&args).arg("--json").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
        assert!(stderr.contains(expected), "{args:?} is told as: {stderr}");
    }
    for path in [not_json, blank, cut, no_ids, not_text, empty, marked, wide, spaces] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_taken_endpoint_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", taken.local_addr().unwrap());
    let output = command(&["--bind", &endpoint]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains(&endpoint));
}

#[test]
fn the_shipped_trace_is_what_the_generator_makes() {
    let text = std::fs::read_to_string(trace()).unwrap();
    let shipped: Vec<workload::Request> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shipped, workload::generate(shipped.len(), 1));
}
