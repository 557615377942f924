// A small master: a sharded map of objects and the media they are readable on, worked on by four threads, which tells every
// change to whoever subscribes.
//
//   master ENDPOINT [PUTS]      for example: master tcp://127.0.0.1:5557
//
// Goes on until Ctrl-C, at a leisurely pace; with PUTS it does so many, as fast as it can, and ends.
//
// What to look at: every publish happens under the lock of the mutation it tells of; what an object was readable on is
// taken before the mutation; a remove-all begins its sweep before it takes the first lock, and takes them all.

#include <kv_events.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using kv_events::KvEventConfig;
using kv_events::KvEventPublisher;
using kv_events::MediaSet;
using kv_events::Medium;

namespace {

constexpr const char* kTenant = "tenant-a";
constexpr int kThreads = 4;
constexpr int kPutsOfARound = 400;

std::atomic<bool> stopping{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

class Master {
 public:
  explicit Master(const KvEventPublisher& events) : events_(events) {}

  void Put(const std::string& key) {
    Shard& shard = ShardOf(key);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.objects[key] = Medium::kCpu;
    events_.PublishCommitted(key, Medium::kCpu, kTenant);
  }

  // Moves an object from memory to disk.
  void Offload(const std::string& key) {
    Shard& shard = ShardOf(key);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    const auto found = shard.objects.find(key);
    if (found == shard.objects.end()) return;
    const MediaSet before = found->second;
    found->second = Medium::kDisk;
    events_.SyncObjectState(key, Medium::kDisk, kTenant, "", before);
  }

  void Remove(const std::string& key) {
    Shard& shard = ShardOf(key);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    const auto found = shard.objects.find(key);
    if (found == shard.objects.end()) return;
    const MediaSet before = found->second;
    shard.objects.erase(found);
    events_.PublishObjectRemoved(key, kTenant, "", before);
  }

  // Says `cleared` at its end, unless something was stored meanwhile.
  kv_events::Code RemoveAll() {
    kv_events::Sweep sweep = events_.BeginSweep(kTenant);
    for (Shard& shard : shards_) {
      const std::lock_guard<std::mutex> lock(shard.mutex);
      for (const auto& [key, media] : shard.objects) sweep.Removed(key, media);
      shard.objects.clear();
    }
    return sweep.Finish();
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, MediaSet> objects;
  };

  Shard& ShardOf(const std::string& key) { return shards_[std::hash<std::string>{}(key) % shards_.size()]; }

  const KvEventPublisher& events_;
  std::array<Shard, 16> shards_;
};

void Work(Master& master, int thread, int puts) {
  for (int i = 0; i < puts; i++) {
    const std::string key = "model/thread-" + std::to_string(thread) + "/block-" + std::to_string(i);
    master.Put(key);
    if (i % 2 == 0) master.Offload(key);
    if (i % 4 == 0) master.Remove(key);
  }
}

void Print(const KvEventPublisher::Stats& stats) {
  std::printf("published %" PRIu64 " events in %" PRIu64 " messages, dropped %" PRIu64 ", refused %" PRIu64
              "; longest queue %" PRIu64 " of %" PRIu64 "\n",
              stats.published_events, stats.published_batches, stats.dropped_events, stats.refused_events,
              stats.queue_high_water, stats.queue_capacity);
}

// All threads put, offload and remove; then everything is removed.
void Round(Master& master, const KvEventPublisher& events, int puts) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; thread++) {
    threads.emplace_back([&master, thread, puts] { Work(master, thread, puts / kThreads); });
  }
  for (std::thread& thread : threads) thread.join();
  Print(events.GetStats());
  const kv_events::Code cleared = master.RemoveAll();
  std::printf("remove-all: %s\n", kv_events::ToString(cleared).data());
}

}  // namespace

int main(int argc, char** argv) {
  const int puts = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc < 2 || argc > 3 || argv[1][0] == '-' || (argc == 3 && puts <= 0)) {
    std::fprintf(stderr, "usage: master ENDPOINT [PUTS]\n");
    return 2;
  }
  KvEventConfig config = KvEventConfig::Recommended(argv[1], "example-master");
  config.kv_events_model_name = "model";
  config.kv_events_block_size = 16;
  kv_events::LogTo([](kv_events::LogLevel, std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  });
  const KvEventPublisher events(config);
  if (!events.enabled()) {
    std::fprintf(stderr, "no events are published: %s\n", events.error().c_str());
    return 1;
  }
  std::printf("publishing on %s\n", events.BoundEndpoint().c_str());

  std::signal(SIGINT, [](int) { stopping = true; });
  std::signal(SIGTERM, [](int) { stopping = true; });
  Master master(events);
  if (puts > 0) Round(master, events, puts);
  while (puts == 0 && !stopping) {
    Round(master, events, kPutsOfARound);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  const kv_events::StopReport report = events.Stop(std::chrono::seconds(5));
  Print(events.GetStats());
  std::printf("stopped: %" PRIu64 " abandoned, the endpoint is %s\n", report.abandoned, report.closed ? "free" : "not free yet");
  return 0;
}
