//! Settings by the masters' flag names. Written out, so that an error names the setting it is about.

use super::Config;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// A setting as it is written.
trait Written: Sized {
    type As: Serialize + for<'de> Deserialize<'de>;

    fn write(&self) -> Self::As;
    /// What is wrong with it, if it is out of range.
    fn read(written: Self::As) -> Result<Self, String>;
}

macro_rules! written_as_it_is {
    ($($type:ty),*) => {
        $(impl Written for $type {
            type As = $type;

            fn write(&self) -> $type {
                self.clone()
            }

            fn read(written: $type) -> Result<$type, String> {
                Ok(written)
            }
        })*
    };
}

written_as_it_is!(bool, String, Vec<String>, super::WaitStrategy, super::TransportKind);

macro_rules! written_as_integers {
    ($($type:ty),*) => {
        $(impl Written for $type {
            type As = Integer;

            fn write(&self) -> Integer {
                Integer(*self as u64)
            }

            fn read(Integer(written): Integer) -> Result<$type, String> {
                written.try_into().map_err(|_| format!("{written} is out of range; it goes to {}", <$type>::MAX))
            }
        })*
    };
}

written_as_integers!(u32, usize);

/// Durations are whole milliseconds.
impl Written for Duration {
    type As = Integer;

    fn write(&self) -> Integer {
        Integer(u64::try_from(self.as_millis()).unwrap_or(u64::MAX))
    }

    fn read(Integer(written): Integer) -> Result<Duration, String> {
        Ok(Duration::from_millis(written))
    }
}

/// An integer that an error calls one, and not by a type's name.
struct Integer(u64);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyInteger;

        impl Visitor<'_> for AnyInteger {
            type Value = Integer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer that is not negative")
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Integer, E> {
                Ok(Integer(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Integer, E> {
                u64::try_from(value).map(Integer).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }
        }

        deserializer.deserialize_u64(AnyInteger)
    }
}

/// The same error, with the setting's name, if it does not begin with it.
fn naming<E: Error>(name: &str, error: E) -> E {
    if error.to_string().starts_with(name) { error } else { E::custom(format_args!("{name}: {error}")) }
}

macro_rules! settings {
    ($($name:literal => $field:ident;)*) => {
        const NAMES: &[&str] = &[$($name),*];

        impl Serialize for Config {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut settings = serializer.serialize_struct("Config", NAMES.len())?;
                $(settings.serialize_field($name, &self.$field.write())?;)*
                settings.end()
            }
        }

        /// Sets one setting from the map's next value.
        fn set<'de, M: MapAccess<'de>>(config: &mut Config, name: &str, map: &mut M) -> Result<(), M::Error> {
            match name {
                $($name => {
                    let value = map.next_value().map_err(|error: M::Error| naming(name, error))?;
                    config.$field = Written::read(value).map_err(|error| naming(name, M::Error::custom(error)))?;
                })*
                _ => return Err(M::Error::unknown_field(name, NAMES)),
            }
            Ok(())
        }
    };
}

settings! {
    "enable_kv_events" => enabled;
    "kv_events_bind_endpoint" => bind_endpoint;
    "kv_events_backend_id" => backend_id;
    "kv_events_model_name" => model_name;
    "kv_events_block_size" => block_size;
    "kv_events_additional_salt" => additional_salt;
    "kv_events_lora_name" => lora_name;
    "kv_events_dp_rank" => dp_rank;
    "kv_events_emit_object_key" => emit_object_key;
    "kv_events_emit_legacy_compat" => emit_legacy_compat;
    "kv_events_queue_capacity" => queue_capacity;
    "kv_events_eviction_burst" => eviction_burst;
    "kv_events_wait_strategy" => wait_strategy;
    "kv_events_heartbeat_interval" => heartbeat_interval;
    "kv_events_max_event_bytes" => max_event_bytes;
    "kv_events_max_batch_events" => max_batch_events;
    "kv_events_max_batch_bytes" => max_batch_bytes;
    "kv_events_retain_bytes" => retain_bytes;
    "kv_events_send_hwm" => send_hwm;
    "kv_events_linger" => linger;
    "kv_events_allow_peers" => allow_peers;
    "kv_events_keepalive" => keepalive;
    "kv_events_transport" => transport;
    "kv_events_peer_queue_bytes" => peer_queue_bytes;
    "kv_events_total_queue_bytes" => total_queue_bytes;
    "kv_events_max_peers" => max_peers;
    "kv_events_max_peers_per_address" => max_peers_per_address;
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Config", NAMES, Settings)
    }
}

struct Settings;

impl<'de> Visitor<'de> for Settings {
    type Value = Config;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of settings, kv_events_bind_endpoint and so on")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Config, M::Error> {
        let mut config = Config::default();
        let mut seen = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(M::Error::custom(format_args!("{name} is set twice")));
            }
            set(&mut config, &name, &mut map)?;
            seen.push(name);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        serde_json::from_str::<Config>(json).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read_back() {
        let config =
            Config::new("tcp://127.0.0.1:0", "b").block_size(16).linger(Duration::from_millis(1500)).send_hwm(7);
        let json = serde_json::to_value(&config).unwrap();
        assert_eq!((&json["kv_events_linger"], &json["kv_events_send_hwm"]), (&1500.into(), &7.into()));
        assert_eq!(json.as_object().unwrap().len(), NAMES.len());
        assert_eq!(serde_json::from_value::<Config>(json).unwrap(), config);
        assert_eq!(serde_json::from_str::<Config>("{}").unwrap(), Config::default());
    }

    #[test]
    fn an_error_names_the_setting() {
        let wrong = error(r#"{"kv_events_backend_id": "b", "kv_events_block_size": "many"}"#);
        let expected = "expected an integer that is not negative at line 1 column 60";
        assert_eq!(wrong, format!("kv_events_block_size: invalid type: string \"many\", {expected}"));
        assert_eq!(wrong.matches("line").count(), 1, "{wrong}");
        assert!(
            error(r#"{"kv_events_linger": -1}"#).starts_with("kv_events_linger: invalid value: integer `-1`, expected")
        );
        let wide = error(r#"{"kv_events_block_size": 4294967296}"#);
        assert!(wide.starts_with("kv_events_block_size: 4294967296 is out of range; it goes to 4294967295"), "{wide}");
        assert!(
            error(r#"{"kv_event_linger": 1}"#).starts_with("unknown field `kv_event_linger`, expected one of `enable_")
        );
        assert!(
            error(r#"{"kv_events_linger": 1, "kv_events_linger": 2}"#).starts_with("kv_events_linger is set twice")
        );
        assert!(error("[]").contains("a map of settings"));
    }
}
