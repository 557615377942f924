//! Timestamps, whose unit no field tells.

use std::time::SystemTime;

use kv_events::decode::Timestamp;

/// A timestamp that is further from now than this is no time of day.
const CREDIBLE: i128 = 366 * 24 * 3600 * 1_000_000;
/// From here on a float has no place for milliseconds.
const WHOLE: f64 = 1e13;

/// Microseconds since the epoch, in the unit of seconds, milliseconds, microseconds and nanoseconds in which the timestamp
/// lies within a year of now. An engine's monotonic clock fits none of them.
pub fn time_of_day(timestamp: Timestamp, now: SystemTime) -> Option<i128> {
    let now = since_epoch(now)?;
    let in_us: [i128; 4] = match timestamp {
        Timestamp::Int(time) => [time.saturating_mul(1_000_000), time.saturating_mul(1_000), time, time / 1_000],
        Timestamp::Float(time) => [time * 1e6, time * 1e3, time, time / 1e3].map(|us| us.round() as i128),
    };
    in_us.into_iter().find(|sent| now.saturating_sub(*sent).saturating_abs() < CREDIBLE)
}

/// How late a message is, us.
pub fn lag(timestamp: Timestamp, now: SystemTime) -> Option<i64> {
    let sent = time_of_day(timestamp, now)?;
    i64::try_from(since_epoch(now)? - sent).ok()
}

/// The timestamp in seconds, whoever sent it. One that is no time of day is taken for what it is by habit: an integer for
/// milliseconds, a float for seconds; a float too large to have milliseconds is told as it is.
pub fn seconds(timestamp: Timestamp, now: SystemTime) -> String {
    let us = match (time_of_day(timestamp, now), timestamp) {
        (Some(us), _) => us,
        (None, Timestamp::Int(time)) => time.saturating_mul(1_000),
        (None, Timestamp::Float(time)) if time.abs() >= WHOLE => return format!("{time:?}"),
        (None, Timestamp::Float(time)) => (time * 1e6).round() as i128,
    };
    let ms = us.unsigned_abs().saturating_add(500) / 1_000;
    let sign = if us < 0 && ms > 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", ms / 1_000, ms % 1_000)
}

fn since_epoch(now: SystemTime) -> Option<i128> {
    i128::try_from(now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_micros()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(1_764_460_800_000_000)
    }

    #[test]
    fn lag_is_told_in_whatever_unit_the_timestamp_has() {
        for (timestamp, expected) in [
            (Timestamp::Int(1_764_460_799_990), Some(10_000)),
            (Timestamp::Int(1_764_460_799), Some(1_000_000)),
            (Timestamp::Int(1_764_460_799_999_000), Some(1_000)),
            (Timestamp::Int(1_764_460_799_999_000_000), Some(1_000)),
            (Timestamp::Float(1_764_460_799.75), Some(250_000)),
            (Timestamp::Float(1_764_460_799_990.5), Some(9_500)),
            // A clock that goes ahead of ours.
            (Timestamp::Int(1_764_460_800_010), Some(-10_000)),
            // Hours of uptime, and nonsense.
            (Timestamp::Float(12_345.6), None),
            (Timestamp::Int(93_600_000_000_000), None),
            (Timestamp::Int(0), None),
            (Timestamp::Int(i128::from(u64::MAX)), None),
            (Timestamp::Int(i128::from(i64::MIN)), None),
            (Timestamp::Float(f64::MAX), None),
            (Timestamp::Float(-0.0), None),
        ] {
            assert_eq!(lag(timestamp, now()), expected, "{timestamp}");
        }
    }

    #[test]
    fn masters_and_engines_timestamps_read_alike() {
        for (timestamp, expected) in [
            (Timestamp::Int(1_764_460_799_750), "1764460799.750"),
            (Timestamp::Float(1_764_460_799.75), "1764460799.750"),
            (Timestamp::Int(1_764_460_799), "1764460799.000"),
            (Timestamp::Int(1_764_460_799_750_000_000), "1764460799.750"),
            // No time of day.
            (Timestamp::Int(1_000), "1.000"),
            (Timestamp::Float(1.0), "1.000"),
            (Timestamp::Float(12_345.678_9), "12345.679"),
            (Timestamp::Float(-0.25), "-0.250"),
            (Timestamp::Float(-0.0), "0.000"),
            (Timestamp::Int(-1), "-0.001"),
            // No time at all.
            (Timestamp::Float(1e308), "1e308"),
            (Timestamp::Float(-1e308), "-1e308"),
            (Timestamp::Float(f64::MAX), "1.7976931348623157e308"),
            (Timestamp::Float(1e300), "1e300"),
            (Timestamp::Float(9_999_999_999_999.5), "9999999999999.500"),
            (Timestamp::Float(5e-324), "0.000"),
            (Timestamp::Int(i128::from(u64::MAX)), "18446744073709551.615"),
        ] {
            assert_eq!(seconds(timestamp, now()), expected, "{timestamp}");
        }
    }
}
