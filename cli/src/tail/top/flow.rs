//! One source in the last second: how much came, and how late.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use kv_events::decode::Timestamp;

use super::{Ticks, WINDOW};
use crate::tail::stamp::lag;
use crate::tail::tally::Tally;

/// Lag in microseconds: what the clock said on arrival, minus the timestamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lag {
    /// The last message's, ever.
    pub last: i64,
    /// Median and worst of the window; none if nothing came in it.
    pub window: Option<(i64, i64)>,
}

/// What is remembered of a source, beyond its tally. A lag for each message of the window is the most of it, so this side's
/// own speed bounds it.
#[derive(Debug, Default)]
pub struct Flow {
    /// Messages and events so far, at each of the last ticks.
    ticks: Ticks<2>,
    /// Lags since each of the last ticks, the present one in front.
    lags: VecDeque<Vec<i64>>,
    last_lag: Option<i64>,
    /// Everything that came, at the last tick, and when that had last risen.
    heard: Option<(u64, Instant)>,
}

impl Flow {
    pub fn message(&mut self, timestamp: Timestamp, now: SystemTime) {
        // A timestamp that is none says nothing of this message, and the last lag is not its either.
        self.last_lag = lag(timestamp, now);
        if self.lags.is_empty() {
            self.lags.push_front(Vec::new());
        }
        self.lags[0].extend(self.last_lag);
    }

    /// Messages and events per second in the window that ends now; `before` are the ticks of the window.
    pub fn tick(&mut self, tally: &Tally, before: &[Instant], now: Instant) -> [f64; 2] {
        let heard = tally.messages + tally.malformed + tally.duplicates;
        if heard > self.heard.map_or(0, |(before, _)| before) {
            self.heard = Some((heard, now));
        }
        self.ticks.tick([tally.messages, tally.events], before, now)
    }

    /// How late messages are; then the window moves on.
    pub fn tick_lag(&mut self) -> Option<Lag> {
        let mut window: Vec<i64> = self.lags.iter().flatten().copied().collect();
        self.lags.push_front(Vec::new());
        self.lags.truncate(WINDOW);
        let worst = window.iter().copied().max();
        let middle = window.len() / 2;
        let window = worst.map(|worst| (*window.select_nth_unstable(middle).1, worst));
        self.last_lag.map(|last| Lag { last, window })
    }

    /// How long nothing came; none if nothing ever did.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        self.heard.map(|(_, last)| now.saturating_duration_since(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(us)
    }

    const NOW_US: u64 = 1_764_460_800_000_000;

    #[test]
    fn median_and_worst_are_the_window_s_and_the_last_one_stays() {
        let mut flow = Flow::default();
        assert_eq!(flow.tick_lag(), None);
        for late_ms in [5, 1, 9] {
            flow.message(Timestamp::Int(1_764_460_800_000 - late_ms), at(NOW_US));
        }
        for _ in 0..WINDOW {
            assert_eq!(flow.tick_lag(), Some(Lag { last: 9_000, window: Some((5_000, 9_000)) }));
        }
        assert_eq!(flow.tick_lag(), Some(Lag { last: 9_000, window: None }));
        flow.message(Timestamp::Float(7.0), at(NOW_US));
        assert_eq!(flow.tick_lag(), None);
    }

    #[test]
    fn rates_are_the_window_s() {
        let (mut flow, mut tally) = (Flow::default(), Tally::default());
        let begun = Instant::now();
        let mut tick = |ms, messages, events| {
            (tally.messages, tally.events) = (messages, events);
            flow.tick(&tally, &[], begun + Duration::from_millis(ms))
        };
        assert_eq!(tick(0, 0, 0), [0.0, 0.0]);
        assert_eq!(tick(200, 2, 128), [10.0, 640.0]);
        assert_eq!(tick(400, 2, 128), [5.0, 320.0]);
        assert_eq!(tick(600, 2, 128)[0].round(), 3.0);
        tick(800, 2, 128);
        assert_eq!(tick(1000, 2, 128), [2.0, 128.0]);
        assert_eq!(tick(1200, 2, 128), [0.0, 0.0]);
    }

    #[test]
    fn the_first_rates_of_who_is_new_are_the_window_s_too() {
        let (mut flow, mut tally) = (Flow::default(), Tally::default());
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let before = [200, 400, 600, 800, 1000].map(at);
        (tally.messages, tally.events) = (3, 60);
        assert_eq!(flow.tick(&tally, &before, at(1200)), [3.0, 60.0]);
        assert_eq!(flow.tick(&tally, &before, at(1400)), [3.0, 60.0]);
        for ms in [1600, 1800, 2000] {
            flow.tick(&tally, &before, at(ms));
        }
        assert_eq!(flow.tick(&tally, &before, at(2200)), [0.0, 0.0]);
    }

    #[test]
    fn silence_begins_when_figures_stand_still() {
        let (mut flow, mut tally) = (Flow::default(), Tally::default());
        let begun = Instant::now();
        flow.tick(&tally, &[], begun);
        assert_eq!(flow.silence(begun), None);
        tally.malformed = 1;
        flow.tick(&tally, &[], begun);
        let later = begun + Duration::from_secs(7);
        flow.tick(&tally, &[], later);
        assert_eq!(flow.silence(later), Some(Duration::from_secs(7)));
    }
}
