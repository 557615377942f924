// kv-events for C++17: a publisher that a master embeds. Headers only, over kv_events.h; link the library kv_events.
//
//   kv_events::KvEventConfig config;
//   config.enable_kv_events = true;
//   config.kv_events_bind_endpoint = "tcp://127.0.0.1:5557";
//   config.kv_events_backend_id = "master-0";
//   kv_events::KvEventPublisher publisher(config);
//   if (!publisher.enabled()) LOG(WARNING) << publisher.error();
//   publisher.PublishCommitted("model/block/42", {"cpu"}, "tenant-a");
#pragma once

#include <kv_events_config.hpp>
#include <kv_events_values.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace kv_events {

// How a stop went.
struct StopReport {
  // Events published over the publisher's life.
  uint64_t published = 0;
  // Events that were accepted and could not be sent before the deadline.
  uint64_t abandoned = 0;
  // Whether the endpoint is free.
  bool closed = true;
};

// How a publisher is.
enum class State {
  // By its settings, by a library built without ZeroMQ, or because it was moved from: calls do nothing.
  kDisabled,
  // Its start failed; code() and error() say why. Calls do nothing, and return KV_EVENTS_DISABLED.
  kNotStarted,
  // Calls publish.
  kRunning,
  // Its sender died; UnhealthyReason() says of what. Calls are refused.
  kSenderDead,
  // Stop() was called. Calls are refused.
  kStopped,
  // This is a forked child's copy. Calls are refused.
  kForked,
};

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
  Code Removed(Text object_key, MediaSet previous_media, Text group_id = "") const noexcept {
    const kv_events_object_t object = internal::Raw(Object{tenant_, object_key, group_id});
    // A sweep that could not begin has its removals refused, and so counted, one by one.
    if (refusing_ != nullptr) return kv_events_removed(refusing_, &object, previous_media.bits());
    return handle_ == nullptr ? code_ : kv_events_sweep_removed(handle_, &object, previous_media.bits());
  }

  // An object was left where it is, for whatever reason.
  void Skipped() const noexcept { kv_events_sweep_skipped(handle_); }

  // Ends it, with one `cleared` if one is due; the code says whether it was, and if not, why.
  Code Finish() noexcept { return handle_ == nullptr ? code_ : kv_events_sweep_finish(&handle_); }

 private:
  friend class KvEventPublisher;
  Sweep(const kv_events_publisher_t* publisher, Text tenant) : tenant_(tenant.view()) {
    if (publisher != nullptr) code_ = kv_events_sweep_begin(publisher, internal::Raw(tenant), &handle_);
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
//
// THERE ARE TWO ORDERS OF ARGUMENTS. The methods named Publish... and SyncObjectState have the names, and the order, that
// masters in C++ know: key, media now, tenant, group, and last what was before. Committed, Changed and Removed have the
// order of kv_events.h and of Rust: the object, what was before, what is now. The types keep the two apart.
class KvEventPublisher {
 public:
  // What kv_events_status tells; made without a publisher, all 0.
  struct Stats : kv_events_status_t {
    constexpr Stats() noexcept : kv_events_status_t{} { size = sizeof(kv_events_status_t); }
  };

  // Nothing is thrown for settings that are wrong: see enabled(), state() and error().
  explicit KvEventPublisher(const KvEventConfig& config) {
    const kv_events_config_t raw = internal::Raw(config);
    char reason[1024] = "";
    kv_events_buffer_t buffer = {reason, sizeof reason, 0};
    code_ = kv_events_start(&raw, &handle_, &buffer);
    if (code_ != KV_EVENTS_OK) error_ = reason[0] == '\0' ? ToString(code_) : std::string_view(reason);
  }

#if KV_EVENTS_EXCEPTIONS
  // The same, but throws StartError for settings that are wrong and endpoints that cannot be bound. A disabled
  // configuration is not wrong.
  static KvEventPublisher StartOrThrow(const KvEventConfig& config) {
    KvEventPublisher publisher(config);
    if (publisher.code_ < 0) throw StartError(publisher.code_, publisher.error_);
    return publisher;
  }
#endif

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

  // Whether calls publish. False if it is disabled or did not start, and from the moment it is stopped or its sender
  // dies; state() says which. Takes no lock.
  bool enabled() const noexcept { return handle_ != nullptr && kv_events_enabled(handle_); }
  State state() const noexcept {
    if (code_ < 0) return State::kNotStarted;
    if (code_ != KV_EVENTS_OK) return State::kDisabled;
    if (kv_events_enabled(handle_)) return State::kRunning;
    const Stats stats = GetStats();
    if (stats.healthy == 0) return State::kSenderDead;
    return stats.stopped != 0 ? State::kStopped : State::kForked;
  }
  // Why it did not start; empty if it did.
  const std::string& error() const noexcept { return error_; }
  // What starting came to.
  Code code() const noexcept { return code_; }

  // `stored` for one medium (or, of several, for each).
  Code PublishStored(Text object_key, MediaSet media, Text tenant_id = "", Text group_id = "",
                     Text session_id = "") const noexcept {
    return Committed({tenant_id, object_key, group_id, session_id}, media);
  }

  // `removed` for one medium (or, of several, for each).
  Code PublishRemoved(Text object_key, MediaSet media, Text tenant_id = "", Text group_id = "") const noexcept {
    return Removed({tenant_id, object_key, group_id}, Before::Mutation(media));
  }

  // One `cleared`, which nothing guards; to remove everything shard by shard use BeginSweep.
  Code PublishCleared(Text tenant_id = "") const noexcept {
    return handle_ == nullptr ? KV_EVENTS_DISABLED : kv_events_cleared(handle_, internal::Raw(tenant_id));
  }

  // A Put or Upsert was committed: `stored` for every medium the object is readable on now, changed or not. An object that
  // a session stored says so with its session_id; empty is none.
  Code PublishCommitted(Text object_key, MediaSet current_media, Text tenant_id = "", Text group_id = "",
                        Text session_id = "") const noexcept {
    return Committed({tenant_id, object_key, group_id, session_id}, current_media);
  }

  // The object's replicas changed: `removed` for the media that went, then `stored` for those that came.
  // `previous_media` has no default: take it before the mutation, nobody else remembers it. `session_id` is told by what is
  // stored; empty is none.
  Code SyncObjectState(Text object_key, MediaSet current_media, Text tenant_id, Text group_id, MediaSet previous_media,
                       Text session_id = "") const noexcept {
    return Changed({tenant_id, object_key, group_id, session_id}, Before::Mutation(previous_media), current_media);
  }

  // The object was removed: `removed` for every medium it was readable on before.
  Code PublishObjectRemoved(Text object_key, Text tenant_id, Text group_id, MediaSet previous_media) const noexcept {
    return Removed({tenant_id, object_key, group_id}, Before::Mutation(previous_media));
  }

  // As PublishCommitted.
  Code Committed(const Object& object, MediaSet now) const noexcept {
    if (handle_ == nullptr) return KV_EVENTS_DISABLED;
    const kv_events_object_t raw = internal::Raw(object);
    if (object.session.view().empty()) return kv_events_committed(handle_, &raw, now.bits());
    return kv_events_committed_in_session(handle_, &raw, internal::Raw(object.session), now.bits());
  }

  // As SyncObjectState.
  Code Changed(const Object& object, Before before, MediaSet now) const noexcept {
    if (handle_ == nullptr) return KV_EVENTS_DISABLED;
    const kv_events_object_t raw = internal::Raw(object);
    const uint32_t was = before.media().bits(), is = now.bits();
    if (object.session.view().empty()) return kv_events_changed(handle_, &raw, was, is);
    return kv_events_changed_in_session(handle_, &raw, internal::Raw(object.session), was, is);
  }

  // As PublishObjectRemoved.
  Code Removed(const Object& object, Before before) const noexcept {
    if (handle_ == nullptr) return KV_EVENTS_DISABLED;
    const kv_events_object_t raw = internal::Raw(object);
    return kv_events_removed(handle_, &raw, before.media().bits());
  }

  // Begins to remove everything of a tenant.
  Sweep BeginSweep(Text tenant_id = "") const { return Sweep(handle_, tenant_id); }

  // The figures now. `enabled` in them says whether it was started, also after a stop. Of one that is not running all
  // are 0, but for `healthy`, which is 1 if it is disabled and 0 if its start failed.
  Stats GetStats() const noexcept {
    Stats stats;
    stats.healthy = code_ == KV_EVENTS_DISABLED;
    if (handle_ != nullptr) kv_events_status(handle_, &stats);
    return stats;
  }

  // The endpoint really bound (the port, if 0 or * was asked for); empty if there is none.
  std::string BoundEndpoint() const {
    return internal::Answer([this](kv_events_buffer_t* buffer) { kv_events_bound_endpoint(handle_, buffer); });
  }

  // What the sender died of, or why the start failed; empty while all is well.
  std::string UnhealthyReason() const {
    if (code_ < 0) return error_;
    return internal::Answer([this](kv_events_buffer_t* buffer) { kv_events_unhealthy_reason(handle_, buffer); });
  }

  // Stops: calls are refused from now on, what was accepted is sent, all within the deadline. A second stop is no harm.
  StopReport Stop(std::chrono::milliseconds deadline) const noexcept {
    StopReport stopped;
    if (handle_ == nullptr) return stopped;
    kv_events_stop_report_t report = {};
    report.size = sizeof report;
    kv_events_stop(handle_, internal::Milliseconds(deadline), &report);
    stopped.published = report.published;
    stopped.abandoned = report.abandoned;
    stopped.closed = report.closed != 0;
    return stopped;
  }

 private:
  kv_events_publisher_t* handle_ = nullptr;
  Code code_ = KV_EVENTS_DISABLED;
  std::string error_;
};

}  // namespace kv_events
