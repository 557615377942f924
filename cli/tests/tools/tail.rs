//! `kv-events tail` as a process, on real TCP sockets.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use test_support::publisher::{Publisher, engine, master};

struct Tail {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Tail {
    /// Runs it, and waits until it listens to the publishers.
    fn listen(publishers: &[&Publisher], args: &[&str]) -> Self {
        let tail =
            Tail::start(&publishers.iter().map(|publisher| publisher.endpoint.as_str()).collect::<Vec<_>>(), args);
        publishers.iter().for_each(|publisher| publisher.await_subscription());
        tail
    }

    fn start(endpoints: &[&str], args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kv-events"))
            .arg("tail")
            .args(endpoints)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Tail { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "a line comes");
        line
    }

    /// The next line, without its source, which must be this one.
    fn json(&mut self, source: &str) -> Value {
        let mut line: Value = serde_json::from_str(&self.line()).unwrap();
        assert_eq!(line.as_object_mut().unwrap().remove("source"), Some(json!(source)));
        line
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the child was not waited for, so its id is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    /// What is left to read, what it complained of, and how it ended.
    fn end(mut self) -> (String, String, ExitStatus) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        let complaints = complaints(&mut self.child);
        (rest, complaints, self.child.wait().unwrap())
    }
}

/// All that stands on its standard error, but for who answers: on a slow machine publishers may be found to be late.
fn complaints(child: &mut Child) -> String {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.filter(|line| !line.starts_with("tail: ")).collect()
}

fn parse_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_stand_in_order_and_say_what_they_should() {
    let publisher = Publisher::new();
    let source = publisher.endpoint.as_str();
    let mut tail = Tail::listen(&[&publisher], &["--json", "--source", "master"]);
    publisher.send(2, &master(1000, 1, &["a", "b"]));
    publisher.send(6, &master(1001, 3, &["c"]));
    publisher.send(8, &master(1002, 5, &["d"]));
    publisher.send(6, &master(1001, 3, &["c"]));
    publisher.send_frames(&[b"", b"1234567", b""]);
    publisher.send_frames(&[b"only one"]);
    publisher.send(9, b"\xc1");
    publisher.send(10, &master(1003, 6, &[]));
    publisher.send(1, &master(1004, 1, &["e"]));

    let event = |sequence: u64, ms: u64, id: u64, key: &str| {
        let mut expected = json!({
            "line": "event", "sequence": sequence, "timestamp": ms, "data_parallel_rank": 0,
            "event": {
                "type": "stored", "event_type": "stored", "event_id": id, "timestamp": ms, "tenant_id": "default",
                "medium": "cpu", "object_key": key, "block_hashes": [], "seq_hashes": [], "is_eagle": false,
            },
        });
        let fields = expected["event"].as_object_mut().unwrap();
        for absent in [
            "parent_block_hash",
            "token_ids",
            "block_size",
            "lora_id",
            "lora_name",
            "extra_keys",
            "block_mm_infos",
            "group_idx",
            "kv_cache_spec_kind",
            "kv_cache_spec_sliding_window",
            "backend_id",
            "group_id",
            "base_block_idx",
            "parent_hash",
            "model_name",
            "additional_salt",
            "dp_rank",
        ] {
            fields.insert(absent.to_owned(), Value::Null);
        }
        expected
    };
    for expected in [
        json!({"line": "started", "sequence": 2, "missed": 1}),
        event(2, 1000, 1, "a"),
        event(2, 1000, 2, "b"),
        json!({"line": "gap", "from": 3, "to": 5, "missed": 3, "cause": "evicted"}),
        event(6, 1001, 3, "c"),
        json!({"line": "gap", "from": 7, "to": 7, "missed": 1, "cause": "lost"}),
        event(8, 1002, 5, "d"),
        json!({"line": "duplicate", "sequence": 6}),
        json!({"line": "malformed", "reason": "sequence_length"}),
        json!({"line": "malformed", "reason": "frames"}),
        json!({"line": "malformed", "sequence": 9, "reason": "invalid_msgpack"}),
        json!({"line": "restarted", "previous": 10, "sequence": 1}),
        event(1, 1004, 1, "e"),
    ] {
        assert_eq!(tail.json(source), expected);
    }
    tail.signal(libc::SIGINT);
    let (rest, complaints, status) = tail.end();
    assert_eq!((complaints.as_str(), status.code()), ("", Some(0)));
    let [mut summary] = <[Value; 1]>::try_from(parse_lines(&rest)).unwrap();
    let seconds = summary.as_object_mut().unwrap().remove("seconds").unwrap();
    assert!(seconds.as_f64().unwrap() >= 0.0);
    let expected = json!({
        "line": "summary", "source": source, "messages": 6, "events": 5, "stored": 5, "removed": 0, "cleared": 0,
        "errors": 0, "malformed": 3, "gaps": 2, "missed": 4, "duplicates": 1, "restarts": 1, "first_sequence": 2,
        "last_sequence": 1,
    });
    assert_eq!(summary, expected);
}

#[test]
fn engines_begin_at_zero_and_bad_events_stand_in_their_place() {
    for (args, missed) in [
        (vec!["--source", "engine"], json!(3)),
        (vec!["--base", "0"], json!(3)),
        (vec!["--base", "1"], json!(2)),
        (vec!["--source", "engine", "--base", "1"], json!(2)),
        (vec![], json!(3)),
    ] {
        let publisher = Publisher::new();
        let mut tail = Tail::listen(&[&publisher], &[&["--json"], args.as_slice()].concat());
        // The second event's tag becomes unknown.
        let mut payload = engine(1.5, &[7, 8]);
        let tag = payload.windows(7).rposition(|window| window == b"Removed").unwrap();
        payload[tag] = b'x';
        publisher.send(3, &payload);
        let source = publisher.endpoint.as_str();
        assert_eq!(tail.json(source), json!({"line": "started", "sequence": 3, "missed": missed}), "{args:?}");
        let good = tail.json(source);
        assert_eq!((&good["event"]["type"], &good["event"]["block_hashes"]), (&json!("removed"), &json!(["7"])));
        assert_eq!((&good["timestamp"], &good["data_parallel_rank"]), (&json!(1.5), &Value::Null));
        assert_eq!(tail.json(source)["event"], json!({"error": "unknown_tag"}));
        tail.signal(libc::SIGTERM);
        let (rest, _, status) = tail.end();
        assert!(status.success());
        let summary = &parse_lines(&rest)[0];
        assert_eq!((&summary["events"], &summary["removed"], &summary["errors"]), (&json!(2), &json!(1), &json!(1)));
    }
    // Nothing in the first message tells whose it is.
    let publisher = Publisher::new();
    let mut tail = Tail::listen(&[&publisher], &["--json", "--limit", "1"]);
    publisher.send(3, &engine(1.5, &[]));
    publisher.send(4, &engine(1.5, &[1]));
    assert_eq!(tail.json(&publisher.endpoint), json!({"line": "started", "sequence": 3, "missed": null}));
    assert!(tail.end().2.success());
}

#[test]
fn limit_ends_it_with_a_summary() {
    let publisher = Publisher::new();
    let tail = Tail::listen(&[&publisher], &["--json", "--limit", "3"]);
    publisher.send(1, &master(1000, 1, &["a", "b"]));
    publisher.send(2, &master(1000, 3, &["c", "d"]));
    let (rest, _, status) = tail.end();
    assert!(status.success());
    let lines = parse_lines(&rest);
    let kinds: Vec<_> = lines.iter().map(|line| line["line"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["started", "event", "event", "event", "summary"]);
    assert_eq!((&lines[4]["events"], &lines[4]["messages"]), (&json!(3), &json!(2)));
}

#[test]
fn events_of_duplicates_are_shown_when_asked_for_and_count_as_duplicates_only() {
    let publisher = Publisher::new();
    let tail = Tail::listen(&[&publisher], &["--json", "--duplicates", "--limit", "3"]);
    publisher.send(1, &master(1000, 1, &["a"]));
    publisher.send(1, &master(1000, 1, &["a"]));
    publisher.send(2, &master(1000, 2, &["b"]));
    let lines = parse_lines(&tail.end().0);
    let kinds: Vec<_> = lines.iter().map(|line| line["line"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["started", "event", "duplicate", "event", "event", "summary"]);
    let summary = &lines[5];
    assert_eq!((&summary["events"], &summary["messages"], &summary["duplicates"]), (&json!(2), &json!(2), &json!(1)));
}

#[test]
fn every_source_has_its_summary_and_longer_topics_are_named() {
    let (first, second) = (Publisher::new(), Publisher::new());
    let tail = Tail::listen(&[&first, &second], &["--json", "--topic", "kv", "--limit", "2"]);
    first.send_to(b"no", 1, &master(1000, 1, &["a"]));
    first.send_to(b"kv", 1, &master(1000, 1, &["a"]));
    first.send_to(b"kv-2", 1, &master(1000, 1, &["a"]));
    let lines = parse_lines(&tail.end().0);
    let summaries: Vec<_> = lines
        .iter()
        .filter(|line| line["line"] == "summary")
        .map(|line| (line["source"].as_str().unwrap(), line["topic"].as_str(), line["messages"].as_u64().unwrap()))
        .collect();
    let (first, second) = (first.endpoint.as_str(), second.endpoint.as_str());
    assert_eq!(summaries, [(first, None, 1), (second, None, 0), (first, Some("kv-2"), 1)]);
}

#[test]
fn columns_are_plain_when_no_terminal_reads_them() {
    let publisher = Publisher::new();
    let tail = Tail::listen(&[&publisher], &["--limit", "4"]);
    publisher.send(3, &master(1000, 1, &["key-a", "bell\u{7}\u{1b}[31m"]));
    publisher.send(9, &master(1001, 3, &["b"]));
    publisher.send(1, &engine(1002.5, &[0xb969_ffff_ffff_ffff]));
    let (text, _, status) = tail.end();
    assert!(status.success());
    assert!(text.bytes().all(|byte| byte == b'\n' || !byte.is_ascii_control()), "{text:?}");
    for part in [
        "started at number 3, 2 missed before it",
        "TIMESTAMP (s)  EVENT ",
        "  1.000  stored    cpu      default key-a",
        "  1002.500  removed   GPU ",
        r"default bell\u{7}\u{1b}[31m",
        "gap: 5 missed, numbers 4 to 8, lost by the publisher before it sent them",
        "restarted: the publisher began anew, now at number 1, after 9",
        "removed   GPU      1 block b969ffffffffffff",
        "3 messages, 4 events in ",
        "3 stored, 1 removed, 0 cleared, 0 bad",
        "1 gaps, 5 numbers missed (5 events evicted, 55.56 % of all), 0 duplicates, 1 restarts, 0 malformed",
    ] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
}

/// A batch of one event in map form with these fields, at this time.
fn engine_map(timestamp: &Value, fields: &Value) -> Vec<u8> {
    rmp_serde::to_vec(&json!([timestamp, [fields]])).unwrap()
}

#[test]
fn columns_tell_group_adapter_and_locality_where_they_are_there() {
    let publisher = Publisher::new();
    let tail = Tail::listen(&[&publisher], &["--limit", "4"]);
    let stored = |more: &Value| {
        let mut fields = json!({"type": "BlockStored", "block_hashes": [1], "token_ids": [5], "block_size": 1});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    for (sequence, fields) in [
        stored(&json!({"group_idx": 3, "lora_name": "sql\u{202e}", "locality": "REMOTE"})),
        stored(&json!({"lora_id": 7})),
        json!({"type": "BlockRemoved", "block_hashes": [1, 2], "group_idx": 0, "locality": "LOCAL"}),
        json!({"event_type": "cleared", "tenant_id": "t", "lora_name": "sql"}),
    ]
    .iter()
    .enumerate()
    {
        publisher.send(sequence as u64, &engine_map(&json!(1.5), fields));
    }
    let (text, _, _) = tail.end();
    for part in [
        "1 block 0000000000000001, 1 tokens, group 3, LoRA sql\\u{202e}, REMOTE\n",
        "1 block 0000000000000001, 1 tokens, LoRA 7\n",
        "2 blocks 0000000000000001 ..., group 0, LOCAL\n",
        "all of t, LoRA sql\n",
    ] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
}

#[test]
fn a_timestamp_that_is_no_time_is_told_as_it_is() {
    let publisher = Publisher::new();
    let fields = json!({"event_type": "cleared", "timestamp": 1e308});
    for (args, part) in [(["--limit", "1"].as_slice(), "  1e308  cleared "), (&["--limit", "1", "--json"], "")] {
        let tail = Tail::listen(&[&publisher], args);
        publisher.send(1, &engine_map(&json!(1e308), &fields));
        let (text, _, _) = tail.end();
        assert!(text.contains(part), "{text}");
        if part.is_empty() {
            assert!(text.contains(r#""timestamp":1e308"#) || text.contains(r#""timestamp":1e+308"#), "{text}");
            let event = text.lines().find(|line| line.contains("\"event\"")).unwrap();
            let event: Value = serde_json::from_str(event).unwrap();
            assert_eq!((&event["timestamp"], &event["event"]["timestamp"]), (&json!(1e308), &json!(1e308)));
        }
    }
}

#[test]
fn bad_events_that_are_alike_are_counted_in_columns_and_all_told_in_json() {
    let publisher = Publisher::new();
    let payload = rmp_serde::to_vec(&json!([1, vec![Value::Null; 250]])).unwrap();
    let tail = Tail::listen(&[&publisher], &["--limit", "250"]);
    publisher.send(1, &payload);
    let (text, _, _) = tail.end();
    assert_eq!(text.lines().filter(|line| line.contains("  bad ")).count(), 100, "{text}");
    assert!(text.contains("--- 150 more bad events like it in this message") && text.contains("250 bad"), "{text}");
    let tail = Tail::listen(&[&publisher], &["--limit", "250", "--json"]);
    publisher.send(1, &payload);
    let lines = parse_lines(&tail.end().0);
    let bad: Vec<_> = lines.iter().filter(|line| line["event"] == json!({"error": "wrong_type"})).collect();
    assert!(bad.len() == 250 && bad.iter().all(|line| **line == *bad[0]), "{lines:?}");
}

#[test]
fn a_text_that_fills_the_screen_is_cut_in_columns() {
    let publisher = Publisher::new();
    let tail = Tail::listen(&[&publisher], &["--limit", "1"]);
    let keys = ["k".repeat(1 << 20)];
    publisher.send(1, &master(1000, 1, &keys.each_ref().map(String::as_str)));
    let (text, _, _) = tail.end();
    assert!(text.contains("kkk...\n") && text.len() < 32 << 10, "{}", text.len());
}

#[test]
fn closed_pipe_ends_it_quietly() {
    let publisher = Publisher::new();
    let mut tail = Tail::listen(&[&publisher], &["--json"]);
    publisher.send(1, &master(1000, 1, &["a"]));
    tail.line();
    let Tail { mut child, lines } = tail;
    drop(lines);
    let mut sequence = 1;
    let status = loop {
        sequence += 1;
        publisher.send(sequence, &master(1000, sequence, &["a"]));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::yield_now();
    };
    assert_eq!((complaints(&mut child).as_str(), status.code()), ("", Some(0)));
}

#[test]
fn who_does_not_answer_or_says_nothing_is_told_beside_the_events() {
    for args in [["--json"].as_slice(), &[]] {
        // A path is free for sure, which a port is not.
        let path = std::env::temp_dir().join(format!("kv-events-tail-{}-{}", std::process::id(), args.len()));
        let endpoint = format!("ipc://{}", path.display());
        let mut tail = Tail::start(&[&endpoint], args);
        let mut said = BufReader::new(tail.child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(said.next().unwrap(), format!("tail: there is no {} yet; still trying", path.display()));
        let publisher = Publisher::bound_to(&endpoint, 0);
        assert_eq!(said.next().unwrap(), format!("tail: connected to {endpoint}; nothing was said yet"));
        drop(publisher);
        assert_eq!(said.next().unwrap(), format!("tail: nobody answers at {endpoint} any more; still trying"));
        tail.signal(libc::SIGINT);
        assert_eq!(said.next(), None);
        let mut output = String::new();
        tail.lines.read_to_string(&mut output).unwrap();
        assert!(output.contains(&endpoint) && !output.contains("nobody"), "{output}");
        assert!(args.is_empty() || parse_lines(&output).len() == 1, "{output}");
        assert!(tail.child.wait().unwrap().success());
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn the_topic_that_nothing_was_said_under_is_named() {
    let publisher = Publisher::new();
    let mut tail = Tail::listen(&[&publisher], &["--topic", "kv-events"]);
    publisher.send_to(b"other", 1, &master(1000, 1, &["a"]));
    let mut said = BufReader::new(tail.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let expected =
        format!("tail: connected to {}; nothing was said yet under the topic \"kv-events\"", publisher.endpoint);
    assert!(said.any(|line| line == expected));
    tail.signal(libc::SIGINT);
    assert!(tail.child.wait().unwrap().success());
}

#[test]
fn bad_endpoints_are_named() {
    for endpoint in ["127.0.0.1:5557", "tcp://127.0.0.1:99999", "inproc://x"] {
        let (rest, complaints, status) = Tail::start(&[endpoint], &[]).end();
        assert_eq!(rest, "");
        assert!(complaints.contains(endpoint) && status.code() == Some(1), "{complaints}");
    }
    let (_, complaints, status) = Tail::start(&["tcp://127.0.0.1:9"], &["--limit", "0"]).end();
    assert!(complaints.contains("--limit") && status.code() == Some(2), "{complaints}");
}
