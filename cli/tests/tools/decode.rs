//! `kv-events decode` as people use it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn decode(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kv-events"))
        .arg("decode")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may end before it has read all.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn one_line_for_each_line() {
    let input = b"920190\n\n92 0190\n9201C0\r\n\xff\n920\n9201\n93cb3ff800000000000090cd0102";
    assert_eq!(
        lines(&decode(&[], input)),
        [
            r#"{"timestamp":1,"data_parallel_rank":null,"events":[]}"#,
            r#"{"error":"empty"}"#,
            r#"{"error":"invalid_hex"}"#,
            r#"{"error":"wrong_type"}"#,
            r#"{"error":"invalid_hex"}"#,
            r#"{"error":"invalid_hex"}"#,
            r#"{"error":"truncated"}"#,
            r#"{"timestamp":1.5,"data_parallel_rank":258,"events":[]}"#,
        ]
    );
    assert!(lines(&decode(&[], b"")).is_empty());
}

#[test]
fn single_events() {
    let input = b"91b0416c6c426c6f636b73436c6561726564\n91b0416C6C426C6F636B73436C6561726564\n90\n";
    let cleared = r#"{"type":"cleared"}"#;
    assert_eq!(lines(&decode(&["--event", "-"], input)), [cleared, cleared, r#"{"error":"missing_tag"}"#]);
}

#[test]
fn what_is_wrong_is_told_with_its_file_and_line() {
    let path = std::env::temp_dir().join(format!("kv-events-decode-{}.hex", std::process::id()));
    std::fs::write(&path, b"920190\n\n92 0190\n9201C0\r\n\xff\x1b\n920\n920190\n9201").unwrap();
    for (args, input, name) in [
        (vec![path.to_str().unwrap()], b"".to_vec(), path.display().to_string()),
        (vec!["-"], std::fs::read(&path).unwrap(), "the standard input".to_owned()),
    ] {
        let output = decode(&args, &input);
        assert_eq!(lines(&output).len(), 8);
        let told = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(told.bytes().all(|byte| byte == b'\n' || !byte.is_ascii_control()), "{told:?}");
        let told: Vec<_> = told.lines().collect();
        let expected = [
            (2, "cannot be decoded: empty"),
            (3, "not hex: "),
            (4, "cannot be decoded: wrong_type"),
            (5, "not hex: "),
            (6, "not hex: "),
            (8, "cannot be decoded: truncated"),
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, (line, fault)) in told.iter().zip(expected) {
            assert!(told.starts_with(&format!("kv-events: {name}, line {line}: {fault}")), "{told}");
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_byte_order_mark_and_a_blank_are_named() {
    let output = decode(&[], b"\xef\xbb\xbf920190\n  \n920190\n");
    assert_eq!(lines(&output).len(), 3);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(told.contains("line 1: not hex: begins with a byte order mark (UTF-8)"), "{told}");
    assert!(told.contains("line 2: not hex: is blank"), "{told}");
}

#[test]
fn a_timestamp_of_any_size_stays_as_it_is() {
    // 1e308 as a float of 64 bits.
    let output = decode(&[], b"92cb7fe1ccf385ebc8a090\n");
    assert_eq!(lines(&output), [r#"{"timestamp":1e+308,"data_parallel_rank":null,"events":[]}"#]);
}

#[test]
fn of_many_bad_events_the_first_are_named_and_the_rest_counted() {
    let payload: String = ["9201dc00fa".to_owned(), "c0".repeat(250)].concat();
    let output = decode(&[], payload.as_bytes());
    assert_eq!(lines(&output)[0].matches("wrong_type").count(), 250);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(told.lines().count() == 101 && told.contains("line 1: 150 more events cannot be decoded"), "{told}");
}

#[test]
fn a_bad_event_in_a_good_batch_is_told_with_its_place() {
    // A timestamp, and two events: `["AllBlocksCleared"]` and an empty list.
    let output = decode(&[], b"920190\n92019291b0416c6c426c6f636b73436c656172656490\n");
    let expected = r#"{"timestamp":1,"data_parallel_rank":null,"events":[{"type":"cleared"},{"error":"missing_tag"}]}"#;
    assert_eq!(lines(&output)[1], expected);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let expected = "kv-events: the standard input, line 2: event 1 (from 0) cannot be decoded: missing_tag: ";
    assert!(told.starts_with(expected) && told.lines().count() == 1, "{told}");
}

#[test]
fn files_and_files_that_are_not_there() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/vectors.json");
    let output = lines(&decode(&[vectors], b""));
    assert!(output.len() > 500 && output.iter().all(|line| line == r#"{"error":"invalid_hex"}"#));

    let output = decode(&["/no/such/file"], b"");
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/file"));
}

#[test]
#[cfg(unix)]
fn a_closed_pipe_ends_it_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kv-events"))
        .arg("decode")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("a pipe");
    for _ in 0..100_000 {
        if stdin.write_all(b"920190\n").is_err() {
            break;
        }
    }
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
