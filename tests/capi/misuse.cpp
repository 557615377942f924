// What must not compile. misuse.py compiles it: each line that ends in a comment `no: REASON` has to be an error that shows
// the reason, and no other line may be one.
#include <kv_events.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace kv_events;  // NOLINT: this is never run

void Misordered(const KvEventPublisher& publisher, std::string key, std::string tenant, std::string group, MediaSet media) {
  publisher.PublishCommitted(key, {"cpu"}, tenant, group);
  publisher.PublishCommitted(key, tenant, {"cpu"});            // no: media are a list
  publisher.PublishCommitted(key, tenant, group, {"cpu"});     // no: media are a list
  publisher.PublishCommitted({"cpu"}, key, tenant);            // no: one text, not in braces
  publisher.PublishCommitted(media, key, tenant);              // no: Text
  publisher.PublishCommitted(key, media, media);               // no: Text
  publisher.PublishStored(key, tenant, "cpu");                 // no: media are a list
  publisher.PublishStored(key, {"cpu"}, {"disk"});             // no: one text, not in braces
  publisher.PublishRemoved("cpu", key, tenant);                // no: media are a list
  publisher.PublishRemoved(Medium::kCpu, {key}, tenant);       // no: Text
  publisher.PublishRemoved(key, {"cpu"}, Medium::kDisk);       // no: Text

  publisher.PublishObjectRemoved(key, tenant, group, {"cpu"});
  publisher.PublishObjectRemoved(key, {"cpu"}, tenant, "");         // no: one text, not in braces
  publisher.PublishObjectRemoved(key, {"cpu"}, tenant, {});         // no: one text, not in braces
  publisher.PublishObjectRemoved(key, {"cpu", "disk"}, tenant, {});  // no: one text, not in braces
  publisher.PublishObjectRemoved(key, {tenant}, group, {"cpu"});    // no: one text, not in braces
  publisher.PublishObjectRemoved(key, {}, group, {"cpu"});          // no: "" if there is none
  publisher.PublishObjectRemoved(key, media, tenant, group);        // no: Text
  publisher.PublishObjectRemoved(key, tenant, media, group);        // no: Text
  publisher.PublishObjectRemoved(key, tenant, {"cpu"});             // no: argument
  publisher.PublishObjectRemoved(key, tenant, group);               // no: argument

  publisher.SyncObjectState(key, {"disk"}, tenant, group, {"cpu"});
  publisher.SyncObjectState(key, {"disk"}, {"cpu"}, tenant, "");     // no: one text, not in braces
  publisher.SyncObjectState(key, {"disk"}, {"cpu"}, tenant, {});     // no: one text, not in braces
  publisher.SyncObjectState(key, {}, {"cpu"}, tenant, {});           // no: one text, not in braces
  publisher.SyncObjectState(key, {"disk"}, {}, tenant, {"cpu"});     // no: "" if there is none
  publisher.SyncObjectState(key, media, media, tenant, group);       // no: Text
  publisher.SyncObjectState(key, tenant, group, {"cpu"}, {"disk"});  // no: media are a list
  publisher.SyncObjectState(key, {"disk"}, tenant, {"cpu"}, group);  // no: one text, not in braces
  publisher.SyncObjectState(key, {"disk"}, tenant, group);           // no: argument

  const Object object{tenant, key, group};
  const Before before = Before::Mutation(media);
  publisher.Changed(object, before, {"disk"});
  publisher.Changed(object, {"disk"}, before);         // no: Before
  publisher.Changed(object, media, media);             // no: Before
  publisher.Changed(object, {"cpu"}, {"disk"});        // no: Before
  publisher.Changed(before, object, media);            // no: Object
  publisher.Removed(object, media);                    // no: Before
  publisher.Committed(object, before);                 // no: MediaSet
  publisher.Committed(object, "cpu");                  // no: media are a list
  publisher.Committed(media, object);                  // no: Object
}

void NotMedia(const KvEventPublisher& publisher, const char* name, std::string text, std::string_view view) {
  const bool flag = !text.empty();
  MediaSet empty{}, list{"cpu"}, names = {text, view, name};
  publisher.PublishStored("key", "cpu");              // no: media are a list
  publisher.PublishStored("key", "");                 // no: media are a list
  publisher.PublishStored("key", name);               // no: media are a list
  publisher.PublishStored("key", text);               // no: media are a list
  publisher.PublishStored("key", text + "disk");      // no: media are a list
  publisher.PublishStored("key", view);               // no: media are a list
  publisher.PublishCommitted("key", 0);               // no: media are a list
  publisher.PublishCommitted("key", nullptr);         // no: media are a list
  publisher.PublishCommitted("key", NULL);            // no: media are a list
  publisher.PublishCommitted("key", KV_EVENTS_CPU);   // no: media are a list
  publisher.PublishCommitted("key", flag);            // no: media are a list
  publisher.PublishCommitted("key", 'c');             // no: media are a list
  publisher.PublishCommitted("key", {nullptr});       // no: media are a list
  publisher.PublishCommitted("key", {0});             // no: media are a list
  publisher.PublishCommitted("key", {1});             // no: media are a list
  MediaSet from_literal("cpu");                       // no: media are a list
  MediaSet from_text = text;                          // no: media are a list
  MediaSet from_null(nullptr);                        // no: media are a list
  MediaSet from_zero = 0;                             // no: media are a list
  MediaSet from_bits(3u);                             // no: media are a list
  MediaSet from_numbers(std::vector<uint32_t>{1});    // no: MediaSet
  (void)(list == "cpu");                              // no: media are a list
  (void)(list | "disk");                              // no: media are a list
  empty |= "cpu";                                     // no: media are a list
  (void)Before::Mutation("cpu");                      // no: media are a list
  (void)Before(list);                                 // no: private
  (void)names;
}

void NotTexts(const KvEventPublisher& publisher, const Sweep& sweep, KvEventConfig& config) {
  publisher.PublishCleared({"tenant"});           // no: one text, not in braces
  publisher.PublishCleared({});                   // no: "" if there is none
  publisher.PublishCleared(nullptr);              // no: not nullptr
  publisher.PublishCleared(0);                    // no: Text
  publisher.PublishCleared(Medium::kCpu);         // no: Text
  (void)publisher.BeginSweep({"tenant"});         // no: one text, not in braces
  (void)publisher.BeginSweep(nullptr);            // no: not nullptr
  publisher.PublishCommitted(nullptr, {"cpu"});   // no: not nullptr
  sweep.Removed("key", {"cpu"}, "group");
  sweep.Removed("key", {"cpu"});
  sweep.Removed("key", "cpu");                    // no: media are a list
  sweep.Removed("key", "group", {"cpu"});         // no: media are a list
  sweep.Removed({"cpu"}, "key", "group");         // no: one text, not in braces
  sweep.Removed("key", {"cpu"}, {"group"});       // no: one text, not in braces
  config.kv_events_wait_strategy = WaitStrategy("park");
  config.kv_events_wait_strategy = "park";        // no: WaitStrategy
  config.kv_events_wait_strategy = 50;            // no: WaitStrategy
  KvEventPublisher copy = publisher;              // no: KvEventPublisher
}
