//! What an idle sender does, and how it is written.

use crate::error::ConfigError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest interval of [`WaitStrategy::Poll`] and the longest nap: stop may have to wait for one.
pub const MAX_NAP: Duration = Duration::from_millis(100);

/// What the sender does when there is nothing to send.
///
/// Written as text (settings, command line) it is `park`, `nap`, `nap:50us`, `poll:50us` or `spin`; units are `us` and
/// `ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Sleeps at once; the call that finds it asleep pays for a wake-up.
    Park,
    /// Naps once, then sleeps: under load callers hardly ever have to wake it, and an event waits for at most the nap.
    /// The default, with 50 us.
    Nap(Duration),
    /// Looks again at an interval and never has to be woken: the cheapest call into an idle publisher, for some
    /// processor time.
    Poll(Duration),
    /// Looks all the time: the shortest delay, for a whole core.
    Spin,
}

impl Default for WaitStrategy {
    fn default() -> Self {
        WaitStrategy::Nap(Duration::from_micros(50))
    }
}

impl fmt::Display for WaitStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitStrategy::Park => f.write_str("park"),
            WaitStrategy::Nap(nap) => write!(f, "nap:{}us", nap.as_micros()),
            WaitStrategy::Poll(interval) => write!(f, "poll:{}us", interval.as_micros()),
            WaitStrategy::Spin => f.write_str("spin"),
        }
    }
}

impl FromStr for WaitStrategy {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::WaitStrategy { text: text.to_owned() };
        let (name, time) = match text.split_once(':') {
            Some((name, time)) => (name, Some(micros(time).ok_or_else(wrong)?)),
            None => (text, None),
        };
        match (name, time) {
            ("park", None) => Ok(WaitStrategy::Park),
            ("spin", None) => Ok(WaitStrategy::Spin),
            ("nap", None) => Ok(WaitStrategy::default()),
            ("nap", Some(time)) => Ok(WaitStrategy::Nap(time)),
            ("poll", None) => Ok(WaitStrategy::Poll(Duration::from_micros(50))),
            ("poll", Some(time)) => Ok(WaitStrategy::Poll(time)),
            _ => Err(wrong()),
        }
    }
}

fn micros(text: &str) -> Option<Duration> {
    let (number, unit) = match (text.strip_suffix("us"), text.strip_suffix("ms")) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 1000),
        (None, None) => return None,
    };
    let time = Duration::from_micros(number.parse::<u64>().ok()?.checked_mul(unit)?);
    (!time.is_zero() && time <= MAX_NAP).then_some(time)
}

#[cfg(feature = "serde")]
impl serde::Serialize for WaitStrategy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for WaitStrategy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "serde")]
    use crate::Config;

    #[test]
    fn wait_strategies_are_written_as_they_are_read() {
        for text in ["park", "nap:50us", "poll:250us", "spin"] {
            assert_eq!(text.parse::<WaitStrategy>().unwrap().to_string(), text);
        }
        assert_eq!("nap".parse(), Ok(WaitStrategy::default()));
        assert_eq!("poll:2ms".parse(), Ok(WaitStrategy::Poll(Duration::from_millis(2))));
        for text in ["", "sleep", "nap:", "nap:50", "poll:0us", "poll:1s", "poll:999999ms", "park:50us"] {
            assert!(text.parse::<WaitStrategy>().is_err(), "{text}");
        }
    }

    #[test]
    #[cfg(feature = "serde")]
    fn a_wait_strategy_is_a_text_in_json() {
        for text in ["park", "nap:50us", "poll:250us", "spin"] {
            let config: Config = serde_json::from_str(&format!(r#"{{"kv_events_wait_strategy":"{text}"}}"#)).unwrap();
            assert_eq!(serde_json::to_value(&config).unwrap()["kv_events_wait_strategy"], text);
        }
        let error = serde_json::from_str::<Config>(r#"{"kv_events_wait_strategy":"sleep"}"#).unwrap_err();
        assert!(
            error.to_string().starts_with("kv_events_wait_strategy=\"sleep\" is invalid; expected park"),
            "{error}"
        );
    }
}
