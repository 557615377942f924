// A master that links a ZeroMQ of its own, of which it must be the only user. Here it is functions of the same names, which
// do no more than say so.
#include "check.h"

#include <kv_events.h>

static void misused(const char *name) {
  fprintf(stderr, "the library calls the program's own %s\n", name);
  abort();
}

#define OWN(name)      \
  void *name(void);    \
  void *name(void) {   \
    misused(#name);    \
    return NULL;       \
  }
OWN(zmq_ctx_new)
OWN(zmq_socket)
OWN(zmq_bind)
OWN(zmq_setsockopt)
OWN(zmq_msg_init_size)
OWN(zmq_msg_send)
OWN(zmq_close)
OWN(zmq_ctx_term)

int zmq_version(void);
int zmq_version(void) { return 99; }

int main(void) {
  kv_events_config_t config;
  CHECK(kv_events_config_init(&config, sizeof config) == KV_EVENTS_OK);
  config.enable_kv_events = 1;
  config.kv_events_bind_endpoint = kv_events_text("tcp://127.0.0.1:0");
  config.kv_events_backend_id = kv_events_text("backend");
  kv_events_publisher_t *publisher = NULL;
  CHECK(kv_events_start(&config, &publisher, NULL) == KV_EVENTS_OK);
  const kv_events_object_t object = {kv_events_text("t"), kv_events_text("key"), kv_events_text("")};
  CHECK(kv_events_committed(publisher, &object, KV_EVENTS_CPU) == KV_EVENTS_OK);
  kv_events_stop_report_t report = {.size = sizeof report};
  CHECK(kv_events_stop(publisher, 60000, &report) == KV_EVENTS_OK && report.published == 1 && report.closed);
  CHECK(kv_events_free(publisher) == KV_EVENTS_OK && zmq_version() == 99);
  return 0;
}
