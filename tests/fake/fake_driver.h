/*
 * fake_driver.h - declarations that the files of the fake driver share.
 */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include "fake.h"

#include <stdint.h>

/* CUresult. */
enum {
    OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, NO_CONTEXT = 201,
    INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901,
    CAPTURE_WRONG_THREAD = 908
};

typedef struct CUctx_st *context;
typedef struct CUstream_st stream;

/* fake_cuda.c: the answer of cuDriverGetVersion. */
int fake_version(void);
/* fake_cuda.c: the context of this thread, or NULL. */
context fake_context(void);
/* fake_cuda.c: count a call of kind 'what'; true: FAKE_CUDA_FAIL lets it fail. */
bool fake_fails(const char *what, int *count);
/* watch.c: nanoseconds of a clock; and a report of work that began at such a time and has ended. */
uint64_t watch_clock(void);
void watch_tell(fake_work work);
/* watch.c: load the library that a profiler names. */
void watch_load(void);
/* fake_cuda.c: count such a call. */
void fake_counts(fake_deed deed);

/* ---- order.c --------------------------------------------------------------------------------- */

/*
 * The actors: this process, the default stream, for which no other stream waits, and the streams.
 * An actor has seen the latest deed of another one that is known to have ended, by its number.
 */
enum { ACTORS = 64, HOST = 0, DEFAULT_STREAM };

typedef struct order_clock {
    uint64_t seen[ACTORS];
} order_clock;

int order_actor_new(void);
void order_actor_free(int actor);
/* Begin a deed of 'actor', started by this process. */
void order_begin(int actor);
/* The clock of the next edge from 'actor': all deeds that it has done and seen. */
void order_look(int actor, order_clock *out);
/* 'actor' waits for that clock. */
void order_follow(int actor, const order_clock *c);

/* Accesses to a range of an allocation, the last of each actor. */
typedef struct order_record {
    size_t begin, end;
    uint64_t time;
    int actor;
    bool writes;
} order_record;

typedef struct order_list {
    int count, room;
    order_record *record;
} order_list;

/*
 * The current deed of 'actor' touches this range. A conflict with another actor ends the process.
 */
void order_touch(order_list *l, int actor, size_t begin, size_t end, bool writes);
/* True: this process knows that the deed of a record has ended. */
bool order_known(const order_record *r);

/* ---- fake_memory.c --------------------------------------------------------------------------- */

/* 'actor' touches this memory; false: the driver did not allocate it. */
bool memory_touch(int actor, const void *at, size_t size, bool writes);
/*
 * The address at which parameter 'number' of a kernel reaches that memory, and the bytes from there
 * on.
 */
void *memory_view(const void *memory, int number, size_t *rest);
/* This process has waited for an event: memory of finished copies is accessible again. */
void memory_settle(void);

/* ---- fake_capture.c -------------------------------------------------------------------------- */

bool stream_is_captured(const stream *s);
/* Check a call that a capture forbids to all threads or to this one; returns the error. */
int capture_refuses(const char *call);
/* Check a call on a stream, which must not be captured. */
int capture_refuses_stream(const stream *s, const char *call);
/* Graphs that were made and not freed. */
int capture_left_over(void);

/* stream.c: wait for all tasks of all streams. */
void stream_drain_all(void);

#endif
