// What the C and the C++ test share: checks, and what they tell reader.py of the stream they send.
#pragma once

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

// The stream must go on with this event. `medium` is "-" for `cleared`.
static inline void expect_event(const char *type, const char *medium, const char *tenant, const char *key,
                                size_t key_len, const char *group) {
  printf("expect %s %s %s ", type, medium, tenant);
  for (size_t i = 0; i < key_len; i++) printf("%02x", (unsigned char)key[i]);
  printf(" %s\n", group);
  fflush(stdout);
}

// The same with a `session_id`.
static inline void expect_in_session(const char *type, const char *medium, const char *tenant, const char *key,
                                     size_t key_len, const char *group, const char *session) {
  printf("session %s\n", session);
  expect_event(type, medium, tenant, key, key_len, group);
}

// Somewhere in the stream are `count` such events, with the keys PREFIX/0, PREFIX/1 ... in this order.
static inline void expect_series(const char *type, const char *medium, const char *tenant, const char *prefix, int count) {
  printf("series %s %s %s %s %d\n", type, medium, tenant, prefix, count);
  fflush(stdout);
}

// Whether reader.py has said that it hears us; waits a little for it.
static inline int heard(void) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 10) > 0;
}
