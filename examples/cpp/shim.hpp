// For a master that has a publisher with a mutex and a deque, and calls it in many places: the interface it has, over
// kv_events. Copy it, rename it to what your master includes, and nothing else has to change; docs/migrate.md tells what is
// different behind it. Later, call kv_events::KvEventPublisher itself: it says more.
#pragma once

#include <kv_events.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace shim {

struct KvEventConfig {
  bool enabled = false;
  std::string bind_endpoint = {};
  std::string backend_id = {};
  std::string model_name = {};
  uint32_t block_size = 0;
  std::string additional_salt = {};
  std::string lora_name = {};
  uint32_t dp_rank = 0;
  bool emit_object_key = true;
  bool emit_legacy_compat_fields = true;
  size_t queue_capacity = 65536;
};

class KvEventPublisher {
 public:
  using Media = std::vector<std::string>;

  explicit KvEventPublisher(const KvEventConfig& config) : events_(Settings(config)) {
    if (config.enabled && !events_.enabled()) Log("not started", events_.error());
  }

  bool enabled() const { return events_.enabled(); }

  void PublishStored(const std::string& key, const std::string& medium, const std::string& tenant = "",
                     const std::string& group = "") {
    Note(events_.PublishStored(key, {medium}, tenant, group));
  }
  void PublishRemoved(const std::string& key, const std::string& medium, const std::string& tenant = "",
                      const std::string& group = "") {
    Note(events_.PublishRemoved(key, {medium}, tenant, group));
  }
  void PublishCleared(const std::string& tenant = "") { Note(events_.PublishCleared(tenant)); }
  void PublishCommitted(const std::string& key, const Media& now, const std::string& tenant = "",
                        const std::string& group = "") {
    Note(events_.PublishCommitted(key, now, tenant, group));
  }
  // No default for what was before: without it, nothing is published, and nobody is told.
  void SyncObjectState(const std::string& key, const Media& now, const std::string& tenant, const std::string& group,
                       const Media& before) {
    Note(events_.SyncObjectState(key, now, tenant, group, before));
  }
  void PublishObjectRemoved(const std::string& key, const std::string& tenant, const std::string& group,
                            const Media& before) {
    Note(events_.PublishObjectRemoved(key, tenant, group, before));
  }

  struct Stats {
    uint64_t published_batches = 0;
    uint64_t published_events = 0;
    uint64_t dropped_events = 0;
    uint64_t skipped_keyless_events = 0;
    uint64_t refused_events = 0;
  };
  Stats GetStats() const {
    const auto stats = events_.GetStats();
    return {stats.published_batches, stats.published_events, stats.dropped_events, stats.skipped_keyless_events,
            stats.refused_events};
  }

 private:
  static kv_events::KvEventConfig Settings(const KvEventConfig& config) {
    kv_events::KvEventConfig settings;
    settings.enable_kv_events = config.enabled;
    settings.kv_events_bind_endpoint = config.bind_endpoint;
    settings.kv_events_backend_id = config.backend_id;
    settings.kv_events_model_name = config.model_name;
    settings.kv_events_block_size = config.block_size;
    settings.kv_events_additional_salt = config.additional_salt;
    settings.kv_events_lora_name = config.lora_name;
    settings.kv_events_dp_rank = config.dp_rank;
    settings.kv_events_emit_object_key = config.emit_object_key;
    settings.kv_events_emit_legacy_compat = config.emit_legacy_compat_fields;
    settings.kv_events_queue_capacity = config.queue_capacity;
    settings.kv_events_heartbeat_interval = std::chrono::seconds(1);
    return settings;
  }

  // The first refusal is worth a line; all are in the figures.
  void Note(kv_events::Code code) {
    if (code < 0 && !told_.exchange(true)) Log("the first call that was not taken", kv_events::ToString(code));
  }

  // Your master's logger.
  static void Log(const char* what, std::string_view why) {
    std::fprintf(stderr, "kv_events: %s: %.*s\n", what, static_cast<int>(why.size()), why.data());
  }

  kv_events::KvEventPublisher events_;
  std::atomic<bool> told_{false};
};

}  // namespace shim
