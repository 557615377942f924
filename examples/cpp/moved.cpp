// A master's calls as they were, through shim.hpp.
//
//   moved ENDPOINT
#include "shim.hpp"

#include <cinttypes>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: moved ENDPOINT\n");
    return 2;
  }
  kv_events::LogTo([](kv_events::LogLevel level, std::string_view line) {
    std::fprintf(stderr, "%d %.*s\n", static_cast<int>(level), static_cast<int>(line.size()), line.data());
  });
  shim::KvEventConfig config;
  config.enabled = true;
  config.bind_endpoint = argv[1];
  config.backend_id = "master-0";
  shim::KvEventPublisher publisher(config);
  if (!publisher.enabled()) return 1;

  publisher.PublishCommitted("model/block/42", {"cpu"}, "tenant-a", "batch-7");
  publisher.SyncObjectState("model/block/42", {"cpu", "disk"}, "tenant-a", "batch-7", {"cpu"});
  publisher.PublishObjectRemoved("model/block/42", "tenant-a", "batch-7", {"cpu", "disk"});
  publisher.PublishStored("model/block/43", "tape", "tenant-a");  // refused, counted, and told once

  while (publisher.GetStats().published_events < 4) {
  }
  const auto stats = publisher.GetStats();
  std::printf("published %" PRIu64 ", dropped %" PRIu64 ", refused %" PRIu64 "\n", stats.published_events,
              stats.dropped_events, stats.refused_events);
  return stats.refused_events == 1 ? 0 : 1;
}
