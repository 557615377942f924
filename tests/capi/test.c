// Every function of kv_events.h, used well and badly. Run by reader.py, which reads the stream; with the argument `noop`, a
// library built without ZeroMQ.
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <kv_events.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 2000, BOTH = KV_EVENTS_CPU | KV_EVENTS_DISK, DEADLINE_MS = 10000 };

static kv_events_object_t object(const char *tenant, const char *key, const char *group) {
  kv_events_object_t object = {kv_events_text(tenant), kv_events_text(key), kv_events_text(group)};
  return object;
}

static kv_events_config_t config(const char *endpoint) {
  kv_events_config_t config;
  CHECK(kv_events_config_init(&config, sizeof config) == KV_EVENTS_OK);
  config.enable_kv_events = 1;
  config.kv_events_bind_endpoint = kv_events_text(endpoint);
  config.kv_events_backend_id = kv_events_text("backend");
  config.kv_events_model_name = kv_events_text("model");
  config.kv_events_additional_salt = kv_events_text("salt");
  config.kv_events_lora_name = kv_events_text("lora");
  config.kv_events_block_size = 16;
  config.kv_events_dp_rank = 3;
  config.kv_events_emit_legacy_compat = 0;
  config.kv_events_send_hwm = 0;
  config.kv_events_linger = DEADLINE_MS;
  config.kv_events_keepalive = 30000;
  config.kv_events_allow_peers = kv_events_text("127.0.0.1, ::1");
  return config;
}

static kv_events_publisher_t *start(const kv_events_config_t *config) {
  char text[256];
  kv_events_buffer_t error = {text, sizeof text, 0};
  kv_events_publisher_t *publisher = NULL;
  if (kv_events_start(config, &publisher, &error) != KV_EVENTS_OK) fprintf(stderr, "%s\n", text);
  CHECK(publisher != NULL && error.length == 0 && text[0] == '\0' && kv_events_enabled(publisher));
  return publisher;
}

static kv_events_status_t status_of(const kv_events_publisher_t *publisher) {
  kv_events_status_t status;
  memset(&status, 0xff, sizeof status);
  status.size = sizeof status;
  CHECK(kv_events_status(publisher, &status) == KV_EVENTS_OK);
  CHECK(status.size == sizeof status && status.reserved[3] == 0);
  return status;
}

// Starts with what is wrong with `config` and checks the code and a word of the reason.
static void check_no_start(const kv_events_config_t *config, kv_events_code_t code, const char *word) {
  char text[256];
  kv_events_buffer_t error = {text, sizeof text, 0};
  kv_events_publisher_t *publisher = (kv_events_publisher_t *)text;
  CHECK(kv_events_start(config, &publisher, &error) == code);
  CHECK(publisher == NULL && strstr(text, word) != NULL && strlen(text) == error.length);
  // The text is cut to what there is room for, and its whole length told.
  char small[8];
  kv_events_buffer_t cut = {small, sizeof small, 0};
  CHECK(kv_events_start(config, &publisher, &cut) == code);
  CHECK(cut.length == error.length && strlen(small) == 7 && memcmp(small, text, 7) == 0);
  kv_events_buffer_t none = {NULL, 0, 0};
  CHECK(kv_events_start(config, &publisher, &none) == code && none.length == error.length);
  CHECK(kv_events_start(config, &publisher, NULL) == code);
}

static void bad_configs(void) {
  kv_events_config_t good = config("tcp://127.0.0.1:0"), bad;
  CHECK(kv_events_config_init(NULL, sizeof good) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_config_init(&bad, offsetof(kv_events_config_t, reserved)) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_start(&good, NULL, NULL) == KV_EVENTS_INVALID_ARGUMENT);
  check_no_start(NULL, KV_EVENTS_INVALID_ARGUMENT, "null");
  memset(&bad, 0, sizeof bad);
  check_no_start(&bad, KV_EVENTS_INVALID_ARGUMENT, "kv_events_config_init");
  bad = good;
  bad.reserved = 1;
  check_no_start(&bad, KV_EVENTS_INVALID_ARGUMENT, "update the library");
  bad = good;
  bad.kv_events_backend_id.len = 0;
  check_no_start(&bad, KV_EVENTS_CONFIG, "kv_events_backend_id is empty");
  bad = good;
  bad.kv_events_queue_capacity = UINT64_MAX;
  check_no_start(&bad, KV_EVENTS_CONFIG, "kv_events_queue_capacity");
  bad = good;
  bad.kv_events_allow_peers = kv_events_text("127.0.0.1,host");
  check_no_start(&bad, KV_EVENTS_CONFIG, "kv_events_allow_peers: \"host\"");
  bad = good;
  bad.kv_events_wait_strategy = kv_events_text("doze");
  check_no_start(&bad, KV_EVENTS_CONFIG, "kv_events_wait_strategy");
  bad = good;
  bad.kv_events_model_name = kv_events_text("mod\xe8le");
  check_no_start(&bad, KV_EVENTS_NOT_UTF8, "kv_events_model_name");
  bad = good;
  bad.kv_events_lora_name.data = NULL;
  check_no_start(&bad, KV_EVENTS_INVALID_ARGUMENT, "kv_events_lora_name");
  bad = good;
  bad.kv_events_model_name.len = (size_t)-5;
  check_no_start(&bad, KV_EVENTS_INVALID_LENGTH, "kv_events_model_name");
  bad = good;
  bad.kv_events_additional_salt.len = (size_t)1 << 40;
  check_no_start(&bad, KV_EVENTS_INVALID_LENGTH, "kv_events_additional_salt");
  bad = good;
  bad.size = SIZE_MAX - 7;
  check_no_start(&bad, KV_EVENTS_INVALID_LENGTH, "kv_events_config_init");
  bad = config("tcp://127.0.0.1:99999");
  check_no_start(&bad, KV_EVENTS_ENDPOINT, "port");
  bad = good;
  bad.kv_events_bind_endpoint.data = "tcp://127.0.0.1:0\0x";
  bad.kv_events_bind_endpoint.len += 2;
  check_no_start(&bad, KV_EVENTS_ENDPOINT, "NUL");
}

// A start that runs out of something has a code of its own, and one that does not follows it.
static void out_of_descriptors(void) {
  struct rlimit limit, few;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  few = limit;
  few.rlim_cur = 4;
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  const kv_events_config_t good = config("tcp://127.0.0.1:0");
  check_no_start(&good, KV_EVENTS_RESOURCES, "descriptors");
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(kv_events_free(start(&good)) == KV_EVENTS_OK);
}

static void disabled(const kv_events_config_t *config, const char *word) {
  char text[256];
  kv_events_buffer_t buffer = {text, sizeof text, 0};
  kv_events_publisher_t *publisher = NULL;
  CHECK(kv_events_start(config, &publisher, &buffer) == KV_EVENTS_DISABLED);
  CHECK(publisher != NULL && strstr(text, word) != NULL && !kv_events_enabled(publisher));
  kv_events_object_t it = object("t", "key", ""), bad = object("t", "k\xff", "");
  CHECK(kv_events_committed(publisher, &it, BOTH) == KV_EVENTS_DISABLED);
  CHECK(kv_events_committed(publisher, &bad, 99) == KV_EVENTS_DISABLED);
  CHECK(kv_events_changed(publisher, NULL, 0, BOTH) == KV_EVENTS_DISABLED);
  CHECK(kv_events_committed_in_session(publisher, &it, bad.key, BOTH) == KV_EVENTS_DISABLED);
  CHECK(kv_events_changed_in_session(publisher, &it, bad.key, 0, BOTH) == KV_EVENTS_DISABLED);
  CHECK(kv_events_removed(publisher, &it, BOTH) == KV_EVENTS_DISABLED);
  CHECK(kv_events_cleared(publisher, it.tenant) == KV_EVENTS_DISABLED);
  kv_events_sweep_t *sweep = NULL;
  CHECK(kv_events_sweep_begin(publisher, it.tenant, &sweep) == KV_EVENTS_DISABLED && sweep != NULL);
  CHECK(kv_events_sweep_removed(sweep, &it, BOTH) == KV_EVENTS_DISABLED);
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_DISABLED && sweep == NULL);
  kv_events_status_t status = status_of(publisher);
  CHECK(!status.enabled && status.healthy && status.refused_events == 0 && status.published_events == 0);
  CHECK(kv_events_bound_endpoint(publisher, &buffer) == KV_EVENTS_OK && buffer.length == 0 && text[0] == '\0');
  kv_events_stop_report_t report = {sizeof report, 1, 1, 0, {0}};
  CHECK(kv_events_stop(publisher, 0, &report) == KV_EVENTS_OK && report.closed == 1 && report.published == 0);
  CHECK(kv_events_free(publisher) == KV_EVENTS_OK);
}

static void check_no_handle(kv_events_publisher_t *publisher) {
  kv_events_object_t it = object("t", "key", "");
  kv_events_status_t status = {.size = sizeof status};
  kv_events_buffer_t buffer = {NULL, 0, 0};
  kv_events_sweep_t *sweep = (kv_events_sweep_t *)&it;
  CHECK(!kv_events_enabled(publisher));
  CHECK(kv_events_committed(publisher, &it, KV_EVENTS_CPU) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_changed(publisher, &it, KV_EVENTS_CPU, KV_EVENTS_DISK) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_committed_in_session(publisher, &it, it.key, KV_EVENTS_CPU) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_changed_in_session(publisher, &it, it.key, 0, KV_EVENTS_CPU) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_removed(publisher, &it, KV_EVENTS_CPU) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_cleared(publisher, it.tenant) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_status(publisher, &status) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_bound_endpoint(publisher, &buffer) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_unhealthy_reason(publisher, &buffer) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_endpoint_fault(publisher, &buffer) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_stop(publisher, 0, NULL) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_sweep_begin(publisher, it.tenant, &sweep) == KV_EVENTS_INVALID_HANDLE && sweep == NULL);
  CHECK(kv_events_free(publisher) == (publisher == NULL ? KV_EVENTS_OK : KV_EVENTS_INVALID_HANDLE));
}

static void check_no_sweep(kv_events_sweep_t *sweep) {
  kv_events_object_t it = object("t", "key", "");
  CHECK(kv_events_sweep_removed(sweep, &it, KV_EVENTS_CPU) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_sweep_skipped(sweep) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_sweep_cancel(&sweep) == KV_EVENTS_INVALID_HANDLE);
  CHECK(kv_events_sweep_finish(NULL) == KV_EVENTS_INVALID_HANDLE);
}

static void wrong_handles(const kv_events_publisher_t *publisher) {
  uint64_t zeros[8] = {0};
  kv_events_sweep_t *sweep = NULL;
  CHECK(kv_events_sweep_begin(publisher, kv_events_text("t"), &sweep) == KV_EVENTS_OK);
  check_no_handle(NULL);
  check_no_handle((kv_events_publisher_t *)zeros);
  check_no_handle((kv_events_publisher_t *)sweep);
  check_no_sweep(NULL);
  check_no_sweep((kv_events_sweep_t *)zeros);
  check_no_sweep((kv_events_sweep_t *)publisher);
  CHECK(kv_events_sweep_cancel(&sweep) == KV_EVENTS_OK && sweep == NULL);
  CHECK(kv_events_sweep_begin(publisher, kv_events_text("t"), NULL) == KV_EVENTS_INVALID_ARGUMENT);
}

static void refusals(const kv_events_publisher_t *publisher) {
  kv_events_object_t it = object("t", "key", "g"), bad = it;
  const uint64_t before = status_of(publisher).refused_events;
  CHECK(kv_events_committed(publisher, NULL, KV_EVENTS_CPU) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_committed(publisher, &it, BOTH + 1) == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(kv_events_changed(publisher, &it, 256, KV_EVENTS_CPU) == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(kv_events_removed(publisher, &it, UINT32_MAX) == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(status_of(publisher).refused_events == before + 4);
  bad.key.data = NULL;
  CHECK(kv_events_committed(publisher, &bad, KV_EVENTS_CPU) == KV_EVENTS_INVALID_ARGUMENT);
  bad.key.data = "key";
  bad.key.len = SIZE_MAX;
  CHECK(kv_events_committed(publisher, &bad, KV_EVENTS_CPU) == KV_EVENTS_INVALID_LENGTH);
  CHECK(kv_events_cleared(publisher, bad.key) == KV_EVENTS_INVALID_LENGTH);
  bad.key.len = (size_t)1 << 40;
  CHECK(kv_events_committed(publisher, &bad, KV_EVENTS_CPU) == KV_EVENTS_TOO_LARGE);
  CHECK(kv_events_cleared(publisher, bad.key) == KV_EVENTS_TOO_LARGE);
  bad = object("t", "a key in latin-1, schl\xfcssel", "");
  CHECK(kv_events_committed(publisher, &bad, BOTH) == KV_EVENTS_NOT_UTF8);
  CHECK(kv_events_cleared(publisher, bad.key) == KV_EVENTS_NOT_UTF8);
  CHECK(status_of(publisher).refused_events == before + 12);

  char *large = malloc(20000);
  CHECK(large != NULL);
  memset(large, 'k', 20000);
  bad.key.data = large;
  bad.key.len = 20000;
  CHECK(kv_events_committed(publisher, &bad, BOTH) == KV_EVENTS_TOO_LARGE);
  CHECK(kv_events_committed_in_session(publisher, &it, bad.key, KV_EVENTS_CPU) == KV_EVENTS_TOO_LARGE);
  free(large);
  CHECK(status_of(publisher).refused_events == before + 15);

  kv_events_text_t session = kv_events_text("latin-1: \xfc");
  CHECK(kv_events_committed_in_session(publisher, &it, session, BOTH) == KV_EVENTS_NOT_UTF8);
  CHECK(kv_events_changed_in_session(publisher, &it, session, KV_EVENTS_CPU, KV_EVENTS_DISK) == KV_EVENTS_NOT_UTF8);
  session.len = SIZE_MAX;
  CHECK(kv_events_committed_in_session(publisher, &it, session, BOTH) == KV_EVENTS_INVALID_LENGTH);
  session.len = 1;
  session.data = NULL;
  CHECK(kv_events_committed_in_session(publisher, &it, session, BOTH) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_changed_in_session(publisher, &it, it.key, 256, BOTH) == KV_EVENTS_UNKNOWN_MEDIUM);
  CHECK(kv_events_changed_in_session(publisher, &it, it.key, BOTH, BOTH) == KV_EVENTS_NOTHING);
  CHECK(status_of(publisher).refused_events == before + 24);

  bad = object("t", "", "");
  CHECK(kv_events_committed(publisher, &bad, BOTH) == KV_EVENTS_SUPPRESSED);
  CHECK(status_of(publisher).skipped_keyless_events == 2);
  CHECK(kv_events_committed(publisher, &it, 0) == KV_EVENTS_NOTHING);
  CHECK(kv_events_changed(publisher, &it, BOTH, BOTH) == KV_EVENTS_NOTHING);
  CHECK(kv_events_removed(publisher, &it, 0) == KV_EVENTS_NOTHING);

  kv_events_status_t status = {.size = offsetof(kv_events_status_t, reserved)};
  CHECK(kv_events_status(publisher, &status) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_status(publisher, NULL) == KV_EVENTS_INVALID_ARGUMENT);
  status.size = SIZE_MAX;
  CHECK(kv_events_status(publisher, &status) == KV_EVENTS_INVALID_LENGTH);
  kv_events_stop_report_t report = {.size = 8};
  CHECK(kv_events_stop(publisher, 0, &report) == KV_EVENTS_INVALID_ARGUMENT);
  report.size = (size_t)-1;
  CHECK(kv_events_stop(publisher, 0, &report) == KV_EVENTS_INVALID_LENGTH);
  CHECK(kv_events_bound_endpoint(publisher, NULL) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_enabled(publisher));
}

// A program with a newer header says a larger size. Nothing beyond what the library knows is written, and how much that is
// stands in the size.
static void newer_headers(const kv_events_publisher_t *publisher) {
  struct {
    kv_events_status_t known;
    uint64_t added;
  } status = {.known = {.size = sizeof status}, .added = 7};
  CHECK(kv_events_status(publisher, &status.known) == KV_EVENTS_OK && status.added == 7);
  CHECK(status.known.size == sizeof status.known && status.known.queue_capacity == 65536);
  struct {
    kv_events_config_t known;
    uint64_t added;
  } config = {.added = 7};
  CHECK(kv_events_config_init(&config.known, sizeof config) == KV_EVENTS_OK && config.added == 7);
  CHECK(config.known.size == sizeof config.known && config.known.kv_events_queue_capacity == 65536);
  CHECK(kv_events_config_init(&config.known, SIZE_MAX) == KV_EVENTS_INVALID_LENGTH);
  kv_events_publisher_t *disabled = NULL;
  struct {
    kv_events_stop_report_t known;
    uint64_t added;
  } report = {.known = {.size = sizeof report}, .added = 7};
  CHECK(kv_events_start(&config.known, &disabled, NULL) == KV_EVENTS_DISABLED);
  CHECK(kv_events_stop(disabled, 0, &report.known) == KV_EVENTS_OK && report.added == 7);
  CHECK(report.known.size == sizeof report.known && report.known.closed);
  CHECK(kv_events_free(disabled) == KV_EVENTS_OK);

  // Room that ends where the struct does, with a size that is larger than all there is.
  kv_events_status_t *tight = malloc(sizeof *tight);
  CHECK(tight != NULL);
  tight->size = 4096;
  CHECK(kv_events_status(publisher, tight) == KV_EVENTS_OK && tight->size == sizeof *tight);
  free(tight);
}

static void stream(const kv_events_publisher_t *publisher) {
  const char *key = "schl\xc3\xbcssel/\xe9\x8d\xb5/0123456789abcdef";
  kv_events_object_t it = object("", key, "group");
  expect_event("stored", "cpu", "default", key, strlen(key), "group");
  expect_event("stored", "disk", "default", key, strlen(key), "group");
  CHECK(kv_events_committed(publisher, &it, BOTH) == KV_EVENTS_OK);
  it = object("tenant", "nul", "");
  it.key.data = "with\0nul";
  it.key.len = 8;
  expect_event("removed", "cpu", "tenant", "with\0nul", 8, "");
  expect_event("stored", "disk", "tenant", "with\0nul", 8, "");
  CHECK(kv_events_changed(publisher, &it, KV_EVENTS_CPU, KV_EVENTS_DISK) == KV_EVENTS_OK);
  const kv_events_text_t session = kv_events_text("s\xc3\xa9"), none = {NULL, 0};
  expect_event("removed", "disk", "tenant", "with\0nul", 8, "");
  expect_in_session("stored", "cpu", "tenant", "with\0nul", 8, "", session.data);
  CHECK(kv_events_changed_in_session(publisher, &it, session, KV_EVENTS_DISK, KV_EVENTS_CPU) == KV_EVENTS_OK);
  expect_in_session("stored", "cpu", "tenant", "with\0nul", 8, "", session.data);
  expect_in_session("stored", "disk", "tenant", "with\0nul", 8, "", session.data);
  CHECK(kv_events_committed_in_session(publisher, &it, session, BOTH) == KV_EVENTS_OK);
  expect_event("removed", "cpu", "tenant", "with\0nul", 8, "");
  CHECK(kv_events_changed_in_session(publisher, &it, session, BOTH, KV_EVENTS_DISK) == KV_EVENTS_OK);
  expect_event("stored", "disk", "tenant", "with\0nul", 8, "");
  CHECK(kv_events_committed_in_session(publisher, &it, none, KV_EVENTS_DISK) == KV_EVENTS_OK);
  expect_event("removed", "disk", "tenant", "with\0nul", 8, "");
  CHECK(kv_events_removed(publisher, &it, KV_EVENTS_DISK) == KV_EVENTS_OK);
  expect_event("cleared", "-", "tenant", "", 0, "");
  CHECK(kv_events_cleared(publisher, it.tenant) == KV_EVENTS_OK);
}

struct work {
  const kv_events_publisher_t *publisher;
  const kv_events_sweep_t *sweep;
  int number;
};

static void run_threads(void *(*body)(void *), const kv_events_publisher_t *publisher, const kv_events_sweep_t *sweep) {
  pthread_t threads[THREADS];
  struct work work[THREADS];
  for (int i = 0; i < THREADS; i++) {
    work[i] = (struct work){publisher, sweep, i};
    CHECK(pthread_create(&threads[i], NULL, body, &work[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *publish_some(void *argument) {
  const struct work *work = argument;
  char key[32];
  for (int i = 0; i < CALLS; i++) {
    snprintf(key, sizeof key, "%d/%d", work->number, i);
    kv_events_object_t it = object("t", key, "");
    CHECK(kv_events_committed(work->publisher, &it, KV_EVENTS_CPU) == KV_EVENTS_OK);
    if (i % 100 == 0) status_of(work->publisher);
  }
  return NULL;
}

static void *sweep_some(void *argument) {
  const struct work *work = argument;
  char key[32];
  for (int i = 0; i < CALLS; i++) {
    snprintf(key, sizeof key, "swept-%d/%d", work->number, i);
    kv_events_object_t it = object("t", key, "");
    CHECK(kv_events_sweep_removed(work->sweep, &it, KV_EVENTS_CPU) == KV_EVENTS_OK);
  }
  return NULL;
}

static void threads(const kv_events_publisher_t *publisher) {
  char prefix[32];
  for (int i = 0; i < THREADS; i++) {
    snprintf(prefix, sizeof prefix, "%d", i);
    expect_series("stored", "cpu", "t", prefix, CALLS);
    snprintf(prefix, sizeof prefix, "swept-%d", i);
    expect_series("removed", "cpu", "t", prefix, CALLS);
  }
  run_threads(publish_some, publisher, NULL);
  kv_events_sweep_t *sweep = NULL;
  CHECK(kv_events_sweep_begin(publisher, kv_events_text("t"), &sweep) == KV_EVENTS_OK);
  run_threads(sweep_some, NULL, sweep);
  expect_event("cleared", "-", "t", "", 0, "");
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_OK && sweep == NULL);
}

static void sweeps(const kv_events_publisher_t *publisher) {
  const kv_events_text_t tenant = kv_events_text("t");
  kv_events_object_t it = object("t", "one", ""), bad = object("t", "k\xff", ""), other = object("o", "two", "");
  kv_events_sweep_t *sweep = NULL;
  CHECK(kv_events_sweep_begin(publisher, bad.key, &sweep) == KV_EVENTS_NOT_UTF8 && sweep == NULL);

  CHECK(kv_events_sweep_begin(publisher, tenant, &sweep) == KV_EVENTS_OK);
  expect_event("removed", "cpu", "o", "two", 3, "");
  CHECK(kv_events_sweep_removed(sweep, &other, KV_EVENTS_CPU) == KV_EVENTS_OK);
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_NOTHING);

  CHECK(kv_events_sweep_begin(publisher, tenant, &sweep) == KV_EVENTS_OK);
  expect_event("removed", "cpu", "t", "one", 3, "");
  CHECK(kv_events_sweep_removed(sweep, &it, KV_EVENTS_CPU) == KV_EVENTS_OK);
  CHECK(kv_events_sweep_skipped(sweep) == KV_EVENTS_OK);
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_SWEEP_SKIPPED);

  CHECK(kv_events_sweep_begin(publisher, tenant, &sweep) == KV_EVENTS_OK);
  expect_event("removed", "disk", "t", "one", 3, "");
  CHECK(kv_events_sweep_removed(sweep, &it, KV_EVENTS_DISK) == KV_EVENTS_OK);
  expect_event("stored", "cpu", "t", "one", 3, "");
  CHECK(kv_events_committed(publisher, &it, KV_EVENTS_CPU) == KV_EVENTS_OK);
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_SWEEP_INTERRUPTED);

  CHECK(kv_events_sweep_begin(publisher, tenant, &sweep) == KV_EVENTS_OK);
  CHECK(kv_events_sweep_removed(sweep, NULL, KV_EVENTS_CPU) == KV_EVENTS_INVALID_ARGUMENT);
  CHECK(kv_events_sweep_cancel(&sweep) == KV_EVENTS_OK && sweep == NULL);

  // What cannot be told is gone all the same.
  CHECK(kv_events_sweep_begin(publisher, tenant, &sweep) == KV_EVENTS_OK);
  CHECK(kv_events_sweep_removed(sweep, &bad, KV_EVENTS_CPU) == KV_EVENTS_NOT_UTF8);
  CHECK(kv_events_sweep_removed(sweep, &it, 4) == KV_EVENTS_UNKNOWN_MEDIUM);
  expect_event("cleared", "-", "t", "", 0, "");
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_OK);
}

// A child that uses and frees what it inherited, and exits, disturbs nothing of the parent's.
static void forked(kv_events_publisher_t *publisher) {
  fflush(stdout);
  for (int frees = 0; frees < 2; frees++) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20);
      kv_events_object_t it = object("t", "of the child", "");
      CHECK(kv_events_committed(publisher, &it, KV_EVENTS_CPU) == KV_EVENTS_FORKED);
      kv_events_stop_report_t report = {.size = sizeof report};
      if (frees) {
        CHECK(kv_events_stop(publisher, DEADLINE_MS, &report) == KV_EVENTS_OK && !report.closed);
        CHECK(kv_events_free(publisher) == KV_EVENTS_OK);
      }
#ifdef __SANITIZE_ADDRESS__
      _exit(0);  // the parent's memory is no leak of the child's
#else
      exit(0);
#endif
    }
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    kv_events_object_t it = object("t", "after the child", "");
    expect_event("stored", "cpu", "t", "after the child", 15, "");
    CHECK(kv_events_committed(publisher, &it, KV_EVENTS_CPU) == KV_EVENTS_OK);
  }
}

static atomic_ullong accepted;

static void *publish_until_stopped(void *argument) {
  const struct work *work = argument;
  kv_events_object_t it = object("t", "key", "");
  kv_events_code_t code;
  while ((code = kv_events_committed(work->publisher, &it, BOTH)) == KV_EVENTS_OK) atomic_fetch_add(&accepted, 2);
  CHECK(code == KV_EVENTS_STOPPED);
  return NULL;
}

static void *stop_when_busy(void *argument) {
  const struct work *work = argument;
  while (atomic_load(&accepted) < 10000) sched_yield();
  CHECK(kv_events_stop(work->publisher, DEADLINE_MS, NULL) == KV_EVENTS_OK);
  return NULL;
}

static void *stop_or_publish(void *argument) {
  const struct work *work = argument;
  return work->number < 2 ? stop_when_busy(argument) : publish_until_stopped(argument);
}

static void stop_during_calls(void) {
  kv_events_config_t settings = config("tcp://127.0.0.1:*");
  settings.kv_events_queue_capacity = 256;
  settings.kv_events_eviction_burst = kv_events_recommended_eviction_burst(256);
  settings.kv_events_wait_strategy = kv_events_text("poll:100us");
  settings.kv_events_heartbeat_interval = 1000;
  CHECK(settings.kv_events_eviction_burst == 16);
  kv_events_publisher_t *publisher = start(&settings);
  kv_events_sweep_t *sweep = NULL;
  CHECK(kv_events_sweep_begin(publisher, kv_events_text("s"), &sweep) == KV_EVENTS_OK);
  run_threads(stop_or_publish, publisher, NULL);

  kv_events_stop_report_t report = {.size = sizeof report};
  CHECK(kv_events_stop(publisher, DEADLINE_MS, &report) == KV_EVENTS_OK && report.closed);
  const kv_events_status_t status = status_of(publisher);
  CHECK(status.enabled && status.healthy && status.refused_events >= 2);
  CHECK(report.published == status.published_events);
  CHECK(atomic_load(&accepted) == status.published_events + status.dropped_events);
  CHECK(kv_events_free(publisher) == KV_EVENTS_OK);
  check_no_handle(publisher);
  check_no_handle(publisher);
  // A sweep outlives the publisher's handle, and has nobody to tell.
  kv_events_object_t it = object("s", "key", "");
  CHECK(kv_events_sweep_removed(sweep, &it, KV_EVENTS_CPU) == KV_EVENTS_STOPPED);
  CHECK(kv_events_sweep_finish(&sweep) == KV_EVENTS_STOPPED && sweep == NULL);
}

static int warnings;

static void count_warning(int32_t level, const char *line, size_t len, void *user) {
  CHECK(user == (void *)&warnings && len > 0 && line[0] != '\0');
  if (level == 2) warnings++;
}

static void logs_and_keys_off(void) {
  kv_events_config_t settings = config("tcp://127.0.0.1:0");
  settings.kv_events_emit_object_key = 0;
  CHECK(kv_events_log_to(count_warning, &warnings) == KV_EVENTS_OK);
  kv_events_publisher_t *publisher = start(&settings);
  CHECK(warnings == 1);
  CHECK(kv_events_log_to(NULL, NULL) == KV_EVENTS_OK);
  kv_events_object_t it = object("t", "key", "");
  CHECK(kv_events_committed(publisher, &it, BOTH) == KV_EVENTS_SUPPRESSED);
  const kv_events_status_t status = status_of(publisher);
  CHECK(status.keys_suppressed && status.skipped_keyless_events == 2);
  CHECK(kv_events_free(publisher) == KV_EVENTS_OK);
  publisher = start(&settings);
  CHECK(warnings == 1);
  CHECK(kv_events_free(publisher) == KV_EVENTS_OK);
}

static void codes(void) {
  CHECK(strcmp(kv_events_version(), EXPECTED_VERSION) == 0);
  for (int32_t code = KV_EVENTS_INVALID_LENGTH; code <= KV_EVENTS_SWEEP_INTERRUPTED; code++) {
    CHECK(strstr(kv_events_code_text(code), "not a code") == NULL);
  }
  CHECK(strstr(kv_events_code_text(6), "not a code") != NULL);
  CHECK(strstr(kv_events_code_text(KV_EVENTS_INVALID_LENGTH - 1), "not a code") != NULL);
}

int main(int argc, char **argv) {
  codes();
  kv_events_config_t settings = config("tcp://127.0.0.1:0");
  if (argc > 1 && strcmp(argv[1], "noop") == 0) {
    disabled(&settings, "without ZeroMQ");
    puts("a library without ZeroMQ does nothing, and says so");
    return 0;
  }
  bad_configs();
  out_of_descriptors();
  settings.enable_kv_events = 0;
  disabled(&settings, "enable_kv_events");
  settings.enable_kv_events = 1;

  kv_events_publisher_t *publisher = start(&settings);
  char endpoint[128], reason[8];
  kv_events_buffer_t buffer = {endpoint, sizeof endpoint, 0}, none = {reason, sizeof reason, 9};
  CHECK(kv_events_bound_endpoint(publisher, &buffer) == KV_EVENTS_OK && strlen(endpoint) == buffer.length);
  CHECK(kv_events_unhealthy_reason(publisher, &none) == KV_EVENTS_OK && none.length == 0 && reason[0] == '\0');
  CHECK(kv_events_endpoint_fault(publisher, &none) == KV_EVENTS_OK && none.length == 0 && reason[0] == '\0');
  kv_events_config_t taken = config(endpoint);
  check_no_start(&taken, KV_EVENTS_ENDPOINT, "is in use");

  printf("endpoint %s\n", endpoint);
  fflush(stdout);
  while (!heard()) CHECK(kv_events_cleared(publisher, kv_events_text("probe")) == KV_EVENTS_OK);

  wrong_handles(publisher);
  refusals(publisher);
  newer_headers(publisher);
  stream(publisher);
  sweeps(publisher);
  threads(publisher);
  forked(publisher);
  stop_during_calls();
  logs_and_keys_off();

  CHECK(kv_events_cleared(publisher, kv_events_text("end")) == KV_EVENTS_OK);
  kv_events_stop_report_t report = {.size = sizeof report};
  CHECK(kv_events_stop(publisher, DEADLINE_MS, &report) == KV_EVENTS_OK);
  CHECK(report.closed && report.abandoned == 0 && report.published == status_of(publisher).published_events);
  CHECK(!kv_events_enabled(publisher) && status_of(publisher).enabled && status_of(publisher).stopped);
  kv_events_object_t it = object("t", "late", "");
  CHECK(kv_events_committed(publisher, &it, BOTH) == KV_EVENTS_STOPPED);
  CHECK(kv_events_stop(publisher, 0, &report) == KV_EVENTS_OK && report.closed);
  CHECK(kv_events_free(publisher) == KV_EVENTS_OK);
  return 0;
}
