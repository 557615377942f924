//! A view on a screen of any size.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::figures;
use super::lines::state;
use super::model::{SourceView, State, View};
use super::shares::{Medium, Tenant};

/// A column of figures about a `T`.
struct Column<T> {
    title: &'static str,
    width: u16,
    figure: fn(&T) -> String,
    colour: fn(&T) -> Option<Color>,
}

/// Names are cut to what their figures leave; figures that leave less than this are not shown.
const LEAST_NAME: u16 = 12;
/// From this name width on all figures of a source stand in one line.
const AMPLE_NAME: u16 = 28;
/// Media and tenants stand side by side from this width on.
const WIDE: u16 = 64;
/// Lines that media and tenants get, if they have that many, before more sources do.
const LEAST_SHARES: u16 = 6;

const fn column<T>(title: &'static str, width: u16, figure: fn(&T) -> String) -> Column<T> {
    Column { title, width, figure, colour: |_| None }
}

/// Red as soon as it is not 0.
macro_rules! bad {
    ($title:literal, $width:literal, $field:ident) => {
        Column {
            title: $title,
            width: $width,
            figure: |source: &SourceView| figures::count(source.$field),
            colour: |source| (source.$field > 0).then_some(Color::Red),
        }
    };
}

const FLOW: [Column<SourceView>; 7] = [
    Column {
        title: "STATE",
        width: 10,
        figure: |source| state(source.state),
        colour: |source| match source.state {
            State::Live => Some(Color::Green),
            State::Away => Some(Color::Red),
            State::Waiting | State::Silent(_) => Some(Color::Yellow),
        },
    },
    column("MSG/S", 6, |source| figures::rate(source.messages_per_second)),
    column("EVENT/S", 7, |source| figures::rate(source.events_per_second)),
    column("EVENTS", 6, |source| figures::count(source.events)),
    column("LAG", 7, |source| lag(source.lag.map(|lag| lag.last))),
    column("MEDIAN", 7, |source| lag(source.lag.and_then(|lag| lag.window).map(|(median, _)| median))),
    column("WORST", 7, |source| lag(source.lag.and_then(|lag| lag.window).map(|(_, worst)| worst))),
];

const LOSS: [Column<SourceView>; 8] = [
    column("MSGS", 5, |source| figures::count(source.messages)),
    bad!("GAPS", 5, gaps),
    bad!("MISSED", 6, missed),
    column("EVICTED%", 8, |source| source.evicted_events.map_or_else(|| "-".to_owned(), figures::percent)),
    bad!("RESTARTS", 8, restarts),
    column("DUPL.", 5, |source| figures::count(source.duplicates)),
    bad!("MALFORMED", 9, malformed),
    bad!("BAD", 5, bad_events),
];

const MEDIA: [Column<Medium>; 3] = [
    column("STORED", 7, |medium| figures::count(medium.stored)),
    column("REMOVED", 7, |medium| figures::count(medium.removed)),
    column("CLEARED", 7, |medium| figures::count(medium.cleared)),
];

const TENANTS: [Column<(Tenant, f64)>; 3] = [
    column("EVENT/S", 7, |(tenant, _)| figures::rate(tenant.rate)),
    column("EVENTS", 6, |(tenant, _)| figures::count(tenant.events)),
    column("SHARE", 6, |(_, share)| figures::percent(*share)),
];

pub fn draw(frame: &mut Frame<'_>, view: &View, has_colour: bool) {
    let area = frame.area();
    let one_line: Vec<&Column<SourceView>> = FLOW.iter().chain(&LOSS).collect();
    let tables = if name_width(&one_line, area.width) >= AMPLE_NAME {
        vec![one_line]
    } else {
        vec![FLOW.iter().collect(), LOSS.iter().collect()]
    };
    let height = table_height(view, tables.len() as u16, area.height);
    let mut pen = Pen { frame, has_colour };
    // From the top down, so that a terminal that is too low loses the end; an empty line before each.
    pen.title(Rect { height: area.height.min(1), ..area }, view);
    let mut y = 2;
    for columns in &tables {
        let table = Rect { y, height, ..area }.intersection(area);
        pen.table(table, "SOURCE", &view.sources, |source| source.name.clone(), columns);
        y += height + 1;
    }
    pen.shares(Rect { y, height: area.height.saturating_sub(y), ..area }.intersection(area), view);
}

/// How high each of so many tables of the sources may be, heading included: there is room for one source at least, and for
/// how many more there are.
fn table_height(view: &View, tables: u16, height: u16) -> u16 {
    let lines = |things: usize| u16::try_from(things).unwrap_or(u16::MAX).saturating_add(1);
    let shares = lines(view.media.len().max(view.tenants.len())).min(LEAST_SHARES);
    // A title, and an empty line before each table and the shares.
    let taken = 2 + tables + shares;
    lines(view.sources.len()).min((height.saturating_sub(taken) / tables).max(3))
}

/// What the columns leave of the width for the name.
fn name_width<T>(columns: &[&Column<T>], width: u16) -> u16 {
    width.saturating_sub(columns.iter().map(|column| column.width + 1).sum())
}

fn lag(us: Option<i64>) -> String {
    us.map_or_else(|| "-".to_owned(), figures::lag)
}

/// `text`, or what fits of it with a mark that it is cut.
fn fit(text: &str, width: u16) -> String {
    let width = usize::from(width);
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += Span::raw(c.to_string()).width();
        if taken > width {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

struct Pen<'a, 'b> {
    frame: &'a mut Frame<'b>,
    has_colour: bool,
}

impl Pen<'_, '_> {
    fn title(&mut self, area: Rect, view: &View) {
        let sources = view.sources.len();
        let what = format!("kv-events tail --top  {sources} source{}", if sources == 1 { "" } else { "s" });
        let running = format!("{}  q quits", figures::clock(view.running));
        let style = Style::new().add_modifier(Modifier::BOLD);
        let room = area.width.saturating_sub(running.len() as u16 + 1);
        self.frame.render_widget(Paragraph::new(running).style(style).alignment(Alignment::Right), area);
        self.frame.render_widget(Line::styled(fit(&what, room), style), Rect { width: room, ..area });
    }

    fn shares(&mut self, area: Rect, view: &View) {
        let media: Vec<_> = MEDIA.iter().collect();
        let tenants: Vec<_> = TENANTS.iter().collect();
        let all = view.tenant_events.max(1) as f64;
        let shares: Vec<_> = view.tenants.iter().map(|tenant| (tenant.clone(), tenant.events as f64 / all)).collect();
        let more = if view.forgotten > 0 { " or more" } else { "" };
        let heading = match view.tenant_count {
            0 => "TENANT".to_owned(),
            count => format!("TENANT ({count}{more})"),
        };
        let media_lines = view.media.len() as u16 + 1;
        let [left, right] = if area.width >= WIDE {
            Layout::horizontal([Constraint::Length(36), Constraint::Fill(1)]).spacing(3).areas(area)
        } else {
            Layout::vertical([Constraint::Length(media_lines), Constraint::Fill(1)]).spacing(1).areas(area)
        };
        self.table(left, "MEDIUM", &view.media, |medium| medium.name.clone(), &media);
        self.table(right, &heading, &shares, |(tenant, _)| tenant.name.clone(), &tenants);
    }

    /// A name and figures for each thing: as many columns and lines as there is room for.
    fn table<T>(&mut self, area: Rect, heading: &str, things: &[T], name: fn(&T) -> String, columns: &[&Column<T>]) {
        let mut columns = columns;
        while let [rest @ .., _] = columns {
            if name_width(columns, area.width) >= LEAST_NAME {
                break;
            }
            columns = rest;
        }
        let width = name_width(columns, area.width);
        let room = usize::from(area.height.saturating_sub(1));
        let shown = if things.len() > room { room.saturating_sub(1) } else { things.len() };
        let head = std::iter::once(Cell::from(fit(heading, width)))
            .chain(columns.iter().map(|column| Cell::from(right(column.title.to_owned()))));
        let mut rows: Vec<_> = things[..shown]
            .iter()
            .map(|thing| {
                let figures = columns.iter().map(|column| self.cell(column, thing));
                Row::new(std::iter::once(Cell::from(fit(&name(thing), width))).chain(figures))
            })
            .collect();
        if shown < things.len() {
            rows.push(Row::new([fit(&format!("… {} more", things.len() - shown), width)]));
        }
        let widths = std::iter::once(width).chain(columns.iter().map(|column| column.width));
        let head = Row::new(head).style(Style::new().add_modifier(Modifier::REVERSED));
        self.frame.render_widget(Table::new(rows, widths).header(head), area);
    }

    fn cell<T>(&self, column: &Column<T>, thing: &T) -> Cell<'static> {
        let style = match (column.colour)(thing) {
            Some(colour) if self.has_colour => Style::new().fg(colour),
            _ => Style::new(),
        };
        Cell::from(right((column.figure)(thing))).style(style)
    }
}

fn right(text: String) -> Text<'static> {
    Text::from(text).alignment(Alignment::Right)
}
