//! From events to the picture.

use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use kv_events::decode::{Event, Timestamp};
use kv_events::tracker::{GapCause, Verdict};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use ratatui::text::Span;
use serde_json::{Value, json};

use super::draw::draw;
use super::flow::Lag;
use super::lines::Lines;
use super::model::{Model, SourceView, State, View};
use super::screen::Screen;
use super::shares::{Medium, Tenant};
use super::{Surface, WINDOW};
use crate::out::Output;
use crate::signals::Stop;
use crate::tail::tally::Tallies;

/// The lines that stand on a terminal of this size.
fn picture(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, true)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        let (mut line, mut x) = (String::new(), 0);
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character covers the next cell too.
            x += Span::raw(symbol).width().max(1) as u16;
        }
        line.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

fn source(name: &str, state: State) -> SourceView {
    SourceView {
        name: name.to_owned(),
        state,
        messages_per_second: 0.0,
        events_per_second: 0.0,
        messages: 0,
        events: 0,
        lag: None,
        gaps: 0,
        missed: 0,
        evicted_events: None,
        restarts: 0,
        duplicates: 0,
        malformed: 0,
        bad_events: 0,
    }
}

fn example() -> View {
    let busy = SourceView {
        messages_per_second: 1562.4,
        events_per_second: 99_990.0,
        messages: 187_500,
        events: 12_000_000,
        lag: Some(Lag { last: 312, window: Some((290, 4_100)) }),
        gaps: 3,
        missed: 1200,
        evicted_events: Some(0.0064),
        restarts: 1,
        malformed: 2,
        ..source("tcp://127.0.0.1:5557", State::Live)
    };
    let quiet = SourceView {
        messages: 7,
        events: 9,
        lag: Some(Lag { last: 61_000_000, window: None }),
        ..source("tcp://engine-17.rack-4.example:5557 kv-events", State::Silent(Duration::from_secs(75)))
    };
    let medium = |name: &str, stored, removed, cleared| Medium { name: name.to_owned(), stored, removed, cleared };
    let tenant = |name: &str, events, rate| Tenant { name: name.to_owned(), events, rate };
    View {
        running: Duration::from_secs(83),
        sources: vec![busy, quiet],
        media: vec![medium("cpu", 8_000_000, 3_999_000, 0), medium("(any)", 0, 0, 12)],
        tenants: vec![
            tenant("tenant-0", 9_000_000, 75_000.0),
            tenant("界界界界界界界界界界界界界界", 3_000_000, 24_990.0),
        ],
        tenant_count: 2,
        tenant_events: 12_000_000,
        forgotten: 0,
    }
}

#[test]
fn a_small_terminal_shows_it_all() {
    let expected = "\
kv-events tail --top  2 sources                                 0:01:23  q quits

SOURCE                       STATE  MSG/S EVENT/S EVENTS     LAG  MEDIAN   WORST
tcp://127.0.0.1:5557          live   1562    100k  12.0M   0.3ms   0.3ms   4.1ms
tcp://engine-17.rack-4… silent 75s      0       0      9   61.0s       -       -

SOURCE                 MSGS  GAPS MISSED EVICTED% RESTARTS DUPL. MALFORMED   BAD
tcp://127.0.0.1:5557   188k     3   1200     0.6%        1     0         2     0
tcp://engine-17.rack…     7     0      0        -        0     0         0     0

MEDIUM        STORED REMOVED CLEARED   TENANT (2)          EVENT/S EVENTS  SHARE
cpu             8.0M    4.0M       0   tenant-0              75.0k   9.0M  75.0%
(any)              0       0      12   界界界界界界界界界…   25.0k   3.0M  25.0%
";
    let shown = picture(&example(), 80, 24);
    assert_eq!(shown[..13].join("\n"), expected.trim_end(), "\n{}", shown.join("\n"));
    assert!(shown[13..].iter().all(String::is_empty));
}

#[test]
fn a_wide_terminal_has_a_line_for_each_source() {
    let shown = picture(&example(), 160, 10);
    assert!(shown[3].starts_with("tcp://127.0.0.1:5557 ") && shown[3].contains("4.1ms"), "{shown:?}");
    assert!(shown[3].ends_with("188k     3   1200     0.6%        1     0         2     0"), "{shown:?}");
    assert!(shown[6].starts_with("MEDIUM"), "{shown:?}");
}

#[test]
fn no_size_is_too_small() {
    let mut view = example();
    view.sources.extend((0..300).map(|n| source(&format!("ipc:///run/source-{n}"), State::Away)));
    view.tenants.extend((0..98).map(|n| Tenant { name: format!("tenant-{n}"), events: 1, rate: 0.0 }));
    for (width, height) in (0..100).step_by(9).flat_map(|width| (0..28).step_by(3).map(move |height| (width, height))) {
        let shown = picture(&view, width, height);
        assert!(width < 30 || height == 0 || shown[0].contains("kv-events"), "{width}x{height}: {shown:?}");
    }
    // Figures for which there is no room are left out, never cut.
    assert_eq!(picture(&view, 33, 24)[2], "SOURCE               STATE  MSG/S");
    let shown = picture(&view, 80, 24).join("\n");
    assert_eq!(shown.matches("… 297 more").count(), 2, "{shown}");
    assert!(shown.contains("tenant-0 ") && shown.contains(" more\n") && shown.contains("MEDIUM"), "{shown}");
}

#[test]
fn sources_without_room_are_counted_in_place_of_the_last_row() {
    let mut view = example();
    view.sources.push(source("ipc:///run/third", State::Away));
    for (height, counted) in [(24, 0), (13, 2), (10, 2), (9, 2), (8, 2), (5, 1)] {
        let shown = picture(&view, 80, height);
        assert_eq!(shown.iter().filter(|line| line.contains(" more")).count(), counted, "{height}: {shown:?}");
    }
    let shown = picture(&view, 80, 12);
    assert!(shown[3].starts_with("tcp://127.0.0.1:5557") && shown[4] == "… 2 more", "{shown:?}");
    view.sources.pop();
    let shown = picture(&view, 80, 4);
    assert_eq!(shown[3], "… 2 more", "{shown:?}");
}

#[test]
fn colours_are_used_where_they_are_wanted_only() {
    for has_colour in [true, false] {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &example(), has_colour)).unwrap();
        let has = terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset);
        assert_eq!(has, has_colour);
    }
}

/// Has the model see an event written like this.
fn see(model: &mut Model, tallies: &mut Tallies, place: usize, event: &Value) {
    let bytes = rmp_serde::to_vec(event).unwrap();
    let event = Event::parse(&bytes);
    tallies[place].event(&event);
    model.event(&event);
}

#[test]
fn a_view_says_what_came() {
    let begun = Instant::now();
    let now = begun + Duration::from_secs(1);
    let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(1_764_460_800_000);
    let endpoints = ["tcp://a:1", "tcp://b:1", "tcp://c:1"].map(str::to_owned);
    let mut tallies = Tallies::new(&endpoints, "", None);
    let mut model = Model::new(begun);
    model.view(&tallies, &[], begun);

    let place = tallies.place("tcp://a:1", None, b"\x1b[2J");
    let stored = |tenant, medium| json!({"event_type": "stored", "tenant_id": tenant, "medium": medium});
    tallies[place].message(1, false);
    see(&mut model, &mut tallies, place, &stored("t\u{9b}1", "cpu"));
    see(&mut model, &mut tallies, place, &stored("t\u{9b}1", "CPU"));
    see(&mut model, &mut tallies, place, &json!({"event_type": "removed", "tenant_id": "t2", "medium": "\u{7}"}));
    see(&mut model, &mut tallies, place, &json!({"event_type": "cleared", "tenant_id": "t2"}));
    see(&mut model, &mut tallies, place, &json!({"event_type": "unheard of"}));
    model.message(place, Timestamp::Int(1_764_460_799_750), wall);
    tallies[place].notice(4, Verdict::Gap { from: 2, to: 3, cause: GapCause::Unknown });
    tallies[place].message(4, false);
    model.message(place, Timestamp::Float(1_764_460_799.5), wall);

    let view = model.view(&tallies, &["tcp://c:1".to_owned()], now);
    // What was subscribed to at `a` said nothing, and its topic did: it is left out.
    let states: Vec<_> = view.sources.iter().map(|source| (source.name.as_str(), source.state)).collect();
    let expected = [("tcp://b:1", State::Waiting), ("tcp://c:1", State::Away), (r"tcp://a:1 \u{1b}[2J", State::Live)];
    assert_eq!(states, expected);
    let expected = SourceView {
        messages_per_second: 2.0,
        events_per_second: 5.0,
        messages: 2,
        events: 5,
        lag: Some(Lag { last: 500_000, window: Some((500_000, 500_000)) }),
        gaps: 1,
        missed: 2,
        bad_events: 1,
        ..source(r"tcp://a:1 \u{1b}[2J", State::Live)
    };
    assert_eq!(view.sources[2], expected);
    let media: Vec<_> = view.media.iter().map(|m| (m.name.as_str(), m.stored, m.removed, m.cleared)).collect();
    assert_eq!(media, [("cpu", 2, 0, 0), (r"\u{7}", 0, 1, 0), ("(any)", 0, 0, 1)]);
    let tenants: Vec<_> = view.tenants.iter().map(|tenant| (tenant.name.as_str(), tenant.events)).collect();
    assert_eq!(tenants, [("t2", 2), (r"t\u{9b}1", 2)]);
    assert_eq!((view.tenant_count, view.tenant_events, view.forgotten), (2, 4, 0));

    tallies[place].message(5, false);
    let view = model.view(&tallies, &[], now + Duration::from_secs(1));
    // Two seconds of a window that has not gone round yet.
    assert_eq!((view.sources[2].messages_per_second, view.running), (1.5, Duration::from_secs(2)));
    let view = model.view(&tallies, &[], now + Duration::from_secs(9));
    assert_eq!(view.sources[2].state, State::Silent(Duration::from_secs(8)));
}

#[test]
fn without_a_screen_there_is_a_line_for_each_source_and_window() {
    let mut output = Vec::new();
    let mut lines = Lines::new(&mut output);
    for _ in 0..2 * WINDOW {
        assert!(lines.show(&example()).unwrap());
    }
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[2],
        "0:01:23  tcp://127.0.0.1:5557  live  1562 messages/s, 100k events/s, lag 0.3ms (median 0.3ms, worst 4.1ms)  \
         so far 187500 messages, 12000000 events, 3 gaps, 1200 missed, 1 restarts, 0 duplicates, 2 malformed, 0 bad"
    );
    assert!(lines[3].contains("silent 75s") && lines[3].contains("lag 61.0s (median -, worst -)"), "{}", lines[3]);
}

/// Set in the process that ends in the middle of it.
const ENDS: &str = "KV_EVENTS_TEST_ENDS";

/// The test `name` in a terminal, and in a process that is to end.
fn in_a_terminal(name: &str) -> test_support::pty::Pty {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("tail::top::tests::{name}"), "--exact", "--nocapture"]).env(ENDS, "1");
    // A backtrace would push the panic's words off the screen.
    command.env("RUST_BACKTRACE", "0");
    test_support::pty::Pty::run(&mut command, 24, 80)
}

/// A screen with something on it, if this is the process that is to end.
fn screen_to_end() -> Option<Screen> {
    std::env::var_os(ENDS)?;
    let mut screen = Screen::open(Output::open(&Stop::default()).unwrap(), true).unwrap();
    screen.show(&example()).unwrap();
    Some(screen)
}

#[test]
fn a_panic_gives_the_terminal_back() {
    if let Some(_screen) = screen_to_end() {
        panic!("on purpose");
    }
    let mut pty = in_a_terminal("a_panic_gives_the_terminal_back");
    pty.until(|screen| screen.contents().contains("on purpose"));
    let (screen, status) = pty.end("on purpose");
    assert!(!status.success() && !screen.contains("q quits"), "{screen}");
}

#[test]
fn an_abort_gives_the_terminal_back() {
    if let Some(_screen) = screen_to_end() {
        crate::abort::exit_instead();
        std::process::abort();
    }
    let (screen, status) = in_a_terminal("an_abort_gives_the_terminal_back").end("ended by what is said above");
    assert!(status.code() == Some(70) && !screen.contains("q quits"), "{screen}");
}
