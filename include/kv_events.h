/* kv-events: tells the world which cached object is readable where.
 *
 * Made by cbindgen from src/capi; do not edit. C++ programs use kv_events.hpp, which is a class over it.
 *
 * - A pointer is NULL or points to a live object of its type. NULL gives a code, or is allowed where it says so.
 * - A text is UTF-8 with a length; whatever a call needs of it is copied before the call returns.
 * - Every function may be called from any thread at any time, but for kv_events_free, kv_events_sweep_finish and
 *   kv_events_sweep_cancel, which need their handle to themselves.
 * - A call that publishes copies the event's bytes and takes no lock but for a short critical section when the queue is
 *   full, or when a sweep of its tenant is ending. It never waits for a socket or a subscriber, and does not allocate at
 *   steady state.
 * - Nothing is thrown through these functions, and none aborts.
 * - After fork, a child may only exit or free its handles; start publishers in the process that uses them.
 */


#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

// In a set of media: memory.
#define KV_EVENTS_CPU 1

// In a set of media: everything that is not memory.
#define KV_EVENTS_DISK 2

// What a call came to. Negative: it was not done, and nothing was queued. Ignoring it is fine for the calls that
// publish: whatever it says is in the status too.
enum kv_events_code_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done. From a call that publishes: its events are queued.
  KV_EVENTS_OK = 0,
  // There was nothing to say: no medium, no difference, or a sweep that removed nothing.
  KV_EVENTS_NOTHING = 1,
  // Held back and counted in `skipped_keyless_events`: the key is empty, or keys are switched off.
  KV_EVENTS_SUPPRESSED = 2,
  // The publisher is disabled, or the library was built without ZeroMQ: every call does nothing.
  KV_EVENTS_DISABLED = 3,
  // The sweep ended without `cleared`, since something was skipped.
  KV_EVENTS_SWEEP_SKIPPED = 4,
  // The sweep ended without `cleared`, since something of the tenant was stored meanwhile.
  KV_EVENTS_SWEEP_INTERRUPTED = 5,
  // The publisher is stopping or has stopped. Counted in `refused_events`.
  KV_EVENTS_STOPPED = -1,
  // The sender thread died; `kv_events_unhealthy_reason` says of what. Counted in `refused_events`.
  KV_EVENTS_SENDER_DEAD = -2,
  // An event would be larger than `kv_events_max_event_bytes`. Counted in `refused_events`.
  KV_EVENTS_TOO_LARGE = -3,
  // A text is not UTF-8. Counted in `refused_events`.
  KV_EVENTS_NOT_UTF8 = -4,
  // A pointer is null, or a size too small. A call that publishes counts it in `refused_events`.
  KV_EVENTS_INVALID_ARGUMENT = -5,
  // The handle is null, of another kind, or was freed.
  KV_EVENTS_INVALID_HANDLE = -6,
  // A setting cannot be used; the text says which and what to do.
  KV_EVENTS_CONFIG = -7,
  // The endpoint cannot be bound; the text says why.
  KV_EVENTS_ENDPOINT = -8,
  // The operating system refused a thread or a socket; the text says in which words.
  KV_EVENTS_SYSTEM = -9,
  // The library panicked, and the call may have been done in part. A bug: please report it.
  KV_EVENTS_PANICKED = -10,
  // Refused: this process was forked from the one that started the publisher, and has no sender.
  KV_EVENTS_FORKED = -11,
  // A medium is neither `cpu` nor `disk`. Counted in `refused_events`, as one event.
  KV_EVENTS_UNKNOWN_MEDIUM = -12,
  // The system lacks descriptors, threads or memory to start; the text says which and how many.
  KV_EVENTS_RESOURCES = -13,
  // There is no memory for an event's buffer, which is counted in `refused_events`, or for a sweep.
  KV_EVENTS_OUT_OF_MEMORY = -14,
  // A length or a size is above anything there can be: it was not initialized, or is a negative number. A call that
  // publishes counts it in `refused_events`.
  KV_EVENTS_INVALID_LENGTH = -15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum kv_events_code_t kv_events_code_t;
#else
typedef int32_t kv_events_code_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A publisher. Any number of threads may use it at once, `kv_events_stop` included; only `kv_events_free` needs it to
// itself. A handle that was freed is still recognised: calls with it return KV_EVENTS_INVALID_HANDLE.
typedef struct kv_events_publisher_t kv_events_publisher_t;

// A remove-all sweep over one tenant. Threads may share it to tell of their shards' objects; the call that ends it needs
// it to itself.
typedef struct kv_events_sweep_t kv_events_sweep_t;

// A text: `len` bytes of UTF-8 at `data`. It needs no NUL at its end and may contain some. `data` may be NULL if `len`
// is 0.
typedef struct kv_events_text_t {
  // The first byte.
  const char *data;
  // Number of bytes.
  size_t len;
} kv_events_text_t;

// One cached object, as the master names it. Nothing here is parsed.
typedef struct kv_events_object_t {
  // Tenant that owns the object; empty is `default`.
  struct kv_events_text_t tenant;
  // The store's key. An object with an empty key is suppressed.
  struct kv_events_text_t key;
  // The store's group identity; empty for none.
  struct kv_events_text_t group;
} kv_events_object_t;

// The settings of a publisher, by the masters' flag names. `kv_events_config_init` fills in the defaults; set what you
// need, then start. Texts are copied at start.
//
// The struct grows at its end only: a program compiled against an older header works with a newer library, and one
// compiled against a newer header with an older library, which does not know the newer settings: they are those beyond
// the `size` that `kv_events_config_init` has set.
typedef struct kv_events_config_t {
  // Size of the struct; set by `kv_events_config_init`. Leave it alone.
  size_t size;
  // Where the PUB socket binds, e.g. `tcp://127.0.0.1:5557` or `ipc:///run/kv.sock`; port 0 is any free one. Needed.
  struct kv_events_text_t kv_events_bind_endpoint;
  // Names this master in every event. Needed.
  struct kv_events_text_t kv_events_backend_id;
  // The model's name; nil on the wire when empty.
  struct kv_events_text_t kv_events_model_name;
  // Nil on the wire when empty.
  struct kv_events_text_t kv_events_additional_salt;
  // Nil on the wire when empty.
  struct kv_events_text_t kv_events_lora_name;
  // What the sender does when there is nothing to send: `park`, `nap`, `nap:50us`, `poll:50us` or `spin`; empty is
  // `nap:50us`.
  struct kv_events_text_t kv_events_wait_strategy;
  // How many calls the queue holds; default 65536. A full queue evicts its oldest call.
  uint64_t kv_events_queue_capacity;
  // Calls evicted at once when the queue is full; default 1. See `kv_events_recommended_eviction_burst`.
  uint64_t kv_events_eviction_burst;
  // A call with an event above it is refused; default 16384.
  uint64_t kv_events_max_event_bytes;
  // Events in one message; default 64, at least 2.
  uint64_t kv_events_max_batch_events;
  // A message takes no further call once it holds that much; default 1048576.
  uint64_t kv_events_max_batch_bytes;
  // A buffer that grew above it is freed, not pooled; default 2048.
  uint64_t kv_events_retain_bytes;
  // In ms; an empty batch is sent whenever nothing was for that long. Default 0: off.
  uint64_t kv_events_heartbeat_interval;
  // In ms; how long stop may wait for subscribers to fetch the rest, within its deadline. Default 1000.
  uint64_t kv_events_linger;
  // In tokens; nil on the wire when 0.
  uint32_t kv_events_block_size;
  // Labels every event and every batch; does nothing to the endpoint.
  uint32_t kv_events_dp_rank;
  // Messages queued for each subscriber; default 10000, 0 is no limit.
  uint32_t kv_events_send_hwm;
  // 0 (the default) or 1: a disabled publisher opens nothing and costs nothing.
  uint8_t enable_kv_events;
  // 0 or 1 (the default). 0 silences `stored` and `removed` altogether; only `cleared` is still sent.
  uint8_t kv_events_emit_object_key;
  // 0 or 1 (the default): events carry the pre-RFC field names as well.
  uint8_t kv_events_emit_legacy_compat;
  // Must be 0.
  uint8_t reserved;
  // In ms; when the connection of a subscriber that vanished without a word is ended, 3000 to 3600000. Default 45000; 0
  // leaves it to the system, which may take hours.
  uint64_t kv_events_keepalive;
  // Addresses (`10.0.0.7`, `::1`) and networks (`10.0.0.0/8`) that may connect by TCP, with commas between them; empty,
  // the default, is anyone. Others are counted in `refused_peers`.
  struct kv_events_text_t kv_events_allow_peers;
  // What carries the messages: `zmq` (libzmq) or `native` (Linux), where the library is built with it; empty for the
  // default.
  struct kv_events_text_t kv_events_transport;
  // Bytes that may wait for one subscriber of the native transport, beside `kv_events_send_hwm` messages. Default 256 MiB.
  uint64_t kv_events_peer_queue_bytes;
  // Bytes that may wait for all subscribers of the native transport together, each message counted once. Default 1 GiB.
  uint64_t kv_events_total_queue_bytes;
  // Connections of the native transport at once; 0 is no limit. Default 1024.
  uint64_t kv_events_max_peers;
  // Likewise from one address by TCP. Default 0.
  uint64_t kv_events_max_peers_per_address;
} kv_events_config_t;

// Gets a line of the log: 1 is an error, 2 a warning, 3 information; `len` bytes of UTF-8 at `line`, without a NUL.
// Called from whichever thread has something to say, also the sender's; it must not throw.
typedef void (*kv_events_log_callback_t)(int32_t level, const char *line, size_t len, void *user);

// The caller's room for a text: `capacity` bytes at `data`. The call sets `length` to the length of the whole text,
// without the NUL, and copies what fits, always with a NUL at its end (unless `capacity` is 0). So the text was cut if
// `length >= capacity`. `data` may be NULL if `capacity` is 0, to ask for the length.
typedef struct kv_events_buffer_t {
  // Where the text goes.
  char *data;
  // How many bytes there are, with the NUL.
  size_t capacity;
  // Set by the call: how long the whole text is, without the NUL.
  size_t length;
} kv_events_buffer_t;

// How a stop went. Set `size` to sizeof before the call, which fills in the rest, as for the status.
typedef struct kv_events_stop_report_t {
  // sizeof of the struct; set by the caller. Afterwards, how much of it was filled in.
  size_t size;
  // Events published over the publisher's life.
  uint64_t published;
  // Events that were accepted and could not be sent before the deadline.
  uint64_t abandoned;
  // 1 if the socket and its context are gone, so that the endpoint is free. If 0, the sender thread still holds them and
  // closes them when it can.
  uint8_t closed;
  // Always 0.
  uint8_t reserved[7];
} kv_events_stop_report_t;

// A publisher's figures at one moment. Set `size` to sizeof before the call, which fills in the rest. The struct grows at
// its end only: a library that is older than the program's header fills in less, and `size` then says how much. What lies
// beyond is left as it was.
//
// Once all calls have returned and the sender is idle, accepted events are `published_events` + `evicted_events` +
// `failed_events` (+ `abandoned_events` after a stop).
typedef struct kv_events_status_t {
  // sizeof of the struct; set by the caller. Afterwards, how much of it was filled in.
  size_t size;
  // Messages whose last frame the socket took, empty batches included.
  uint64_t published_batches;
  // Events in those messages.
  uint64_t published_events;
  // Lost after being accepted: evicted + failed + abandoned.
  uint64_t dropped_events;
  // Held back for want of an object key.
  uint64_t skipped_keyless_events;
  // Not accepted; the call said so.
  uint64_t refused_events;
  // Bytes of payload in the published messages.
  uint64_t published_bytes;
  // Evicted from the full queue, oldest first.
  uint64_t evicted_events;
  // In messages that the socket did not take.
  uint64_t failed_events;
  // Left over at stop, or when the sender died.
  uint64_t abandoned_events;
  // The last number used up: by a message, or by an event that was evicted or failed.
  uint64_t last_sequence;
  // Events in the queue when the sender last looked.
  uint64_t queue_length;
  // The longest queue the sender has seen, in events.
  uint64_t queue_high_water;
  // Events the queue holds at most: the setting, and 2 if that is 1, since a call may have two events.
  uint64_t queue_capacity;
  // The socket's send high-water mark as read back from it, messages for each subscriber.
  uint64_t send_hwm;
  // Buffers idle in the pool.
  uint64_t pool_idle;
  // Buffers that were made because none was idle; fifteen at a time.
  uint64_t pool_misses;
  // Buffers freed because they had grown over `kv_events_retain_bytes`.
  uint64_t pool_freed;
  // 1 if the publisher publishes at all.
  uint8_t enabled;
  // 1 while the sender is well. 0 once it died; a stopped publisher is still well.
  uint8_t healthy;
  // 1 if `stored` and `removed` are held back by `kv_events_emit_object_key`.
  uint8_t keys_suppressed;
  // 1 once it was told to stop: calls are refused.
  uint8_t stopped;
  // Always 0.
  uint8_t reserved[4];
  // Connections that were refused since `kv_events_allow_peers` does not name where they came from.
  uint64_t refused_peers;
  // How often the endpoint was found to be one that no new subscriber can reach.
  uint64_t endpoint_faults;
  // 1 while no new subscriber can connect; `kv_events_endpoint_fault` says why. Those that are connected are served.
  uint8_t endpoint_fault;
  // Always 0.
  uint8_t reserved_2[7];
  // Connections that the native transport closed for want of a descriptor, for a limit, or for what they said.
  uint64_t refused_connections;
  // Messages that a subscriber of the native transport did not get since too many waited for it; each counts once for each
  // of them. They count as published.
  uint64_t peer_dropped_messages;
  // Events in those messages.
  uint64_t peer_dropped_events;
  // Subscribers of the native transport now.
  uint64_t peers;
} kv_events_status_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The code in words: a static string with a NUL at the end, never NULL.
const char *kv_events_code_text(int32_t code);

// The library's version, such as "0.1.0": a static string with a NUL at the end.
const char *kv_events_version(void);

// A value was committed (Put, Upsert, BatchPut): `stored` for every medium of `media_now`, whether or not it was readable
// there before. With one medium it is that one event.
kv_events_code_t kv_events_committed(const struct kv_events_publisher_t *publisher,
                                     const struct kv_events_object_t *object,
                                     uint32_t media_now);

// The same for an object that a session stored: its `stored` carry `session` as `session_id`. An empty session is none.
kv_events_code_t kv_events_committed_in_session(const struct kv_events_publisher_t *publisher,
                                                const struct kv_events_object_t *object,
                                                struct kv_events_text_t session,
                                                uint32_t media_now);

// An object's replicas changed (copy, move, offload, promotion, replica clear, eviction, stale handles): `removed` for the
// media that went, `stored` for those that came, nothing for the rest. `media_before` is what the object was readable on
// before the mutation: remember it before you touch the metadata, since nobody else does.
kv_events_code_t kv_events_changed(const struct kv_events_publisher_t *publisher,
                                   const struct kv_events_object_t *object,
                                   uint32_t media_before,
                                   uint32_t media_now);

// The same for an object that a session stored: the `stored` carries `session` as `session_id`, if there is one. An empty
// session is none, and where nothing is stored it is not looked at.
kv_events_code_t kv_events_changed_in_session(const struct kv_events_publisher_t *publisher,
                                              const struct kv_events_object_t *object,
                                              struct kv_events_text_t session,
                                              uint32_t media_before,
                                              uint32_t media_now);

// An object was removed, or its old value became unreadable under an Upsert: `removed` for every medium of
// `media_before`. With one medium it is that one event.
kv_events_code_t kv_events_removed(const struct kv_events_publisher_t *publisher,
                                   const struct kv_events_object_t *object,
                                   uint32_t media_before);

// One `cleared`: everything of the tenant is gone from every medium.
//
// Nothing guards it: a `stored` that another thread publishes just before it is wiped from every view although the object
// is there. To remove everything shard by shard use a sweep, which looks out for that.
kv_events_code_t kv_events_cleared(const struct kv_events_publisher_t *publisher,
                                   struct kv_events_text_t tenant);

// Fills `config` with the defaults: disabled, and everything as its comment says. `size` is `sizeof *config`.
//
// `config->size` becomes the size of what was filled in: of the whole struct, or less in a library that is older than the
// program's header. What lies beyond it was not touched, and that library does not look at it.
kv_events_code_t kv_events_config_init(struct kv_events_config_t *config,
                                       size_t size);

// The `kv_events_eviction_burst` recommended for loaded masters with that capacity.
uint64_t kv_events_recommended_eviction_burst(uint64_t queue_capacity);

// Sends the library's log lines to `callback`, with `user` as its last argument; NULL for silence, as at first. They are
// few: none on the path of a call. Set it before the first start to hear what that has to warn of.
//
// KV_EVENTS_SYSTEM: the program is written in Rust and has a logger already, which gets the lines.
kv_events_code_t kv_events_log_to(kv_events_log_callback_t callback,
                                  void *user);

// Starts a publisher: binds the socket and starts the sender thread. On KV_EVENTS_OK, `*publisher` is its handle.
//
// With `enable_kv_events` 0, and in a library built without ZeroMQ, it returns KV_EVENTS_DISABLED: `*publisher` is a
// handle all the same, and every call with it does nothing. A negative code leaves nothing behind, and `*publisher` is
// NULL. `error`, which may be NULL, gets the reason in words; it is empty on KV_EVENTS_OK.
kv_events_code_t kv_events_start(const struct kv_events_config_t *config,
                                 struct kv_events_publisher_t **publisher,
                                 struct kv_events_buffer_t *error);

// Whether calls publish: false for a handle that is none, if it is disabled, and from the moment it is stopped or its
// sender dies.
bool kv_events_enabled(const struct kv_events_publisher_t *publisher);

// The endpoint really bound (the port, if 0 or `*` was asked for); empty if disabled.
kv_events_code_t kv_events_bound_endpoint(const struct kv_events_publisher_t *publisher,
                                          struct kv_events_buffer_t *endpoint);

// What the sender died of; empty while it is well.
kv_events_code_t kv_events_unhealthy_reason(const struct kv_events_publisher_t *publisher,
                                            struct kv_events_buffer_t *reason);

// What keeps new subscribers out now (no descriptor is left, the ipc path is gone); empty while nothing does.
kv_events_code_t kv_events_endpoint_fault(const struct kv_events_publisher_t *publisher,
                                          struct kv_events_buffer_t *reason);

// Stops: calls are refused from now on, what was accepted is sent, then the socket lingers, all within `deadline_ms`. What
// could not be sent is counted as abandoned. `report` may be NULL.
//
// A second stop changes nothing and reports again. It may be called while other threads publish. The handle stays good for
// questions until it is freed.
kv_events_code_t kv_events_stop(const struct kv_events_publisher_t *publisher,
                                uint64_t deadline_ms,
                                struct kv_events_stop_report_t *report);

// Frees a publisher, after stopping it with a deadline of one second if it was not stopped. NULL is no error. No other call
// with the handle may be running; later ones return KV_EVENTS_INVALID_HANDLE.
//
// In a forked child nothing is stopped, waited for or closed: all of that is the parent's.
kv_events_code_t kv_events_free(struct kv_events_publisher_t *publisher);

// Fills in the publisher's figures. Takes no lock that a call could be waiting for.
kv_events_code_t kv_events_status(const struct kv_events_publisher_t *publisher, struct kv_events_status_t *status);

// Begins to remove everything of a tenant (empty is `default`). Begin before the first removal, then take every lock under
// which the tenant can store, one shard after another; tell of every object that was removed and of every one that was
// skipped; then finish.
//
// On KV_EVENTS_OK and KV_EVENTS_DISABLED `*sweep` is a handle, which must be finished or cancelled; a negative code makes
// it NULL.
kv_events_code_t kv_events_sweep_begin(const struct kv_events_publisher_t *publisher,
                                       struct kv_events_text_t tenant,
                                       struct kv_events_sweep_t **sweep);

// An object was removed: sends `removed` for every medium of `media_before`. A removal that is suppressed or refused, or of
// an object that was readable nowhere, counts as one all the same. An object of another tenant is published, and counts
// for nothing here.
kv_events_code_t kv_events_sweep_removed(const struct kv_events_sweep_t *sweep,
                                         const struct kv_events_object_t *object,
                                         uint32_t media_before);

// An object was left where it is, for whatever reason: leased, a replica incomplete, a task pending, an oplog slot or
// append that failed.
kv_events_code_t kv_events_sweep_skipped(const struct kv_events_sweep_t *sweep);

// Ends the sweep and makes `*sweep` NULL. Sends one `cleared` if at least one object was removed, none was skipped, and no
// `stored` of the tenant was published meanwhile; the code says which it was. The removals were sent as they came, so
// without a `cleared` all has been said as well.
kv_events_code_t kv_events_sweep_finish(struct kv_events_sweep_t **sweep);

// Ends the sweep without `cleared` and makes `*sweep` NULL.
kv_events_code_t kv_events_sweep_cancel(struct kv_events_sweep_t **sweep);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* The text of a C string. */
static inline kv_events_text_t kv_events_text(const char *string) {
  kv_events_text_t text;
  text.data = string;
  text.len = string == NULL ? 0 : strlen(string);
  return text;
}
