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

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use kv_events::subscriber::{Delivery, RecvError, StatusHandle, Subscriber};
use lines::Lines;
use model::{Model, View};
use screen::Screen;
pub use screen::restore_terminal;

use super::presence::is_away;
use super::tally::Tallies;
use super::{EVENTS_A_LOOK, Ended, each_event};
use crate::out::{Face, Output};

/// How often the figures are made anew and keys are looked at.
const TICK: Duration = Duration::from_millis(200);
/// Ticks that "per second", and the median and worst lag, look back on.
const WINDOW: usize = 5;

/// Where the figures are shown.
trait Surface {
    /// Shows them. Whether to go on.
    fn show(&mut self, view: &View) -> io::Result<bool>;
}

/// Shows the figures until the limit is reached, or the user or a signal ends it: on a screen if there is one, otherwise in
/// lines. Gives the output back.
pub fn watch(
    subscriber: &mut Subscriber,
    tallies: &mut Tallies,
    face: Face,
    output: Output,
) -> (Result<(), Ended>, io::Result<Output>) {
    if !face.has_screen {
        let mut lines = Lines::new(output);
        let ended = Watch::new(&mut lines, subscriber).run(subscriber, tallies);
        return (ended, Ok(lines.into_output()));
    }
    match Screen::open(output, face.has_colour) {
        Ok(mut screen) => {
            let ended = Watch::new(&mut screen, subscriber).run(subscriber, tallies);
            (ended, Ok(screen.close()))
        }
        Err(error) => (Ok(()), Err(error)),
    }
}

struct Watch<'a> {
    surface: &'a mut dyn Surface,
    status: StatusHandle,
    model: Model,
    next: Instant,
}

impl<'a> Watch<'a> {
    fn new(surface: &'a mut dyn Surface, subscriber: &Subscriber) -> Self {
        let now = Instant::now();
        Watch { surface, status: subscriber.status_handle(), model: Model::new(now), next: now }
    }

    fn run(&mut self, subscriber: &mut Subscriber, tallies: &mut Tallies) -> Result<(), Ended> {
        let stop = subscriber.stop_handle();
        while !tallies.is_full() {
            match subscriber.recv_timeout(self.next.saturating_duration_since(Instant::now())) {
                Ok(delivery) => {
                    let mut goes_on = true;
                    self.take(&delivery, tallies, &mut |this, tallies| {
                        goes_on = this.show_if_due(tallies)?;
                        Ok(goes_on && !stop.is_stopped())
                    })?;
                    if !goes_on {
                        break;
                    }
                }
                Err(RecvError::Empty) => {}
                Err(RecvError::Stopped) => break,
                Err(error) => return Err(Ended::Input(error)),
            }
            if !self.show_if_due(tallies)? {
                break;
            }
        }
        Ok(())
    }

    /// Counts what came; `look` is asked now and then whether to go on.
    fn take(
        &mut self,
        delivery: &Delivery,
        tallies: &mut Tallies,
        look: &mut dyn FnMut(&mut Self, &Tallies) -> io::Result<bool>,
    ) -> io::Result<()> {
        let place = tallies.count(delivery);
        let Delivery::Message(message) = delivery else { return Ok(()) };
        self.model.message(place, message.batch().timestamp(), SystemTime::now());
        each_event(message, tallies, place, |tallies, event, at| {
            self.model.event(event);
            if at % EVENTS_A_LOOK == 0 { look(self, tallies) } else { Ok(true) }
        })
    }

    /// Shows the figures if it is time to. Whether to go on.
    fn show_if_due(&mut self, tallies: &Tallies) -> io::Result<bool> {
        let now = Instant::now();
        if now < self.next {
            return Ok(true);
        }
        self.next = now + TICK;
        let away = unconnected(&self.status);
        self.surface.show(&self.model.view(tallies, &away, now))
    }
}

/// Counts at each of the last ticks.
#[derive(Debug, Default)]
struct Ticks<const N: usize>(VecDeque<(Instant, [u64; N])>);

impl<const N: usize> Ticks<N> {
    /// How much each count rose per second since the begin of the window. What is new had counted nothing `before`, at the
    /// ticks of the window that it has not seen.
    fn tick(&mut self, counts: [u64; N], before: &[Instant], now: Instant) -> [f64; N] {
        if self.0.is_empty() {
            self.0.extend(before.iter().map(|tick| (*tick, [0; N])));
        }
        let (since, begin) = self.0.front().copied().unwrap_or((now, counts));
        self.0.push_back((now, counts));
        if self.0.len() > WINDOW {
            self.0.pop_front();
        }
        let seconds = (now - since).as_secs_f64();
        std::array::from_fn(|n| if seconds == 0.0 { 0.0 } else { (counts[n] - begin[n]) as f64 / seconds })
    }
}

/// The endpoints that nobody answers at.
fn unconnected(status: &StatusHandle) -> Vec<String> {
    let mut away: Vec<_> = status.sources();
    away.retain(is_away);
    away.into_iter().map(|source| source.endpoint).collect()
}
