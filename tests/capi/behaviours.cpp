// The behaviours that a master's publisher is known for, each with a publisher of its own behind the shim of the examples.
// Run by behaviours.py, which reads the streams and holds them against what is printed here: a `call N` line and N `expect`
// lines for what must arrive, in one message for each call.
#include "check.h"

#include "../../examples/cpp/shim.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

using shim::KvEventConfig;
using shim::KvEventPublisher;
using Media = std::vector<std::string>;

namespace {

KvEventConfig Enabled() {
  KvEventConfig config;
  config.enabled = true;
  config.bind_endpoint = "tcp://127.0.0.1:0";
  config.backend_id = "backend";
  config.model_name = "model";
  config.block_size = 16;
  config.additional_salt = "salt";
  config.lora_name = "lora";
  config.dp_rank = 3;
  return config;
}

struct Event {
  const char* type;
  const char* medium;
};

const char* const kKey = "deploy-a@model-b@tp:2/pp:1/group:7/0123456789abcdef";

void Expect(const std::vector<Event>& events, const char* tenant, const std::string& key, const char* group) {
  std::printf("call %zu\n", events.size());
  for (const Event& event : events) expect_event(event.type, event.medium, tenant, key.data(), key.size(), group);
}

// Waits, for as long as it takes (reader and watchdog end a test that hangs).
template <typename Condition>
void Until(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// All that was said has been sent, so the next call begins a message.
void Settle(const KvEventPublisher& publisher, uint64_t events) {
  Until([&] { return publisher.GetStats().published_events == events; });
}

void ObjectEventsCarryTheContext(KvEventPublisher& publisher) {
  const auto before = publisher.GetStats();
  Expect({{"stored", "cpu"}}, "t", kKey, "g");
  publisher.PublishStored(kKey, "cpu", "t", "g");
  Settle(publisher, before.published_events + 1);
  Expect({{"removed", "cpu"}}, "t", kKey, "g");
  publisher.PublishRemoved(kKey, "cpu", "t", "g");
  Settle(publisher, before.published_events + 2);
  Expect({{"cleared", "-"}}, "t", "", "");
  publisher.PublishCleared("t");
  Settle(publisher, before.published_events + 3);
  const auto stats = publisher.GetStats();
  CHECK(stats.published_batches >= before.published_batches + 3 && stats.dropped_events == 0);
}

void ACommitIsAlwaysAnnounced(KvEventPublisher& publisher) {
  for (int i = 0; i < 3; i++) {
    Expect({{"stored", "cpu"}}, "t", kKey, "g");
    publisher.PublishCommitted(kKey, {"cpu"}, "t", "g");
  }
  Expect({{"removed", "cpu"}}, "t", kKey, "g");
  publisher.SyncObjectState(kKey, {}, "t", "g", {"cpu"});
  Expect({{"stored", "cpu"}}, "t", kKey, "g");
  publisher.PublishCommitted(kKey, {"cpu"}, "t", "g");
}

void AnEmptyTenantIsDefault(KvEventPublisher& publisher) {
  Expect({{"stored", "disk"}}, "default", "key", "");
  publisher.PublishStored("key", "disk");
  Expect({{"cleared", "-"}}, "default", "", "");
  publisher.PublishCleared();
}

void AClearNamesItsTenantAlone(KvEventPublisher& publisher) {
  Expect({{"stored", "cpu"}}, "a", "of-a", "");
  publisher.PublishStored("of-a", "cpu", "a");
  Expect({{"stored", "cpu"}}, "b", "of-b", "");
  publisher.PublishStored("of-b", "cpu", "b");
  Expect({{"cleared", "-"}}, "a", "", "");
  publisher.PublishCleared("a");
}

void WithoutKeysOnlyClearsAreSent(KvEventPublisher& publisher) {
  publisher.PublishStored("key", "cpu", "t");
  publisher.PublishRemoved("key", "cpu", "t");
  publisher.PublishCommitted("key", {"cpu", "disk"}, "t", "g");
  publisher.PublishObjectRemoved("key", "t", "g", {"disk"});
  Expect({{"cleared", "-"}}, "t", "", "");
  publisher.PublishCleared("t");
  CHECK(publisher.GetStats().skipped_keyless_events == 5 && publisher.GetStats().dropped_events == 0);
}

void AFullQueueDropsTheOldest(KvEventPublisher& publisher) {
  const uint64_t dropped = publisher.GetStats().dropped_events;
  int calls = 0;
  for (; publisher.GetStats().dropped_events == dropped; calls++) {
    publisher.PublishStored(std::to_string(calls), "cpu", "overflow");
  }
  std::printf("overflow %d\n", calls);
}

void ARemovalCoversAllItsMedia(KvEventPublisher& publisher) {
  Expect({{"removed", "cpu"}, {"removed", "disk"}}, "t", kKey, "g");
  publisher.PublishObjectRemoved(kKey, "t", "g", {"disk", "cpu"});
}

void AMediumThatStaysIsNotRemoved(KvEventPublisher& publisher) {
  Expect({{"removed", "disk"}}, "t", kKey, "g");
  publisher.SyncObjectState(kKey, {"cpu"}, "t", "g", {"cpu", "disk"});
}

void StoredOnBothAndRemovedFromBoth(KvEventPublisher& publisher) {
  Expect({{"stored", "cpu"}, {"stored", "disk"}}, "t", kKey, "g");
  publisher.PublishCommitted(kKey, {"cpu", "disk"}, "t", "g");
  Expect({{"removed", "cpu"}, {"removed", "disk"}}, "t", kKey, "g");
  publisher.PublishObjectRemoved(kKey, "t", "g", {"cpu", "disk"});
}

void UnchangedMediaAreNoNews(KvEventPublisher& publisher) {
  publisher.SyncObjectState(kKey, {"cpu", "disk"}, "t", "g", {"disk", "cpu"});
  publisher.SyncObjectState(kKey, {}, "t", "g", {});
}

void ANewMediumIsStored(KvEventPublisher& publisher) {
  Expect({{"stored", "disk"}}, "t", kKey, "g");
  publisher.SyncObjectState(kKey, {"cpu", "disk"}, "t", "g", {"cpu"});
}

void AMoveIsOneMessage(KvEventPublisher& publisher) {
  Expect({{"removed", "cpu"}, {"stored", "disk"}}, "t", kKey, "g");
  publisher.SyncObjectState(kKey, {"disk"}, "t", "g", {"cpu"});
}

void AnEmptyMediumIsNoMedium(KvEventPublisher& publisher) {
  publisher.PublishStored(kKey, "", "t", "g");
  publisher.PublishRemoved(kKey, "", "t", "g");
  publisher.PublishCommitted(kKey, {""}, "t", "g");
  publisher.PublishObjectRemoved(kKey, "t", "g", {""});
  publisher.SyncObjectState(kKey, {""}, "t", "g", {""});
  CHECK(publisher.GetStats().refused_events == 0);
}

void WrongSettingsDisableIt() {
  for (std::string KvEventConfig::* needed : {&KvEventConfig::bind_endpoint, &KvEventConfig::backend_id}) {
    KvEventConfig config = Enabled();
    (config.*needed).clear();
    KvEventPublisher publisher(config);
    publisher.PublishStored(kKey, "cpu");
    CHECK(!publisher.enabled() && publisher.GetStats().published_events == 0);
  }
  CHECK(!KvEventPublisher(KvEventConfig{}).enabled());
}

// `heard` is told when behaviours.py has got something of this publisher; or there is a wait of so many ms instead, as
// other tests have it.
void Run(const char* name, const KvEventConfig& config, void (*body)(KvEventPublisher&), int blind_ms) {
  KvEventPublisher publisher(config);
  CHECK(publisher.enabled());
  std::printf("case %s %s\n", name, config.bind_endpoint.c_str());
  std::fflush(stdout);
  if (blind_ms >= 0) {
    char line[8];
    CHECK(read(STDIN_FILENO, line, sizeof line) == 8);  // "connect\n"
    std::this_thread::sleep_for(std::chrono::milliseconds(blind_ms));
  } else {
    uint64_t probes = 0;
    for (; !heard(); probes++) publisher.PublishCleared("probe");
    char line[6];
    CHECK(read(STDIN_FILENO, line, sizeof line) == 6);  // "heard\n"
    Until([&] { return publisher.GetStats().published_events + publisher.GetStats().dropped_events == probes; });
  }
  body(publisher);
  publisher.PublishCleared("end");
  std::printf("said\n");
  std::fflush(stdout);
  char line[5];
  CHECK(read(STDIN_FILENO, line, sizeof line) == 5);  // "done\n"
}

}  // namespace

int main(int argc, char** argv) {
  const int blind_ms = argc > 2 ? std::atoi(argv[2]) : -1;
  const std::string directory = argc > 1 ? argv[1] : ".";
  int number = 0;
  const auto run = [&](const char* name, KvEventConfig config, void (*body)(KvEventPublisher&)) {
    config.bind_endpoint = "ipc://" + directory + "/" + std::to_string(number++) + ".sock";
    Run(name, config, body, blind_ms);
  };
  KvEventConfig keyless = Enabled(), small = Enabled(), plain = Enabled();
  keyless.emit_object_key = false;
  small.queue_capacity = 2;
  plain.emit_legacy_compat_fields = false;
  run("object-events-carry-the-context", Enabled(), ObjectEventsCarryTheContext);
  run("without-legacy-names", plain, ObjectEventsCarryTheContext);
  run("a-commit-is-always-announced", Enabled(), ACommitIsAlwaysAnnounced);
  run("an-empty-tenant-is-default", Enabled(), AnEmptyTenantIsDefault);
  run("a-clear-names-its-tenant-alone", Enabled(), AClearNamesItsTenantAlone);
  run("without-keys-only-clears-are-sent", keyless, WithoutKeysOnlyClearsAreSent);
  run("a-full-queue-drops-the-oldest", small, AFullQueueDropsTheOldest);
  run("a-removal-covers-all-its-media", Enabled(), ARemovalCoversAllItsMedia);
  run("a-medium-that-stays-is-not-removed", Enabled(), AMediumThatStaysIsNotRemoved);
  run("stored-on-both-and-removed-from-both", Enabled(), StoredOnBothAndRemovedFromBoth);
  run("unchanged-media-are-no-news", Enabled(), UnchangedMediaAreNoNews);
  run("a-new-medium-is-stored", Enabled(), ANewMediumIsStored);
  run("a-move-is-one-message", Enabled(), AMoveIsOneMessage);
  run("an-empty-medium-is-no-medium", Enabled(), AnEmptyMediumIsNoMedium);
  WrongSettingsDisableIt();
  std::puts("end");
  return 0;
}
