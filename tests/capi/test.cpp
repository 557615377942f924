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

using kv_events::Before;
using kv_events::KvEventConfig;
using kv_events::KvEventPublisher;
using kv_events::MediaSet;
using kv_events::Medium;
using kv_events::State;
using kv_events::StopReport;
using kv_events::Sweep;
using kv_events::WaitStrategy;
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

constexpr MediaSet kBoth = Medium::kCpu | Medium::kDisk;
constexpr const char* kNames[] = {"disk", "cpu"};
constexpr Medium kMedia[] = {Medium::kDisk};

// Lists and ranges, however many braces there are. At compile time, where what is undefined is an error.
static_assert(MediaSet().empty() && MediaSet{}.empty() && MediaSet({}).empty() && MediaSet{""}.empty());
static_assert(MediaSet{"cpu"} == Medium::kCpu && MediaSet({"cpu"}) == Medium::kCpu && MediaSet{{"cpu"}} == Medium::kCpu);
static_assert(MediaSet{"cpu", "disk"} == kBoth && MediaSet({"cpu", "disk"}) == kBoth);
static_assert(MediaSet{{"cpu", "disk"}} == kBoth && MediaSet({{"cpu", "disk"}}) == kBoth);
static_assert(MediaSet{std::string_view("disk"), "", "disk"} == Medium::kDisk);
static_assert(MediaSet{"cpu", Medium::kDisk} == kBoth && MediaSet{{Medium::kCpu, Medium::kDisk}} == kBoth);
static_assert(MediaSet(kNames) == kBoth && MediaSet(kMedia) == Medium::kDisk);
static_assert(MediaSet{"disk"}.valid() && !MediaSet{"tape"}.valid() && !MediaSet{"cpu", "CPU"}.valid());
static_assert(!MediaSet::FromBits(4).valid() && MediaSet::FromBits(KV_EVENTS_DISK) == Medium::kDisk);
static_assert(kBoth.contains(Medium::kCpu) && !MediaSet(Medium::kCpu).contains(Medium::kDisk) && kBoth != Medium::kCpu);
static_assert(std::is_convertible_v<std::vector<Medium>, MediaSet> && !std::is_convertible_v<std::vector<int>, MediaSet>);

// A text is not a set of media, nor the other way round, nor are numbers or null pointers either.
static_assert(!std::is_constructible_v<MediaSet, const char*> && !std::is_constructible_v<MediaSet, std::string>);
static_assert(!std::is_constructible_v<MediaSet, int> && !std::is_constructible_v<MediaSet, std::nullptr_t>);
static_assert(!std::is_constructible_v<kv_events::Text, MediaSet> && !std::is_constructible_v<kv_events::Text, Medium>);
static_assert(!std::is_constructible_v<kv_events::Text, std::nullptr_t> && !std::is_constructible_v<kv_events::Text, int>);
static_assert(!std::is_constructible_v<Before, MediaSet> && !std::is_convertible_v<Before, MediaSet>);

void Sets() {
  const std::string cpu = "cpu";
  const char* const null = nullptr;
  CHECK((MediaSet{cpu} == Medium::kCpu && MediaSet({cpu, "disk"}) == kBoth && MediaSet{{cpu, cpu}} == Medium::kCpu));
  CHECK(MediaSet{null}.empty() && kv_events::Text(null).view().empty());
  CHECK((MediaSet(std::vector<std::string>{"cpu", ""}) == Medium::kCpu));
  CHECK(MediaSet(std::set<std::string_view>{"disk"}) == Medium::kDisk);
  CHECK((MediaSet(std::vector<Medium>{Medium::kDisk, Medium::kCpu}) == kBoth && MediaSet(std::vector<Medium>{}).empty()));
  MediaSet set;
  set |= Medium::kDisk;
  set |= MediaSet{"cpu"};
  CHECK(set == kBoth && (set | Medium::kCpu) == kBoth);
}

// What is made without a publisher is all 0, and the settings can be written as a list.
void Values() {
  KvEventPublisher::Stats stats;
  const kv_events_status_t zero = {sizeof zero, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0},
                                   0, 0, 0, {0}, 0, 0, 0, 0};
  CHECK(memcmp(static_cast<const kv_events_status_t*>(&stats), &zero, sizeof zero) == 0);
  CHECK(WaitStrategy::Park().text() == "park" && WaitStrategy::Spin().text() == "spin" && WaitStrategy().text().empty());
  CHECK(WaitStrategy::Nap(50us).text() == "nap:50us" && WaitStrategy::Poll(1ms).text() == "poll:1000us");
  const KvEventConfig recommended = KvEventConfig::Recommended("tcp://127.0.0.1:0", "backend");
  CHECK(recommended.enable_kv_events && recommended.kv_events_heartbeat_interval == 1s);
  CHECK(recommended.kv_events_eviction_burst == kv_events_recommended_eviction_burst(65536));
#if __cplusplus >= 202002L
  const KvEventConfig config = {.enable_kv_events = true,
                                .kv_events_bind_endpoint = "tcp://127.0.0.1:0",
                                .kv_events_backend_id = "backend",
                                .kv_events_wait_strategy = WaitStrategy::Park(),
                                .kv_events_linger = 1s};
  CHECK(config.kv_events_emit_object_key && !config.kv_events_queue_capacity);
  const kv_events::Object object = {.tenant = "t", .key = "k"};
  CHECK(object.group.view().empty());
#endif
}

// A publisher that does nothing, and says why.
void CheckNotRunning(const KvEventPublisher& publisher, State state, std::string_view reason) {
  CHECK(!publisher.enabled() && publisher.state() == state && publisher.error().find(reason) != std::string::npos);
  CHECK(publisher.PublishStored("key", {"cpu"}) == KV_EVENTS_DISABLED);
  CHECK(publisher.PublishRemoved("key", {"tape"}) == KV_EVENTS_DISABLED);
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
  const KvEventPublisher::Stats stats = publisher.GetStats();
  CHECK(stats.published_events == 0 && stats.enabled == 0 && (stats.healthy != 0) == (state == State::kDisabled));
  CHECK(publisher.BoundEndpoint().empty());
  CHECK(publisher.UnhealthyReason() == (state == State::kDisabled ? "" : publisher.error()));
  CHECK(publisher.Stop(kDeadline).closed && publisher.state() == state);
}

void CheckDisabled(const KvEventPublisher& publisher, std::string_view reason) {
  CheckNotRunning(publisher, State::kDisabled, reason);
}

void CheckNotStarted(const KvEventPublisher& publisher, kv_events::Code code, std::string_view reason) {
  CHECK(publisher.code() == code && !publisher.error().empty());
  CheckNotRunning(publisher, State::kNotStarted, reason);
}

void Configs() {
  CheckDisabled(KvEventPublisher(KvEventConfig{}), "enable_kv_events");
  KvEventConfig config = Config();
  config.kv_events_backend_id.clear();
  CheckNotStarted(KvEventPublisher(config), KV_EVENTS_CONFIG, "kv_events_backend_id");
  config = Config();
  config.kv_events_queue_capacity = 0;
  CheckNotStarted(KvEventPublisher(config), KV_EVENTS_CONFIG, "kv_events_queue_capacity");
  config = Config();
  config.kv_events_wait_strategy = WaitStrategy("doze");
  CheckNotStarted(KvEventPublisher(config), KV_EVENTS_CONFIG, "kv_events_wait_strategy");
  config.kv_events_wait_strategy = WaitStrategy::Nap(-5us);
  CheckNotStarted(KvEventPublisher(config), KV_EVENTS_CONFIG, "kv_events_wait_strategy");
  config = Config();
  config.kv_events_lora_name = "\xff";
  CheckNotStarted(KvEventPublisher(config), KV_EVENTS_NOT_UTF8, "kv_events_lora_name");
  // A reason that is longer than the room for it.
  CheckNotStarted(KvEventPublisher(Config("tcp://" + std::string(5000, 'x'))), KV_EVENTS_ENDPOINT, "xxx");
#if KV_EVENTS_EXCEPTIONS
  CheckDisabled(KvEventPublisher::StartOrThrow(KvEventConfig{}), "enable_kv_events");
  bool thrown = false;
  try {
    KvEventPublisher::StartOrThrow(Config("tcp://127.0.0.1"));
  } catch (const kv_events::StartError& error) {
    thrown = error.code() == KV_EVENTS_ENDPOINT && std::string_view(error.what()).find("no port") != std::string::npos;
  }
  CHECK(thrown);
#endif
}

// The log, and a callback that throws.
void Logs() {
  int warnings = 0;
  const auto callback = [&warnings](kv_events::LogLevel level, std::string_view line) {
    CHECK(!line.empty());
    if (level == kv_events::LogLevel::kWarning) warnings++;
#if KV_EVENTS_EXCEPTIONS
    throw 1;
#endif
  };
  KvEventConfig config = Config();
  config.kv_events_emit_object_key = false;
  CHECK(kv_events::LogTo(callback) == KV_EVENTS_OK);
  CHECK(KvEventPublisher(config).enabled() && warnings == 1);
  CHECK(kv_events::LogTo({}) == KV_EVENTS_OK);
  CHECK(KvEventPublisher(config).enabled() && warnings == 1);
}

void Calls(const KvEventPublisher& publisher) {
  const std::vector<std::string> both = {"cpu", "disk"};
  Expect("stored", "cpu", "default", "key");
  CHECK(publisher.PublishStored("key", {"cpu"}) == KV_EVENTS_OK);
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
  // The same in the order of C and Rust.
  Expect("stored", "cpu", "t", "key", "g");
  CHECK(publisher.Committed({"t", "key", "g"}, {{"cpu"}}) == KV_EVENTS_OK);
  Expect("removed", "cpu", "t", "key");
  Expect("stored", "disk", "t", "key");
  CHECK(publisher.Changed({"t", "key"}, Before::Mutation({"cpu"}), Medium::kDisk) == KV_EVENTS_OK);
  Expect("removed", "disk", "default", "key");
  CHECK(publisher.Removed({"", "key"}, Before::Mutation(std::vector<Medium>{Medium::kDisk})) == KV_EVENTS_OK);
  // A key with a NUL inside, of a view that ends in none.
  const std::string_view nul("a\0bc", 3);
  Expect("stored", "cpu", "t", nul);
  CHECK(publisher.PublishStored(nul, {"cpu"}, "t") == KV_EVENTS_OK);

  const uint64_t refused = publisher.GetStats().refused_events;
  CHECK(publisher.PublishStored("key", {"tape"}, "t") == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(publisher.PublishCommitted("key", {"cpu", "DISK"}) == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(publisher.PublishCommitted("\xc3", both) == KV_EVENTS_NOT_UTF8);
  CHECK(publisher.PublishCommitted(std::string(20000, 'k'), both) == KV_EVENTS_TOO_LARGE);
  CHECK(publisher.GetStats().refused_events == refused + 6);
  CHECK(publisher.PublishCommitted("key", {}) == KV_EVENTS_NOTHING);
  CHECK(publisher.PublishCommitted("", {"cpu"}) == KV_EVENTS_SUPPRESSED);
  CHECK(publisher.GetStats().skipped_keyless_events == 1);
  CHECK(kv_events::ToString(KV_EVENTS_TOO_LARGE).find("kv_events_max_event_bytes") != std::string_view::npos);
}

void Sweeps(const KvEventPublisher& publisher) {
  {
    Sweep dropped = publisher.BeginSweep("t");
    Expect("removed", "cpu", "t", "key");
    CHECK(dropped.Removed("key", {"cpu"}) == KV_EVENTS_OK);
  }
  Sweep skipped = publisher.BeginSweep("t");
  skipped.Skipped();
  Sweep sweep = publisher.BeginSweep("other");
  sweep = std::move(skipped);
  CHECK(sweep.Finish() == KV_EVENTS_SWEEP_SKIPPED && sweep.Finish() == KV_EVENTS_INVALID_HANDLE);
  CHECK(sweep.Removed("key", {"cpu"}) == KV_EVENTS_INVALID_HANDLE);

  // One that cannot begin: what it is told of is refused, and counted.
  Sweep refusing = publisher.BeginSweep("\xff");
  const uint64_t refused = publisher.GetStats().refused_events;
  CHECK(refusing.Removed("key", {"cpu", "disk"}, "") == KV_EVENTS_NOT_UTF8);
  Sweep moved = std::move(refusing);
  CHECK(moved.Removed("key", {"cpu"}) == KV_EVENTS_NOT_UTF8 && moved.Finish() == KV_EVENTS_NOT_UTF8);
  CHECK(publisher.GetStats().refused_events == refused + 3);

  Sweep interrupted = publisher.BeginSweep();
  Expect("removed", "disk", "default", "key", "g");
  CHECK(interrupted.Removed("key", {"disk"}, "g") == KV_EVENTS_OK);
  Expect("stored", "cpu", "default", "key");
  CHECK(publisher.PublishStored("key", {"cpu"}) == KV_EVENTS_OK);
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
  config.kv_events_wait_strategy = WaitStrategy::Spin();
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
    while (publisher.PublishStored("key", {"cpu"}) == KV_EVENTS_OK) accepted++;
    CHECK(publisher.PublishStored("key", {"cpu"}) == KV_EVENTS_STOPPED);
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
  CheckNotStarted(KvEventPublisher(Config(endpoint)), KV_EVENTS_ENDPOINT, "is in use");
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  Sets();
  Values();
  if (argc > 1 && std::string_view(argv[1]) == "noop") {
    CheckDisabled(KvEventPublisher(Config()), "without ZeroMQ");
    std::puts("a C++ library without ZeroMQ does nothing, and says so");
    return 0;
  }
  Configs();
  Logs();
  KvEventPublisher publisher = Moves();
  std::printf("endpoint %s\n", publisher.BoundEndpoint().c_str());
  std::fflush(stdout);
  while (!heard()) CHECK(publisher.PublishCleared("probe") == KV_EVENTS_OK);
  Calls(publisher);
  Sweeps(publisher);
  Threads(publisher);
  StopDuringCalls();
  CHECK(publisher.PublishCleared("end") == KV_EVENTS_OK);
  CHECK(publisher.enabled() && publisher.state() == State::kRunning);
  const StopReport report = publisher.Stop(kDeadline);
  CHECK(report.closed && report.abandoned == 0 && !publisher.enabled() && publisher.state() == State::kStopped);
  CHECK(publisher.GetStats().enabled == 1 && publisher.GetStats().healthy == 1 && publisher.GetStats().stopped == 1);
  CHECK(publisher.PublishStored("key", {"cpu"}) == KV_EVENTS_STOPPED && publisher.UnhealthyReason().empty());
  return 0;
}
