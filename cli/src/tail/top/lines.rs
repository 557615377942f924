//! The figures in lines, where there is no screen.

use std::io::{self, Write};

use super::model::{SourceView, State, View};
use super::{Surface, WINDOW, figures};

pub struct Lines<W> {
    output: W,
    views: usize,
}

impl<W: Write> Lines<W> {
    pub fn new(output: W) -> Self {
        Lines { output, views: 0 }
    }

    pub fn into_output(self) -> W {
        self.output
    }
}

impl<W: Write> Surface for Lines<W> {
    fn show(&mut self, view: &View) -> io::Result<bool> {
        self.views += 1;
        // One window is as good as another only if all of it is new.
        if self.views % WINDOW == 0 {
            for source in &view.sources {
                writeln!(self.output, "{}  {}", figures::clock(view.running), line(source))?;
            }
            self.output.flush()?;
        }
        Ok(true)
    }
}

/// What the state is called.
pub fn state(state: State) -> String {
    match state {
        State::Away => "away".to_owned(),
        State::Waiting => "waiting".to_owned(),
        State::Live => "live".to_owned(),
        State::Silent(time) => format!("silent {}", figures::age(time)),
    }
}

fn line(source: &SourceView) -> String {
    let SourceView { name, messages, events, gaps, missed, restarts, duplicates, malformed, bad_events, .. } = source;
    let lag = |us: Option<i64>| us.map_or_else(|| "-".to_owned(), figures::lag);
    let window = source.lag.and_then(|lag| lag.window);
    format!(
        "{name}  {}  {} messages/s, {} events/s, lag {} (median {}, worst {})  so far {messages} messages, {events} events, \
         {gaps} gaps, {missed} missed, {restarts} restarts, {duplicates} duplicates, {malformed} malformed, {bad_events} bad",
        state(source.state),
        figures::rate(source.messages_per_second),
        figures::rate(source.events_per_second),
        lag(source.lag.map(|lag| lag.last)),
        lag(window.map(|(median, _)| median)),
        lag(window.map(|(_, worst)| worst)),
    )
}
