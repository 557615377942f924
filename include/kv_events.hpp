// kv-events for C++17: a publisher that a master embeds. Header only, over kv_events.h; link the library kv_events.
//
//   kv_events::KvEventConfig config;
//   config.enable_kv_events = true;
//   config.kv_events_bind_endpoint = "tcp://127.0.0.1:5557";
//   config.kv_events_backend_id = "master-0";
//   kv_events::KvEventPublisher publisher(config);
//   if (!publisher.enabled()) LOG(WARNING) << publisher.error();
//   publisher.PublishCommitted("model/block/42", {"cpu"}, "tenant-a");
#pragma once

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "kv_events.hpp needs C++17 or newer: -std=c++17"
#endif

#include <kv_events.h>

#include <chrono>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kv_events {

// What a call came to: KV_EVENTS_OK and the other codes of kv_events.h. Ignoring it is fine: it is in the status too.
using Code = kv_events_code_t;

// The code in words.
inline std::string_view ToString(Code code) { return kv_events_code_text(code); }

// A tier on which an object can be readable: memory, and everything that is not memory.
enum class Medium : uint32_t { kCpu = KV_EVENTS_CPU, kDisk = KV_EVENTS_DISK };

// The media an object is readable on. Made of a medium, of media joined by `|`, or of names: "cpu", {"cpu", "disk"}, or
// any range of strings. Empty names are ignored. A set with an unknown name is refused by the call that gets it.
class MediaSet {
 public:
  constexpr MediaSet() noexcept = default;
  constexpr MediaSet(Medium medium) noexcept : bits_(static_cast<uint32_t>(medium)) {}
  constexpr MediaSet(std::string_view name) noexcept { Add(name); }
  constexpr MediaSet(const char* name) noexcept { Add(name == nullptr ? std::string_view() : name); }
  MediaSet(const std::string& name) noexcept { Add(name); }
  constexpr MediaSet(std::initializer_list<std::string_view> names) noexcept {
    for (std::string_view name : names) Add(name);
  }
  constexpr MediaSet(std::initializer_list<Medium> media) noexcept {
    for (Medium medium : media) bits_ |= static_cast<uint32_t>(medium);
  }
  // Any other range of strings: std::vector<std::string>, std::set<std::string> ...
  template <typename Names, typename = std::enable_if_t<std::is_convertible_v<
                                decltype(*std::declval<const Names&>().begin()), std::string_view>>>
  MediaSet(const Names& names) noexcept {
    for (const auto& name : names) Add(name);
  }

  // The set of two bits: KV_EVENTS_CPU, KV_EVENTS_DISK.
  static constexpr MediaSet FromBits(uint32_t bits) noexcept {
    MediaSet set;
    set.bits_ = bits;
    return set;
  }

  constexpr uint32_t bits() const noexcept { return bits_; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  // False if it was made with an unknown name or bit.
  constexpr bool valid() const noexcept { return (bits_ & ~uint32_t{KV_EVENTS_CPU | KV_EVENTS_DISK}) == 0; }

  friend constexpr MediaSet operator|(MediaSet a, MediaSet b) noexcept { return FromBits(a.bits_ | b.bits_); }
  friend constexpr bool operator==(MediaSet a, MediaSet b) noexcept { return a.bits_ == b.bits_; }
  friend constexpr bool operator!=(MediaSet a, MediaSet b) noexcept { return a.bits_ != b.bits_; }

 private:
  static constexpr uint32_t kUnknown = uint32_t{1} << 31;

  constexpr void Add(std::string_view name) noexcept {
    if (name == "cpu") {
      bits_ |= KV_EVENTS_CPU;
    } else if (name == "disk") {
      bits_ |= KV_EVENTS_DISK;
    } else if (!name.empty()) {
      bits_ |= kUnknown;
    }
  }

  uint32_t bits_ = 0;
};

constexpr MediaSet operator|(Medium a, Medium b) noexcept { return MediaSet(a) | MediaSet(b); }

// The settings, by the flags' names. kv_events.h tells what each is; what is not set has the library's default.
struct KvEventConfig {
  bool enable_kv_events = false;
  std::string kv_events_bind_endpoint;
  std::string kv_events_backend_id;
  std::string kv_events_model_name;
  uint32_t kv_events_block_size = 0;
  std::string kv_events_additional_salt;
  std::string kv_events_lora_name;
  uint32_t kv_events_dp_rank = 0;
  bool kv_events_emit_object_key = true;
  bool kv_events_emit_legacy_compat = true;
  std::optional<uint64_t> kv_events_queue_capacity;
  std::optional<uint64_t> kv_events_eviction_burst;
  std::string kv_events_wait_strategy;
  std::chrono::milliseconds kv_events_heartbeat_interval{0};
  std::optional<uint64_t> kv_events_max_event_bytes;
  std::optional<uint64_t> kv_events_max_batch_events;
  std::optional<uint64_t> kv_events_max_batch_bytes;
  std::optional<uint64_t> kv_events_retain_bytes;
  std::optional<uint32_t> kv_events_send_hwm;
  std::optional<std::chrono::milliseconds> kv_events_linger;
};

// Why a publisher did not start; what() says which setting or endpoint, and what to do.
class StartError : public std::runtime_error {
 public:
  StartError(Code code, const std::string& reason) : std::runtime_error(reason), code_(code) {}
  Code code() const noexcept { return code_; }

 private:
  Code code_;
};

// How a stop went.
struct StopReport {
  uint64_t published = 0;
  uint64_t abandoned = 0;
  bool closed = true;
};

namespace internal {

inline kv_events_text_t Text(std::string_view text) noexcept {
  kv_events_text_t out;
  out.data = text.data();
  out.len = text.size();
  return out;
}

inline kv_events_object_t Object(std::string_view tenant, std::string_view key, std::string_view group) noexcept {
  kv_events_object_t out;
  out.tenant = Text(tenant);
  out.key = Text(key);
  out.group = Text(group);
  return out;
}

inline uint64_t Milliseconds(std::chrono::milliseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
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

// Removes everything of a tenant, shard by shard; see kv_events_sweep_begin for how. Threads may share it; the one that
// finishes or destroys it needs it to itself. Destroyed unfinished, it sends no `cleared`.
class [[nodiscard]] Sweep {
 public:
  Sweep(Sweep&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        refusing_(other.refusing_),
        tenant_(std::move(other.tenant_)),
        code_(other.code_) {}
  Sweep& operator=(Sweep&& other) noexcept {
    if (this != &other) {
      kv_events_sweep_cancel(&handle_);
      handle_ = std::exchange(other.handle_, nullptr);
      refusing_ = other.refusing_;
      tenant_ = std::move(other.tenant_);
      code_ = other.code_;
    }
    return *this;
  }
  ~Sweep() { kv_events_sweep_cancel(&handle_); }

  // An object was removed: sends `removed` for every medium it was readable on before.
  Code Removed(std::string_view object_key, MediaSet previous_media, std::string_view group_id) const noexcept {
    const kv_events_object_t object = internal::Object(tenant_, object_key, group_id);
    // A sweep that could not begin has its removals refused, and so counted, one by one.
    if (refusing_ != nullptr) return kv_events_removed(refusing_, &object, previous_media.bits());
    return handle_ == nullptr ? code_ : kv_events_sweep_removed(handle_, &object, previous_media.bits());
  }

  // An object was left where it is, for whatever reason.
  void Skipped() const noexcept { kv_events_sweep_skipped(handle_); }

  // Ends it, with one `cleared` if one is due; the code says whether it was, and if not, why.
  Code Finish() noexcept {
    return handle_ == nullptr ? code_ : kv_events_sweep_finish(&handle_);
  }

 private:
  friend class KvEventPublisher;
  Sweep(const kv_events_publisher_t* publisher, std::string_view tenant) : tenant_(tenant) {
    if (publisher != nullptr) code_ = kv_events_sweep_begin(publisher, internal::Text(tenant_), &handle_);
    if (code_ < 0) refusing_ = publisher;
    if (code_ == KV_EVENTS_OK) code_ = KV_EVENTS_INVALID_HANDLE;  // what calls after the end return
  }

  kv_events_sweep_t* handle_ = nullptr;
  const kv_events_publisher_t* refusing_ = nullptr;
  std::string tenant_;
  Code code_ = KV_EVENTS_DISABLED;
};

// Publishes a master's KV-cache events. Every method but move and destruction may be called from any thread at any time,
// under any lock; none that publishes waits for a socket or a subscriber, or throws.
//
// One that is disabled or could not start has enabled() false and says why in error(); its calls do nothing and return
// KV_EVENTS_DISABLED.
class KvEventPublisher {
 public:
  // What kv_events_status tells.
  using Stats = kv_events_status_t;

  // Nothing is thrown for settings that are wrong: see enabled() and error().
  explicit KvEventPublisher(const KvEventConfig& config) { Start(config); }

  // The same, but throws StartError for settings that are wrong and endpoints that cannot be bound. A disabled
  // configuration is not wrong.
  static KvEventPublisher StartOrThrow(const KvEventConfig& config) {
    KvEventPublisher publisher(config);
    if (publisher.code_ < 0) throw StartError(publisher.code_, publisher.error_);
    return publisher;
  }

  KvEventPublisher(KvEventPublisher&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        code_(std::exchange(other.code_, KV_EVENTS_DISABLED)),
        error_(std::move(other.error_)) {}
  KvEventPublisher& operator=(KvEventPublisher&& other) noexcept {
    if (this != &other) {
      kv_events_free(handle_);
      handle_ = std::exchange(other.handle_, nullptr);
      code_ = std::exchange(other.code_, KV_EVENTS_DISABLED);
      error_ = std::move(other.error_);
    }
    return *this;
  }
  // Stops with a deadline of one second, unless it was stopped. In a forked child it leaves everything to the parent.
  ~KvEventPublisher() { kv_events_free(handle_); }

  // Whether it publishes at all.
  bool enabled() const noexcept { return code_ == KV_EVENTS_OK; }
  // Why it does not; empty if it does.
  const std::string& error() const noexcept { return error_; }
  // What starting came to.
  Code code() const noexcept { return code_; }

  // `stored` for one medium (or, of several, for each).
  Code PublishStored(std::string_view object_key, MediaSet media, std::string_view tenant_id = {},
                     std::string_view group_id = {}, std::string_view session_id = {}) const noexcept {
    return PublishCommitted(object_key, media, tenant_id, group_id, session_id);
  }

  // `removed` for one medium (or, of several, for each).
  Code PublishRemoved(std::string_view object_key, MediaSet media, std::string_view tenant_id = {},
                      std::string_view group_id = {}) const noexcept {
    return PublishObjectRemoved(object_key, tenant_id, group_id, media);
  }

  // One `cleared`, which nothing guards; to remove everything shard by shard use BeginSweep.
  Code PublishCleared(std::string_view tenant_id = {}) const noexcept {
    return enabled() ? kv_events_cleared(handle_, internal::Text(tenant_id)) : KV_EVENTS_DISABLED;
  }

  // A Put or Upsert was committed: `stored` for every medium the object is readable on now, changed or not. An object that
  // a session stored says so with its session_id; empty is none.
  Code PublishCommitted(std::string_view object_key, MediaSet current_media, std::string_view tenant_id = {},
                        std::string_view group_id = {}, std::string_view session_id = {}) const noexcept {
    if (!enabled()) return KV_EVENTS_DISABLED;
    const kv_events_object_t object = internal::Object(tenant_id, object_key, group_id);
    if (session_id.empty()) return kv_events_committed(handle_, &object, current_media.bits());
    return kv_events_committed_in_session(handle_, &object, internal::Text(session_id), current_media.bits());
  }

  // The object's replicas changed: `removed` for the media that went, then `stored` for those that came.
  // `previous_media` has no default: take it before the mutation, nobody else remembers it. `session_id` is told by what is
  // stored; empty is none.
  Code SyncObjectState(std::string_view object_key, MediaSet current_media, std::string_view tenant_id,
                       std::string_view group_id, MediaSet previous_media,
                       std::string_view session_id = {}) const noexcept {
    if (!enabled()) return KV_EVENTS_DISABLED;
    const kv_events_object_t object = internal::Object(tenant_id, object_key, group_id);
    const uint32_t before = previous_media.bits(), now = current_media.bits();
    if (session_id.empty()) return kv_events_changed(handle_, &object, before, now);
    return kv_events_changed_in_session(handle_, &object, internal::Text(session_id), before, now);
  }

  // The object was removed: `removed` for every medium it was readable on before.
  Code PublishObjectRemoved(std::string_view object_key, std::string_view tenant_id, std::string_view group_id,
                            MediaSet previous_media) const noexcept {
    if (!enabled()) return KV_EVENTS_DISABLED;
    const kv_events_object_t object = internal::Object(tenant_id, object_key, group_id);
    return kv_events_removed(handle_, &object, previous_media.bits());
  }

  // Begins to remove everything of a tenant. The publisher must not be moved while the sweep is under way.
  Sweep BeginSweep(std::string_view tenant_id = {}) const { return Sweep(handle_, tenant_id); }

  // The figures now; if it is disabled all 0, but for `healthy`.
  Stats GetStats() const noexcept {
    Stats stats{};
    stats.size = sizeof stats;
    kv_events_status(handle_, &stats);
    return stats;
  }

  // The endpoint really bound (the port, if 0 or * was asked for); empty if disabled.
  std::string BoundEndpoint() const {
    return internal::Answer([this](kv_events_buffer_t* buffer) { kv_events_bound_endpoint(handle_, buffer); });
  }

  // What the sender died of; empty while it is well.
  std::string UnhealthyReason() const {
    return internal::Answer([this](kv_events_buffer_t* buffer) { kv_events_unhealthy_reason(handle_, buffer); });
  }

  // Stops: calls are refused from now on, what was accepted is sent, all within the deadline. A second stop is no harm.
  StopReport Stop(std::chrono::milliseconds deadline) const noexcept {
    kv_events_stop_report_t report{};
    report.size = sizeof report;
    if (kv_events_stop(handle_, internal::Milliseconds(deadline), &report) != KV_EVENTS_OK) return {};
    return {report.published, report.abandoned, report.closed != 0};
  }

 private:
  void Start(const KvEventConfig& config) {
    using internal::Text;
    kv_events_config_t raw;
    kv_events_config_init(&raw, sizeof raw);
    raw.enable_kv_events = config.enable_kv_events;
    raw.kv_events_bind_endpoint = Text(config.kv_events_bind_endpoint);
    raw.kv_events_backend_id = Text(config.kv_events_backend_id);
    raw.kv_events_model_name = Text(config.kv_events_model_name);
    raw.kv_events_block_size = config.kv_events_block_size;
    raw.kv_events_additional_salt = Text(config.kv_events_additional_salt);
    raw.kv_events_lora_name = Text(config.kv_events_lora_name);
    raw.kv_events_dp_rank = config.kv_events_dp_rank;
    raw.kv_events_emit_object_key = config.kv_events_emit_object_key;
    raw.kv_events_emit_legacy_compat = config.kv_events_emit_legacy_compat;
    raw.kv_events_wait_strategy = Text(config.kv_events_wait_strategy);
    raw.kv_events_heartbeat_interval = internal::Milliseconds(config.kv_events_heartbeat_interval);
    Set(raw.kv_events_queue_capacity, config.kv_events_queue_capacity);
    Set(raw.kv_events_eviction_burst, config.kv_events_eviction_burst);
    Set(raw.kv_events_max_event_bytes, config.kv_events_max_event_bytes);
    Set(raw.kv_events_max_batch_events, config.kv_events_max_batch_events);
    Set(raw.kv_events_max_batch_bytes, config.kv_events_max_batch_bytes);
    Set(raw.kv_events_retain_bytes, config.kv_events_retain_bytes);
    Set(raw.kv_events_send_hwm, config.kv_events_send_hwm);
    if (config.kv_events_linger) raw.kv_events_linger = internal::Milliseconds(*config.kv_events_linger);

    char reason[1024];
    kv_events_buffer_t buffer = {reason, sizeof reason, 0};
    code_ = kv_events_start(&raw, &handle_, &buffer);
    if (code_ != KV_EVENTS_OK) error_ = reason;
  }

  template <typename T>
  static void Set(T& place, const std::optional<T>& value) {
    if (value) place = *value;
  }

  kv_events_publisher_t* handle_ = nullptr;
  Code code_ = KV_EVENTS_DISABLED;
  std::string error_;
};

}  // namespace kv_events
