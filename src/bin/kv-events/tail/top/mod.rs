//! `tail --top`: what happens, in figures instead of events.
//!
//! Data flows one way: what is received goes into the tallies and the [`Model`], which is asked for a [`View`] a few
//! times a second, and that is what a [`Surface`] shows.

mod draw;
mod figures;
mod flow;
mod keys;
mod lines;
mod model;
mod screen;
mod shares;
#[cfg(test)]
mod tests;

use std::io;
use std::time::{Duration, Instant, SystemTime};

use kv_events::subscriber::{Delivery, RecvError, StatusHandle, Subscriber};
use lines::Lines;
use model::{Model, View};
use screen::Screen;
pub use screen::restore_terminal;

use super::Ended;
use super::presence::is_away;
use super::tally::Tallies;

/// How often the figures are made anew and keys are looked at.
const TICK: Duration = Duration::from_millis(200);
/// Ticks that "per second", and the median and worst lag, look back on.
const WINDOW: usize = 5;

/// Where the figures are shown.
trait Surface {
    /// Shows them. Whether to go on.
    fn show(&mut self, view: &View) -> io::Result<bool>;
}

/// Shows the figures until the limit is reached, or the user or a signal ends it: on a screen, with or without colours, or
/// in lines.
pub fn watch(subscriber: &mut Subscriber, tallies: &mut Tallies, screen: Option<bool>) -> Result<(), Ended> {
    let mut surface: Box<dyn Surface> = match screen {
        Some(has_colour) => Box::new(Screen::open(has_colour)?),
        None => Box::new(Lines::new(io::stdout())),
    };
    let status = subscriber.status_handle();
    let mut model = Model::new(Instant::now());
    let mut next = Instant::now();
    while !tallies.is_full() {
        match subscriber.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(delivery) => take(&delivery, tallies, &mut model)?,
            Err(RecvError::Empty) => {}
            Err(RecvError::Stopped) => break,
            Err(error) => return Err(Ended::Input(error)),
        }
        let now = Instant::now();
        if now >= next {
            next = now + TICK;
            let away = unconnected(&status);
            if !surface.show(&model.view(tallies, &away, now))? {
                break;
            }
        }
    }
    Ok(())
}

fn take(delivery: &Delivery, tallies: &mut Tallies, model: &mut Model) -> io::Result<()> {
    let place = tallies.count(delivery, |_, event| {
        model.event(event);
        Ok(())
    })?;
    if let Delivery::Message(message) = delivery {
        model.message(place, message.batch().timestamp(), SystemTime::now());
    }
    Ok(())
}

/// The endpoints that nobody answers at.
fn unconnected(status: &StatusHandle) -> Vec<String> {
    let mut away: Vec<_> = status.sources();
    away.retain(is_away);
    away.into_iter().map(|source| source.endpoint).collect()
}
