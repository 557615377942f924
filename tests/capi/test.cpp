// Every method of kv_events.hpp, used well and badly. Run by reader.py, which reads the stream; with the argument `noop`, a
// library built without ZeroMQ.
#include "check.h"

#include <kv_events.hpp>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using kv_events::KvEventConfig;
using kv_events::KvEventPublisher;
using kv_events::MediaSet;
using kv_events::Medium;
using kv_events::StopReport;
using kv_events::Sweep;
using namespace std::chrono_literals;

namespace {

constexpr int kThreads = 4;
constexpr int kCalls = 2000;
constexpr auto kDeadline = 10s;

static_assert(!std::is_copy_constructible_v<KvEventPublisher> && !std::is_copy_assignable_v<KvEventPublisher>);
static_assert(std::is_nothrow_move_constructible_v<KvEventPublisher> && std::is_nothrow_move_assignable_v<KvEventPublisher>);
static_assert(!std::is_copy_constructible_v<Sweep> && std::is_nothrow_move_constructible_v<Sweep>);

KvEventConfig Config(const std::string& endpoint = "tcp://127.0.0.1:0") {
  KvEventConfig config;
  config.enable_kv_events = true;
  config.kv_events_bind_endpoint = endpoint;
  config.kv_events_backend_id = "backend";
  config.kv_events_model_name = "model";
  config.kv_events_block_size = 16;
  config.kv_events_additional_salt = "salt";
  config.kv_events_lora_name = "lora";
  config.kv_events_dp_rank = 3;
  config.kv_events_emit_legacy_compat = false;
  config.kv_events_send_hwm = 0;
  config.kv_events_linger = kDeadline;
  return config;
}

void Expect(const char* type, const char* medium, const char* tenant, std::string_view key, const char* group = "") {
  expect_event(type, medium, tenant, key.data(), key.size(), group);
}

void Sets() {
  const std::string cpu = "cpu";
  CHECK(MediaSet().empty() && MediaSet("").empty() && MediaSet(nullptr).empty());
  CHECK(MediaSet("cpu").bits() == KV_EVENTS_CPU && MediaSet(cpu) == Medium::kCpu && MediaSet({"", "cpu"}) == "cpu");
  CHECK((Medium::kCpu | Medium::kDisk) == MediaSet({"disk", "cpu", "disk"}));
  CHECK(MediaSet({Medium::kDisk}) == MediaSet::FromBits(KV_EVENTS_DISK));
  CHECK(MediaSet(std::vector<std::string>{"cpu", ""}) == "cpu" && MediaSet(std::set<std::string_view>{"disk"}) == "disk");
  CHECK(MediaSet("disk").valid() && !MediaSet("tape").valid() && !MediaSet({"cpu", "CPU"}).valid());
  CHECK(MediaSet("cpu") != MediaSet("disk") && (MediaSet("cpu") | MediaSet("disk")).valid());
}

// A publisher that does nothing, and says why.
void CheckDisabled(const KvEventPublisher& publisher, std::string_view reason) {
  CHECK(!publisher.enabled() && publisher.error().find(reason) != std::string::npos);
  CHECK(publisher.PublishStored("key", "cpu") == KV_EVENTS_DISABLED);
  CHECK(publisher.PublishRemoved("key", "tape") == KV_EVENTS_DISABLED);
  CHECK(publisher.PublishCommitted("key", {"cpu"}) == KV_EVENTS_DISABLED);
  CHECK(publisher.PublishCleared() == KV_EVENTS_DISABLED);
  CHECK(publisher.SyncObjectState("key", {"cpu"}, "t", "", {}) == KV_EVENTS_DISABLED);
  CHECK(publisher.PublishObjectRemoved("key", "t", "", {"cpu"}) == KV_EVENTS_DISABLED);
  Sweep sweep = publisher.BeginSweep("t");
  CHECK(sweep.Removed("key", {"cpu"}, "") == KV_EVENTS_DISABLED);
  sweep.Skipped();
  const kv_events::Code end = sweep.Finish();
  CHECK(end == KV_EVENTS_DISABLED || end == KV_EVENTS_SWEEP_SKIPPED);
  CHECK(sweep.Finish() == KV_EVENTS_DISABLED);
  CHECK(publisher.GetStats().published_events == 0 && publisher.GetStats().enabled == 0);
  CHECK(publisher.BoundEndpoint().empty() && publisher.UnhealthyReason().empty());
  CHECK(publisher.Stop(kDeadline).closed);
}

void Configs() {
  CheckDisabled(KvEventPublisher(KvEventConfig{}), "enable_kv_events");
  CheckDisabled(KvEventPublisher::StartOrThrow(KvEventConfig{}), "enable_kv_events");
  KvEventConfig config = Config();
  config.kv_events_backend_id.clear();
  CheckDisabled(KvEventPublisher(config), "kv_events_backend_id");
  config = Config();
  config.kv_events_queue_capacity = 0;
  CheckDisabled(KvEventPublisher(config), "kv_events_queue_capacity");
  config = Config();
  config.kv_events_wait_strategy = "doze";
  CheckDisabled(KvEventPublisher(config), "kv_events_wait_strategy");
  config = Config();
  config.kv_events_lora_name = "\xff";
  CheckDisabled(KvEventPublisher(config), "kv_events_lora_name");
  bool thrown = false;
  try {
    KvEventPublisher::StartOrThrow(Config("tcp://127.0.0.1"));
  } catch (const kv_events::StartError& error) {
    thrown = error.code() == KV_EVENTS_ENDPOINT && std::string_view(error.what()).find("no port") != std::string::npos;
  }
  CHECK(thrown);
}

void Calls(const KvEventPublisher& publisher) {
  const std::vector<std::string> both = {"cpu", "disk"};
  Expect("stored", "cpu", "default", "key");
  CHECK(publisher.PublishStored("key", "cpu") == KV_EVENTS_OK);
  Expect("removed", "disk", "t", "key", "g");
  CHECK(publisher.PublishRemoved("key", Medium::kDisk, "t", "g") == KV_EVENTS_OK);
  Expect("stored", "cpu", "t", "key", "g");
  Expect("stored", "disk", "t", "key", "g");
  CHECK(publisher.PublishCommitted("key", both, "t", "g") == KV_EVENTS_OK);
  Expect("removed", "cpu", "t", "key", "g");
  CHECK(publisher.SyncObjectState("key", {"disk"}, "t", "g", both) == KV_EVENTS_OK);
  Expect("removed", "disk", "t", "key", "g");
  Expect("stored", "cpu", "t", "key", "g");
  CHECK(publisher.SyncObjectState("key", Medium::kCpu, "t", "g", Medium::kDisk) == KV_EVENTS_OK);
  Expect("removed", "cpu", "t", "key", "g");
  CHECK(publisher.PublishObjectRemoved("key", "t", "g", {"cpu", ""}) == KV_EVENTS_OK);
  expect_in_session("stored", "cpu", "t", "key", 3, "g", "session");
  CHECK(publisher.PublishStored("key", Medium::kCpu, "t", "g", "session") == KV_EVENTS_OK);
  expect_in_session("stored", "cpu", "t", "key", 3, "g", "session");
  expect_in_session("stored", "disk", "t", "key", 3, "g", "session");
  CHECK(publisher.PublishCommitted("key", both, "t", "g", "session") == KV_EVENTS_OK);
  Expect("removed", "cpu", "t", "key", "g");
  expect_in_session("stored", "disk", "t", "key", 3, "g", "session");
  CHECK(publisher.SyncObjectState("key", Medium::kDisk, "t", "g", Medium::kCpu, "session") == KV_EVENTS_OK);
  Expect("cleared", "-", "t", "");
  CHECK(publisher.PublishCleared("t") == KV_EVENTS_OK);
  // A key with a NUL inside, of a view that ends in none.
  const std::string_view nul("a\0bc", 3);
  Expect("stored", "cpu", "t", nul);
  CHECK(publisher.PublishStored(nul, "cpu", "t") == KV_EVENTS_OK);

  const uint64_t refused = publisher.GetStats().refused_events;
  CHECK(publisher.PublishStored("key", "tape", "t") == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(publisher.PublishCommitted("key", {"cpu", "DISK"}) == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(publisher.PublishCommitted("\xc3", both) == KV_EVENTS_NOT_UTF8);
  CHECK(publisher.PublishCommitted(std::string(20000, 'k'), both) == KV_EVENTS_TOO_LARGE);
  CHECK(publisher.GetStats().refused_events == refused + 6);
  CHECK(publisher.PublishCommitted("key", {}) == KV_EVENTS_NOTHING);
  CHECK(publisher.PublishCommitted("", "cpu") == KV_EVENTS_SUPPRESSED);
  CHECK(publisher.GetStats().skipped_keyless_events == 1);
  CHECK(kv_events::ToString(KV_EVENTS_TOO_LARGE).find("kv_events_max_event_bytes") != std::string_view::npos);
}

void Sweeps(const KvEventPublisher& publisher) {
  {
    Sweep dropped = publisher.BeginSweep("t");
    Expect("removed", "cpu", "t", "key");
    CHECK(dropped.Removed("key", "cpu", "") == KV_EVENTS_OK);
  }
  Sweep skipped = publisher.BeginSweep("t");
  skipped.Skipped();
  Sweep sweep = publisher.BeginSweep("other");
  sweep = std::move(skipped);
  CHECK(sweep.Finish() == KV_EVENTS_SWEEP_SKIPPED && sweep.Finish() == KV_EVENTS_INVALID_HANDLE);
  CHECK(sweep.Removed("key", "cpu", "") == KV_EVENTS_INVALID_HANDLE);

  // One that cannot begin: what it is told of is refused, and counted.
  Sweep refusing = publisher.BeginSweep("\xff");
  const uint64_t refused = publisher.GetStats().refused_events;
  CHECK(refusing.Removed("key", {"cpu", "disk"}, "") == KV_EVENTS_NOT_UTF8);
  Sweep moved = std::move(refusing);
  CHECK(moved.Removed("key", "cpu", "") == KV_EVENTS_NOT_UTF8 && moved.Finish() == KV_EVENTS_NOT_UTF8);
  CHECK(publisher.GetStats().refused_events == refused + 3);

  Sweep interrupted = publisher.BeginSweep();
  Expect("removed", "disk", "default", "key", "g");
  CHECK(interrupted.Removed("key", "disk", "g") == KV_EVENTS_OK);
  Expect("stored", "cpu", "default", "key");
  CHECK(publisher.PublishStored("key", "cpu") == KV_EVENTS_OK);
  CHECK(interrupted.Finish() == KV_EVENTS_SWEEP_INTERRUPTED);
}

template <typename Body>
void Run(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

void Threads(const KvEventPublisher& publisher) {
  const auto key = [](const char* prefix, int thread, int i) {
    return prefix + std::to_string(thread) + "/" + std::to_string(i);
  };
  for (int i = 0; i < kThreads; i++) {
    expect_series("stored", "cpu", "t", ("put-" + std::to_string(i)).c_str(), kCalls);
    expect_series("removed", "disk", "t", ("swept-" + std::to_string(i)).c_str(), kCalls);
  }
  Run([&](int thread) {
    for (int i = 0; i < kCalls; i++) {
      CHECK(publisher.PublishCommitted(key("put-", thread, i), Medium::kCpu, "t") == KV_EVENTS_OK);
      if (i % 100 == 0) CHECK(publisher.GetStats().enabled == 1);
    }
  });
  Sweep sweep = publisher.BeginSweep("t");
  Run([&](int thread) {
    for (int i = 0; i < kCalls; i++) CHECK(sweep.Removed(key("swept-", thread, i), Medium::kDisk, "") == KV_EVENTS_OK);
  });
  Expect("cleared", "-", "t", "");
  CHECK(sweep.Finish() == KV_EVENTS_OK);
}

void StopDuringCalls() {
  KvEventConfig config = Config();
  config.kv_events_queue_capacity = 256;
  config.kv_events_eviction_burst = kv_events_recommended_eviction_burst(256);
  config.kv_events_wait_strategy = "spin";
  config.kv_events_heartbeat_interval = 1s;
  config.kv_events_max_event_bytes = 4096;
  config.kv_events_max_batch_events = 32;
  config.kv_events_max_batch_bytes = 65536;
  config.kv_events_retain_bytes = 1024;
  const KvEventPublisher publisher(config);
  CHECK(publisher.enabled() && publisher.GetStats().queue_capacity == 256);
  std::atomic<uint64_t> accepted{0};
  Run([&](int thread) {
    if (thread == 0) {
      while (accepted < 10000) std::this_thread::yield();
      CHECK(publisher.Stop(kDeadline).closed);
      return;
    }
    while (publisher.PublishStored("key", "cpu") == KV_EVENTS_OK) accepted++;
    CHECK(publisher.PublishStored("key", "cpu") == KV_EVENTS_STOPPED);
  });
  const StopReport report = publisher.Stop(0ms);
  const KvEventPublisher::Stats stats = publisher.GetStats();
  CHECK(report.closed && report.published == stats.published_events && stats.refused_events >= 6);
  CHECK(accepted == stats.published_events + stats.dropped_events && stats.send_hwm == 0);
}

// Moved publishers and those assigned over behave as what they have become.
KvEventPublisher Moves() {
  KvEventPublisher first(Config()), second(Config());
  const std::string endpoint = second.BoundEndpoint();
  CHECK(first.enabled() && second.enabled() && first.BoundEndpoint() != endpoint);
  const std::string free_again = first.BoundEndpoint();
  first = std::move(second);
  CHECK(first.BoundEndpoint() == endpoint);
  CheckDisabled(second, "");  // NOLINT: what a moved-from publisher does is part of the interface
  CHECK(KvEventPublisher(Config(free_again)).enabled());
  CheckDisabled(KvEventPublisher(Config(endpoint)), "is in use");
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  Sets();
  if (argc > 1 && std::string_view(argv[1]) == "noop") {
    CheckDisabled(KvEventPublisher(Config()), "without ZeroMQ");
    std::puts("a C++ library without ZeroMQ does nothing, and says so");
    return 0;
  }
  Configs();
  KvEventPublisher publisher = Moves();
  std::printf("endpoint %s\n", publisher.BoundEndpoint().c_str());
  std::fflush(stdout);
  while (!heard()) CHECK(publisher.PublishCleared("probe") == KV_EVENTS_OK);
  Calls(publisher);
  Sweeps(publisher);
  Threads(publisher);
  StopDuringCalls();
  CHECK(publisher.PublishCleared("end") == KV_EVENTS_OK);
  const StopReport report = publisher.Stop(kDeadline);
  CHECK(report.closed && report.abandoned == 0);
  CHECK(publisher.PublishStored("key", "cpu") == KV_EVENTS_STOPPED && publisher.UnhealthyReason().empty());
  return 0;
}
