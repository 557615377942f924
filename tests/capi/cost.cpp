// What a call costs in C++, by the way its media are written: makes calls, to be counted by callgrind (.ci/capi-cost).
//
//   cost WAY      prints how many calls it made
#include "check.h"

#include <kv_events.hpp>

#include <string>
#include <thread>
#include <vector>

using kv_events::KvEventConfig;
using kv_events::KvEventPublisher;
using kv_events::Medium;

namespace {

// As in benches/capi.rs.
constexpr int kRound = 256, kRounds = 100;
const std::string kTenant = "tenant-a";
const std::string kKey = "model/meta-llama/Llama-3.1-70B-Instruct/tp4/layer-all/prefix-block/0123456789abcdef0123456789abcdef0";
const std::string kGroup = "batch-put/worker-07/2026-01-01T00:00:00.000Z/group-0000000000000042/segment-0001";
std::string text = "cpu";
std::vector<std::string> texts = {text};
std::vector<Medium> media = {Medium::kCpu};

#define WAY(name, written)                                                              \
  __attribute__((noinline)) void round_##name(const KvEventPublisher& publisher) {      \
    for (int i = 0; i < kRound; i++) {                                                  \
      publisher.PublishCommitted(kKey, written, kTenant, kGroup);                       \
      asm volatile("" ::: "memory");                                                    \
    }                                                                                   \
  }
#define LIST(...) {__VA_ARGS__}
WAY(enum, Medium::kCpu)
WAY(enum_list, LIST(Medium::kCpu))
WAY(name_list, LIST("cpu"))
WAY(text_list, LIST(text))
WAY(enum_vector, media)
WAY(text_vector, texts)

struct Way {
  const char* name;
  void (*round)(const KvEventPublisher&);
};
constexpr Way kWays[] = {{"enum", round_enum},           {"enum_list", round_enum_list},
                         {"name_list", round_name_list}, {"text_list", round_text_list},
                         {"enum_vector", round_enum_vector}, {"text_vector", round_text_vector}};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  KvEventConfig config;
  config.enable_kv_events = true;
  config.kv_events_bind_endpoint = "tcp://127.0.0.1:*";
  config.kv_events_backend_id = "master-0";
  config.kv_events_model_name = "meta-llama/Llama-3.1-70B-Instruct";
  config.kv_events_block_size = 16;
  config.kv_events_wait_strategy = kv_events::WaitStrategy::Poll(std::chrono::microseconds(50));
  const KvEventPublisher publisher(config);
  CHECK(publisher.enabled());
  for (const Way& way : kWays) {
    if (std::string_view(way.name) != argv[1]) continue;
    for (uint64_t i = 1; i <= kRounds; i++) {
      way.round(publisher);
      while (publisher.GetStats().published_events < i * kRound) std::this_thread::yield();
    }
    std::printf("%d\n", kRounds * kRound);
    return 0;
  }
  std::fprintf(stderr, "there is no way %s\n", argv[1]);
  return 2;
}
