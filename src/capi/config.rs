//! Settings, as C writes them.

use super::text::Text;
use super::{Code, SIZE_LIMIT, guard};
use crate::config::{Config, recommended_eviction_burst};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::time::Duration;

/// The settings of a publisher, by the masters' flag names. `kv_events_config_init` fills in the defaults; set what you
/// need, then start. Texts are copied at start.
///
/// The struct grows at its end only: a program compiled against an older header works with a newer library, and one
/// compiled against a newer header with an older library, which does not know the newer settings: they are those beyond
/// the `size` that `kv_events_config_init` has set.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawConfig {
    /// Size of the struct; set by `kv_events_config_init`. Leave it alone.
    pub size: usize,
    /// Where the PUB socket binds, e.g. `tcp://127.0.0.1:5557` or `ipc:///run/kv.sock`; port 0 is any free one. Needed.
    pub kv_events_bind_endpoint: Text,
    /// Names this master in every event. Needed.
    pub kv_events_backend_id: Text,
    /// The model's name; nil on the wire when empty.
    pub kv_events_model_name: Text,
    /// Nil on the wire when empty.
    pub kv_events_additional_salt: Text,
    /// Nil on the wire when empty.
    pub kv_events_lora_name: Text,
    /// What the sender does when there is nothing to send: `park`, `nap`, `nap:50us`, `poll:50us` or `spin`; empty is
    /// `nap:50us`.
    pub kv_events_wait_strategy: Text,
    /// How many calls the queue holds; default 65536. A full queue evicts its oldest call.
    pub kv_events_queue_capacity: u64,
    /// Calls evicted at once when the queue is full; default 1. See `kv_events_recommended_eviction_burst`.
    pub kv_events_eviction_burst: u64,
    /// A call with an event above it is refused; default 16384.
    pub kv_events_max_event_bytes: u64,
    /// Events in one message; default 64, at least 2.
    pub kv_events_max_batch_events: u64,
    /// A message takes no further call once it holds that much; default 1048576.
    pub kv_events_max_batch_bytes: u64,
    /// A buffer that grew above it is freed, not pooled; default 2048.
    pub kv_events_retain_bytes: u64,
    /// In ms; an empty batch is sent whenever nothing was for that long. Default 0: off.
    pub kv_events_heartbeat_interval: u64,
    /// In ms; how long stop may wait for subscribers to fetch the rest, within its deadline. Default 1000.
    pub kv_events_linger: u64,
    /// In tokens; nil on the wire when 0.
    pub kv_events_block_size: u32,
    /// Labels every event and every batch; does nothing to the endpoint.
    pub kv_events_dp_rank: u32,
    /// Messages queued for each subscriber; default 10000, 0 is no limit.
    pub kv_events_send_hwm: u32,
    /// 0 (the default) or 1: a disabled publisher opens nothing and costs nothing.
    pub enable_kv_events: u8,
    /// 0 or 1 (the default). 0 silences `stored` and `removed` altogether; only `cleared` is still sent.
    pub kv_events_emit_object_key: u8,
    /// 0 or 1 (the default): events carry the pre-RFC field names as well.
    pub kv_events_emit_legacy_compat: u8,
    /// Must be 0.
    pub reserved: u8,
    /// In ms; when the connection of a subscriber that vanished without a word is ended, 3000 to 3600000. Default 45000; 0
    /// leaves it to the system, which may take hours.
    pub kv_events_keepalive: u64,
    /// Addresses (`10.0.0.7`, `::1`) and networks (`10.0.0.0/8`) that may connect by TCP, with commas between them; empty,
    /// the default, is anyone. Others are counted in `refused_peers`.
    pub kv_events_allow_peers: Text,
    /// What carries the messages: `zmq` (libzmq) or `native` (Linux), where the library is built with it; empty for the
    /// default.
    pub kv_events_transport: Text,
    /// Bytes that may wait for one subscriber of the native transport, beside `kv_events_send_hwm` messages. Default 256 MiB.
    pub kv_events_peer_queue_bytes: u64,
    /// Bytes that may wait for all subscribers of the native transport together, each message counted once. Default 1 GiB.
    pub kv_events_total_queue_bytes: u64,
    /// Connections of the native transport at once; 0 is no limit. Default 1024.
    pub kv_events_max_peers: u64,
    /// Likewise from one address by TCP. Default 0.
    pub kv_events_max_peers_per_address: u64,
}

/// The size of the struct's first version: no program has a smaller one.
const FIRST_SIZE: usize = offset_of!(RawConfig, reserved) + 1;

impl RawConfig {
    fn defaults() -> RawConfig {
        let config = Config::default();
        RawConfig {
            size: size_of::<RawConfig>(),
            kv_events_bind_endpoint: Text::EMPTY,
            kv_events_backend_id: Text::EMPTY,
            kv_events_model_name: Text::EMPTY,
            kv_events_additional_salt: Text::EMPTY,
            kv_events_lora_name: Text::EMPTY,
            kv_events_wait_strategy: Text::EMPTY,
            kv_events_queue_capacity: config.queue_capacity as u64,
            kv_events_eviction_burst: config.eviction_burst as u64,
            kv_events_max_event_bytes: config.max_event_bytes as u64,
            kv_events_max_batch_events: config.max_batch_events as u64,
            kv_events_max_batch_bytes: config.max_batch_bytes as u64,
            kv_events_retain_bytes: config.retain_bytes as u64,
            kv_events_heartbeat_interval: config.heartbeat_interval.as_millis() as u64,
            kv_events_linger: config.linger.as_millis() as u64,
            kv_events_block_size: config.block_size,
            kv_events_dp_rank: config.dp_rank,
            kv_events_send_hwm: config.send_hwm,
            enable_kv_events: config.enabled.into(),
            kv_events_emit_object_key: config.emit_object_key.into(),
            kv_events_emit_legacy_compat: config.emit_legacy_compat.into(),
            reserved: 0,
            kv_events_keepalive: config.keepalive.as_millis() as u64,
            kv_events_allow_peers: Text::EMPTY,
            kv_events_transport: Text::EMPTY,
            kv_events_peer_queue_bytes: config.peer_queue_bytes as u64,
            kv_events_total_queue_bytes: config.total_queue_bytes as u64,
            kv_events_max_peers: config.max_peers as u64,
            kv_events_max_peers_per_address: config.max_peers_per_address as u64,
        }
    }

    /// The settings of a program that may have been compiled against an older or a newer header.
    ///
    /// # Safety
    ///
    /// `config` is null or points to as many bytes as its first field says, and its texts are texts.
    pub(super) unsafe fn read(config: *const RawConfig) -> Result<Config, (Code, String)> {
        let misuse = |text: &str| (Code::InvalidArgument, text.to_owned());
        if config.is_null() {
            return Err(misuse("the config is null"));
        }
        // SAFETY: the first field is there in every version.
        let size = unsafe { config.cast::<usize>().read() };
        if size < FIRST_SIZE {
            return Err(misuse("the config has no size; fill it with kv_events_config_init first"));
        }
        if size > SIZE_LIMIT {
            let text = format!("the config says that its size is {size}; fill it with kv_events_config_init first");
            return Err((Code::InvalidLength, text));
        }
        let known = size.min(size_of::<RawConfig>());
        // What an older header does not know has its default.
        let mut raw = MaybeUninit::new(RawConfig::defaults());
        // SAFETY: `known` is no larger than either struct.
        unsafe { std::ptr::copy_nonoverlapping(config.cast::<u8>(), raw.as_mut_ptr().cast(), known) };
        // SAFETY: every field is a number or a pointer, for which any bytes will do, and all are initialized.
        let raw = unsafe { raw.assume_init() };
        // SAFETY: the caller promises `size` bytes.
        let newer = unsafe { std::slice::from_raw_parts(config.cast::<u8>().add(known), size - known) };
        if raw.reserved != 0 || newer.iter().any(|byte| *byte != 0) {
            return Err(misuse(
                "the config uses settings that this version of the library does not know; update the library",
            ));
        }
        let text = |setting: &str, text: Text| {
            // SAFETY: the caller's promise.
            unsafe { text.read() }.map_err(|code| match code {
                Code::NotUtf8 => (code, format!("{setting} is not UTF-8")),
                Code::InvalidLength | Code::TooLarge => (
                    Code::InvalidLength,
                    format!("{setting} says that it is {} bytes long, which no setting is", text.len),
                ),
                _ => (code, format!("{setting} is null, but its length is not 0")),
            })
        };
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let wait_strategy = text("kv_events_wait_strategy", raw.kv_events_wait_strategy)?;
        let allow_peers = text("kv_events_allow_peers", raw.kv_events_allow_peers)?;
        let transport = text("kv_events_transport", raw.kv_events_transport)?;
        let mut config = Config::default()
            .enabled(raw.enable_kv_events != 0)
            .bind_endpoint(text("kv_events_bind_endpoint", raw.kv_events_bind_endpoint)?)
            .backend_id(text("kv_events_backend_id", raw.kv_events_backend_id)?)
            .model_name(text("kv_events_model_name", raw.kv_events_model_name)?)
            .additional_salt(text("kv_events_additional_salt", raw.kv_events_additional_salt)?)
            .lora_name(text("kv_events_lora_name", raw.kv_events_lora_name)?)
            .block_size(raw.kv_events_block_size)
            .dp_rank(raw.kv_events_dp_rank)
            .emit_object_key(raw.kv_events_emit_object_key != 0)
            .emit_legacy_compat(raw.kv_events_emit_legacy_compat != 0)
            .queue_capacity(number(raw.kv_events_queue_capacity))
            .eviction_burst(number(raw.kv_events_eviction_burst))
            .heartbeat_interval(Duration::from_millis(raw.kv_events_heartbeat_interval))
            .max_event_bytes(number(raw.kv_events_max_event_bytes))
            .max_batch_events(number(raw.kv_events_max_batch_events))
            .max_batch_bytes(number(raw.kv_events_max_batch_bytes))
            .retain_bytes(number(raw.kv_events_retain_bytes))
            .send_hwm(raw.kv_events_send_hwm)
            .linger(Duration::from_millis(raw.kv_events_linger))
            .keepalive(Duration::from_millis(raw.kv_events_keepalive))
            .peer_queue_bytes(number(raw.kv_events_peer_queue_bytes))
            .total_queue_bytes(number(raw.kv_events_total_queue_bytes))
            .max_peers(number(raw.kv_events_max_peers))
            .max_peers_per_address(number(raw.kv_events_max_peers_per_address))
            .allow_peers(allow_peers.split(',').map(str::trim).filter(|peer| !peer.is_empty()));
        if !wait_strategy.is_empty() && config.enabled {
            config.wait_strategy = wait_strategy.parse().map_err(|error| (Code::Config, format!("{error}")))?;
        }
        if !transport.is_empty() && config.enabled {
            config.transport = transport.parse().map_err(|error| (Code::Config, format!("{error}")))?;
        }
        Ok(config)
    }
}

/// Fills `config` with the defaults: disabled, and everything as its comment says. `size` is `sizeof *config`.
///
/// `config->size` becomes the size of what was filled in: of the whole struct, or less in a library that is older than the
/// program's header. What lies beyond it was not touched, and that library does not look at it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kv_events_config_init(config: *mut RawConfig, size: usize) -> Code {
    guard(Code::Panicked, || {
        if config.is_null() || size < FIRST_SIZE {
            return Code::InvalidArgument;
        }
        if size > SIZE_LIMIT {
            return Code::InvalidLength;
        }
        let known = size.min(size_of::<RawConfig>());
        let defaults = RawConfig { size: known, ..RawConfig::defaults() };
        // SAFETY: the caller promises `size` bytes, and `known` is no more than that or than `defaults` has.
        unsafe { std::ptr::copy_nonoverlapping((&raw const defaults).cast::<u8>(), config.cast(), known) };
        Code::Ok
    })
}

/// The `kv_events_eviction_burst` recommended for loaded masters with that capacity.
#[unsafe(no_mangle)]
pub extern "C" fn kv_events_recommended_eviction_burst(queue_capacity: u64) -> u64 {
    recommended_eviction_burst(usize::try_from(queue_capacity).unwrap_or(usize::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &RawConfig) -> Result<Config, (Code, String)> {
        // SAFETY: a reference is a good pointer, and the tests' texts are static.
        unsafe { RawConfig::read(config) }
    }

    #[test]
    fn the_defaults_are_those_of_rust() {
        assert_eq!(read(&RawConfig::defaults()), Ok(Config::default()));
    }

    #[test]
    fn a_newer_header_works_and_is_told_how_much_is_known() {
        #[repr(C)]
        struct Newer {
            config: RawConfig,
            added: u64,
        }
        let mut newer = Newer { config: RawConfig::defaults(), added: 7 };
        // SAFETY: the pointer and the size are those of `newer`.
        let code = unsafe { kv_events_config_init((&raw mut newer).cast(), size_of::<Newer>()) };
        assert_eq!((code, newer.config.size, newer.added), (Code::Ok, size_of::<RawConfig>(), 7));
        assert_eq!(read(&newer.config), Ok(Config::default()));
        // A program that insists on its own size must leave what is new at 0.
        newer.config.size = size_of::<Newer>();
        newer.added = 0;
        // SAFETY: the size field says `size_of::<Newer>()`, which is what the pointer points to.
        let config = unsafe { RawConfig::read((&raw const newer).cast()) };
        assert_eq!(config, Ok(Config::default()));
        newer.added = 1;
        // SAFETY: as above.
        let error = unsafe { RawConfig::read((&raw const newer).cast()) }.unwrap_err();
        assert!(error.0 == Code::InvalidArgument && error.1.contains("update the library"), "{error:?}");
    }

    #[test]
    fn a_program_with_an_older_header_gets_the_defaults_of_what_it_does_not_know() {
        let older = RawConfig { size: FIRST_SIZE, kv_events_keepalive: 1, ..RawConfig::defaults() };
        assert_eq!(read(&older), Ok(Config::default()));
    }

    #[test]
    fn a_list_of_peers_is_a_text_with_commas() {
        let list = c"10.0.0.0/8, ::1,";
        let text = Text { data: list.as_ptr(), len: list.to_bytes().len() };
        let config = read(&RawConfig { kv_events_allow_peers: text, ..RawConfig::defaults() }).unwrap();
        assert_eq!(config.allow_peers, ["10.0.0.0/8", "::1"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let latin1 = Text { data: c"\xe9".as_ptr(), len: 1 };
        let nothing = Text { data: std::ptr::null(), len: 1 };
        let absurd = |len| Text { data: c"".as_ptr(), len };
        for (config, code, text) in [
            (RawConfig { size: 0, ..RawConfig::defaults() }, Code::InvalidArgument, "kv_events_config_init"),
            (RawConfig { size: usize::MAX, ..RawConfig::defaults() }, Code::InvalidLength, "kv_events_config_init"),
            (
                RawConfig { kv_events_lora_name: absurd(usize::MAX), ..RawConfig::defaults() },
                Code::InvalidLength,
                "lora",
            ),
            (
                RawConfig { kv_events_model_name: absurd(super::super::text::TOO_LONG), ..RawConfig::defaults() },
                Code::InvalidLength,
                "kv_events_model_name says that it is 67108864 bytes long",
            ),
            (RawConfig { kv_events_model_name: latin1, ..RawConfig::defaults() }, Code::NotUtf8, "model_name"),
            (
                RawConfig { kv_events_backend_id: nothing, ..RawConfig::defaults() },
                Code::InvalidArgument,
                "backend_id is null",
            ),
            (
                RawConfig {
                    enable_kv_events: 1,
                    kv_events_wait_strategy: Text { data: c"doze".as_ptr(), len: 4 },
                    ..RawConfig::defaults()
                },
                Code::Config,
                "kv_events_wait_strategy",
            ),
            (
                RawConfig {
                    enable_kv_events: 1,
                    kv_events_transport: Text { data: c"tcp".as_ptr(), len: 3 },
                    ..RawConfig::defaults()
                },
                Code::Config,
                "kv_events_transport",
            ),
        ] {
            let error = read(&config).unwrap_err();
            assert!(error.0 == code && error.1.contains(text), "{error:?}");
        }
    }
}
