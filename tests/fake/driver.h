/*
 * driver.h - what the files of the made-up driver share.
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

/* cuda.c: what cuDriverGetVersion says. */
int fake_version(void);
/* cuda.c: the context of this thread, or NULL. */
context fake_context(void);
/* cuda.c: whether FAKE_CUDA_FAIL wants this call of kind 'what' to fail; counts it. */
bool fake_fails(const char *what, int *count);
/* watch.c: nanoseconds of a clock; and that work which began then has ended. */
uint64_t watch_clock(void);
void watch_tell(fake_work work);
/* watch.c: what a profiler has the driver load. */
void watch_load(void);
/* cuda.c: such a call was made. */
void fake_counts(fake_deed deed);

/* ---- order.c --------------------------------------------------------------------------------- */

/*
 * Who does something: this process, the default stream, which no other stream waits for, or a
 * stream. What an actor has seen of another one is the number of its latest deed that is known to
 * have ended.
 */
enum { ACTORS = 64, HOST = 0, DEFAULT_STREAM };

typedef struct order_clock {
    uint64_t seen[ACTORS];
} order_clock;

int order_actor_new(void);
void order_actor_free(int actor);
/* A deed of 'actor', given by this process. */
void order_begin(int actor);
/* What the next edge from 'actor' tells: all that it has done and seen. */
void order_look(int actor, order_clock *out);
/* 'actor' goes on only behind that. */
void order_follow(int actor, const order_clock *c);

/* What was done with a range of a piece of memory, last by each actor. */
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

/* The deed that 'actor' has begun touches this range; ends the process where another one might. */
void order_touch(order_list *l, int actor, size_t begin, size_t end, bool writes);
/* Whether this process knows that the deed of a record has ended. */
bool order_known(const order_record *r);

/* ---- memory.c -------------------------------------------------------------------------------- */

/* 'actor' touches this memory, which must be one that the driver gave: false otherwise. */
bool memory_touch(int actor, const void *at, size_t size, bool writes);
/*
 * Where parameter 'number' of a kernel reaches that memory, and how many bytes there are from
 * there.
 */
void *memory_view(const void *memory, int number, size_t *rest);
/* This process has waited for something: memory of copies that have ended is its own again. */
void memory_settle(void);

/* ---- capture.c ------------------------------------------------------------------------------- */

bool stream_is_captured(const stream *s);
/* A call that no thread, or not this one, may make while a stream is captured: then an error. */
int capture_refuses(const char *call);
/* A call that is made with a stream, which must not be captured. */
int capture_refuses_stream(const stream *s, const char *call);
/* Graphs that were made and not freed. */
int capture_left_over(void);

/* stream.c: everything that was pushed has ended. */
void stream_drain_all(void);

#endif
