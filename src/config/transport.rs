//! Which transport a publisher uses, and how it is written.

use crate::error::ConfigError;
use std::fmt;
use std::str::FromStr;

/// What carries a publisher's messages.
///
/// Written as text (settings, command line) it is `zmq` or `native`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// A PUB socket of libzmq. Feature `zmq`.
    Zmq,
    /// A PUB socket of this crate's, which speaks the same protocol. Feature `native`, on Linux.
    Native,
}

/// libzmq, unless there is nothing but the native one.
impl Default for TransportKind {
    fn default() -> Self {
        if cfg!(feature = "native") && !cfg!(feature = "zmq") { TransportKind::Native } else { TransportKind::Zmq }
    }
}

impl TransportKind {
    /// The text that it is written as.
    const fn name(self) -> &'static str {
        match self {
            TransportKind::Zmq => "zmq",
            TransportKind::Native => "native",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TransportKind {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let kinds = [TransportKind::Zmq, TransportKind::Native];
        let reason = "is invalid; write zmq or native";
        kinds
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| ConfigError::Transport { transport: text.to_owned(), reason })
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for TransportKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for TransportKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_written_as_they_are_read() {
        for text in ["zmq", "native"] {
            assert_eq!(text.parse::<TransportKind>().unwrap().to_string(), text);
        }
        let error = "tcp".parse::<TransportKind>().unwrap_err().to_string();
        assert_eq!(error, "kv_events_transport: \"tcp\" is invalid; write zmq or native");
    }
}
