// The settings of kv_events.hpp, why a start fails, and the log. Include kv_events.hpp.
#pragma once

#include <kv_events_values.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

// Without exceptions (-fno-exceptions) nothing here throws, and what only throws is not there.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define KV_EVENTS_EXCEPTIONS 1
#else
#define KV_EVENTS_EXCEPTIONS 0
#endif

namespace kv_events {

// What a call came to: KV_EVENTS_OK and the other codes of kv_events.h. Ignoring it is fine: it is in the status too.
using Code = kv_events_code_t;

// The code in words.
inline std::string_view ToString(Code code) noexcept { return kv_events_code_text(code); }

// What the sender does when there is nothing to send. A flag's text is checked when the publisher starts:
// WaitStrategy(FLAGS_kv_events_wait_strategy).
class WaitStrategy {
 public:
  // The library's default: Nap of 50 us.
  WaitStrategy() = default;
  // `park`, `nap`, `nap:50us`, `poll:50us` or `spin`; empty is the default.
  explicit WaitStrategy(Text text) : text_(text.view()) {}

  // Sleeps until a call wakes it: the call pays for that.
  static WaitStrategy Park() { return WaitStrategy("park"); }
  // Sleeps so long at a time before it parks.
  static WaitStrategy Nap(std::chrono::microseconds time) { return For("nap:", time); }
  // Looks again and again for so long before it parks.
  static WaitStrategy Poll(std::chrono::microseconds time) { return For("poll:", time); }
  // Never sleeps: takes a core to itself.
  static WaitStrategy Spin() { return WaitStrategy("spin"); }

  const std::string& text() const noexcept { return text_; }

 private:
  static WaitStrategy For(const char* kind, std::chrono::microseconds time) {
    return WaitStrategy(kind + std::to_string(time.count()) + "us");
  }

  std::string text_;
};

// The settings, by the flags' names. kv_events.h tells what each is; what is not set has the library's default.
struct KvEventConfig {
  bool enable_kv_events = false;
  std::string kv_events_bind_endpoint = {};
  std::string kv_events_backend_id = {};
  std::string kv_events_model_name = {};
  uint32_t kv_events_block_size = 0;
  std::string kv_events_additional_salt = {};
  std::string kv_events_lora_name = {};
  uint32_t kv_events_dp_rank = 0;
  bool kv_events_emit_object_key = true;
  bool kv_events_emit_legacy_compat = true;
  std::optional<uint64_t> kv_events_queue_capacity = std::nullopt;
  std::optional<uint64_t> kv_events_eviction_burst = std::nullopt;
  WaitStrategy kv_events_wait_strategy = {};
  std::chrono::milliseconds kv_events_heartbeat_interval = std::chrono::milliseconds(0);
  std::optional<uint64_t> kv_events_max_event_bytes = std::nullopt;
  std::optional<uint64_t> kv_events_max_batch_events = std::nullopt;
  std::optional<uint64_t> kv_events_max_batch_bytes = std::nullopt;
  std::optional<uint64_t> kv_events_retain_bytes = std::nullopt;
  std::optional<uint32_t> kv_events_send_hwm = std::nullopt;
  std::optional<std::chrono::milliseconds> kv_events_linger = std::nullopt;
  std::optional<std::chrono::milliseconds> kv_events_keepalive = std::nullopt;
  // With commas between them.
  std::string kv_events_allow_peers = {};
  // "zmq" or "native"; empty for the default. The settings below are the native one's.
  std::string kv_events_transport = {};
  std::optional<uint64_t> kv_events_peer_queue_bytes = std::nullopt;
  std::optional<uint64_t> kv_events_total_queue_bytes = std::nullopt;
  std::optional<uint64_t> kv_events_max_peers = std::nullopt;
  std::optional<uint64_t> kv_events_max_peers_per_address = std::nullopt;

  // What is recommended for a loaded master: enabled, with a heartbeat every second, so that a lost tail is noticed, and
  // the eviction burst that makes overload gentlest at the default capacity.
  static KvEventConfig Recommended(std::string bind_endpoint, std::string backend_id) {
    KvEventConfig config;
    config.enable_kv_events = true;
    config.kv_events_bind_endpoint = std::move(bind_endpoint);
    config.kv_events_backend_id = std::move(backend_id);
    config.kv_events_heartbeat_interval = std::chrono::seconds(1);
    kv_events_config_t defaults = {};
    if (kv_events_config_init(&defaults, sizeof defaults) == KV_EVENTS_OK) {
      config.kv_events_eviction_burst = kv_events_recommended_eviction_burst(defaults.kv_events_queue_capacity);
    }
    return config;
  }
};

#if KV_EVENTS_EXCEPTIONS
// Why a publisher did not start; what() says which setting or endpoint, and what to do.
class StartError : public std::runtime_error {
 public:
  StartError(Code code, const std::string& reason) : std::runtime_error(reason), code_(code) {}
  Code code() const noexcept { return code_; }

 private:
  Code code_;
};
#endif

enum class LogLevel : int32_t { kError = 1, kWarning = 2, kInfo = 3 };

// Gets a line of the log, which is there for as long as the call lasts.
using LogCallback = std::function<void(LogLevel level, std::string_view line)>;

// Sends the library's log lines to `callback`; an empty one silences it, as at first. They are few: none on the path of a
// call. Set it before the first start to hear what that has to warn of.
//
// It is called from whichever thread has something to say, also the sender's. What it throws goes nowhere. Another thread
// may be calling the one set before, so each is kept to the end of the process.
inline Code LogTo(LogCallback callback) {
  if (!callback) return kv_events_log_to(nullptr, nullptr);
  const auto kept = new LogCallback(std::move(callback));
  const auto call = [](int32_t level, const char* line, size_t len, void* user) noexcept {
    const LogCallback& kept = *static_cast<const LogCallback*>(user);
#if KV_EVENTS_EXCEPTIONS
    try {
      kept(static_cast<LogLevel>(level), std::string_view(line, len));
    } catch (...) {
    }
#else
    kept(static_cast<LogLevel>(level), std::string_view(line, len));
#endif
  };
  const Code code = kv_events_log_to(call, kept);
  if (code != KV_EVENTS_OK) delete kept;
  return code;
}

namespace internal {

inline uint64_t Milliseconds(std::chrono::milliseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}

template <typename T>
void Set(T& place, const std::optional<T>& value) noexcept {
  if (value) place = *value;
}

// The settings as the library takes them; their texts are those of `config`.
inline kv_events_config_t Raw(const KvEventConfig& config) noexcept {
  kv_events_config_t raw = {};
  kv_events_config_init(&raw, sizeof raw);
  raw.enable_kv_events = config.enable_kv_events;
  raw.kv_events_bind_endpoint = Raw(Text(config.kv_events_bind_endpoint));
  raw.kv_events_backend_id = Raw(Text(config.kv_events_backend_id));
  raw.kv_events_model_name = Raw(Text(config.kv_events_model_name));
  raw.kv_events_block_size = config.kv_events_block_size;
  raw.kv_events_additional_salt = Raw(Text(config.kv_events_additional_salt));
  raw.kv_events_lora_name = Raw(Text(config.kv_events_lora_name));
  raw.kv_events_dp_rank = config.kv_events_dp_rank;
  raw.kv_events_emit_object_key = config.kv_events_emit_object_key;
  raw.kv_events_emit_legacy_compat = config.kv_events_emit_legacy_compat;
  raw.kv_events_wait_strategy = Raw(Text(config.kv_events_wait_strategy.text()));
  raw.kv_events_heartbeat_interval = Milliseconds(config.kv_events_heartbeat_interval);
  Set(raw.kv_events_queue_capacity, config.kv_events_queue_capacity);
  Set(raw.kv_events_eviction_burst, config.kv_events_eviction_burst);
  Set(raw.kv_events_max_event_bytes, config.kv_events_max_event_bytes);
  Set(raw.kv_events_max_batch_events, config.kv_events_max_batch_events);
  Set(raw.kv_events_max_batch_bytes, config.kv_events_max_batch_bytes);
  Set(raw.kv_events_retain_bytes, config.kv_events_retain_bytes);
  Set(raw.kv_events_send_hwm, config.kv_events_send_hwm);
  if (config.kv_events_keepalive) raw.kv_events_keepalive = Milliseconds(*config.kv_events_keepalive);
  raw.kv_events_allow_peers = Raw(Text(config.kv_events_allow_peers));
  raw.kv_events_transport = Raw(Text(config.kv_events_transport));
  Set(raw.kv_events_peer_queue_bytes, config.kv_events_peer_queue_bytes);
  Set(raw.kv_events_total_queue_bytes, config.kv_events_total_queue_bytes);
  Set(raw.kv_events_max_peers, config.kv_events_max_peers);
  Set(raw.kv_events_max_peers_per_address, config.kv_events_max_peers_per_address);
  if (config.kv_events_linger) raw.kv_events_linger = Milliseconds(*config.kv_events_linger);
  return raw;
}

// A text of which only the library knows how long it is.
template <typename Ask>
std::string Answer(Ask ask) {
  std::string text(255, '\0');
  while (true) {
    kv_events_buffer_t buffer = {&text[0], text.size() + 1, 0};
    ask(&buffer);
    const bool whole = buffer.length <= text.size();
    text.resize(buffer.length);
    if (whole) return text;
  }
}

}  // namespace internal

}  // namespace kv_events
