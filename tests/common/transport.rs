//! Which transport the tests are run over: `KV_EVENTS_TEST_TRANSPORT=native` has all of them use the native one.

use kv_events::Config;

/// A configuration for the transport that this run is for.
pub fn config(endpoint: impl Into<String>, backend_id: &str) -> Config {
    let config = Config::new(endpoint, backend_id);
    match kind() {
        Some(kind) => config.transport(kind),
        None => config,
    }
}

/// Whether this run is for the native transport.
#[allow(dead_code, reason = "not every program asks")]
pub fn is_native() -> bool {
    kind() == Some(kv_events::TransportKind::Native)
}

fn kind() -> Option<kv_events::TransportKind> {
    let name = std::env::var("KV_EVENTS_TEST_TRANSPORT").ok().filter(|name| !name.is_empty())?;
    Some(name.parse().expect("KV_EVENTS_TEST_TRANSPORT names a transport"))
}
