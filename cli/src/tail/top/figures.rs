//! Numbers as short as people read them.

use std::time::Duration;

/// A count in at most 6 characters: `99999`, `123k`, `56.7M`.
pub fn count(n: u64) -> String {
    match n {
        0..=99_999 => n.to_string(),
        _ => scaled(n as f64),
    }
}

/// A rate in at most 6 characters: `0.4`, `97.1k`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        ..0.05 => "0".to_owned(),
        ..9.95 => format!("{per_second:.1}"),
        ..9_999.5 => format!("{per_second:.0}"),
        _ => scaled(per_second),
    }
}

/// A share, as `12.3%`.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0%".to_owned(),
        ..0.1 => "<0.1%".to_owned(),
        percent if percent >= 99.95 => "100%".to_owned(),
        percent => format!("{percent:.1}%"),
    }
}

/// A lag in microseconds, as `1.2ms`, `-3.4s`, `5m`.
pub fn lag(us: i64) -> String {
    let sign = if us < 0 { "-" } else { "" };
    let us = us.unsigned_abs();
    match us {
        0..=999_949 => format!("{sign}{:.1}ms", us as f64 / 1e3),
        999_950..=99_949_999 => format!("{sign}{:.1}s", us as f64 / 1e6),
        _ => format!("{sign}{}", age(Duration::from_micros(us))),
    }
}

/// A time long past: `12s`, `3m`, `4h`, `5d`.
pub fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds}s"),
        seconds @ 100..=5_999 => format!("{}m", seconds / 60),
        seconds @ 6_000..=359_999 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long something has gone on: `1:02:03`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn scaled(n: f64) -> String {
    let mut value = n / 1e3;
    for unit in ["k", "M", "G", "T", "P"] {
        if value < 99.95 {
            return format!("{value:.1}{unit}");
        }
        if value < 999.5 {
            return format!("{value:.0}{unit}");
        }
        value /= 1e3;
    }
    format!("{value:.1}E")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_true() {
        let counts = [0, 99_999, 100_000, 999_999, 12_345_678, 9_999_999_999, u64::MAX];
        assert_eq!(counts.map(count), ["0", "99999", "100k", "1.0M", "12.3M", "10.0G", "18.4E"].map(String::from));
        let rates = [0.0, 0.04, 0.4, 9.96, 1234.5, 9_999.9, 123_456.0, 1e12];
        assert_eq!(rates.map(rate), ["0", "0", "0.4", "10", "1234", "10.0k", "123k", "1.0T"].map(String::from));
        let shares = [0.0, 0.0001, 0.5, 0.123, 0.99999, 1.0];
        assert_eq!(shares.map(percent), ["0%", "<0.1%", "50.0%", "12.3%", "100%", "100%"].map(String::from));
        let lags = [0, 1_234, -999_949, 999_950, 59_900_000, -150_000_000, i64::MIN];
        let expected = ["0.0ms", "1.2ms", "-999.9ms", "1.0s", "59.9s", "-2m", "-106751991d"];
        assert_eq!(lags.map(lag), expected.map(String::from));
        assert_eq!(
            [99, 100, 6_000, 360_000].map(|s| age(Duration::from_secs(s))),
            ["99s", "1m", "1h", "4d"].map(String::from)
        );
        assert_eq!(clock(Duration::from_secs(3_723)), "1:02:03");
    }

    #[test]
    fn no_figure_is_wider_than_its_column() {
        for power in 0..64 {
            let n = (1u64 << power) - 1;
            assert!(count(n).len() <= 6, "{}", count(n));
            assert!(rate(n as f64).len() <= 6, "{}", rate(n as f64));
        }
    }
}
