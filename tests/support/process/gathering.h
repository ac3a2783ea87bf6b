/*
 * gathering.h - processes of a test that wait for each other and gather bytes, as those of a run.
 */
#ifndef TESTS_GATHERING_H
#define TESTS_GATHERING_H

#include <pthread.h>

#include <pons/plugin.h>

enum { GATHERING_PROCESSES = 4, GATHERING_SIZE = 8192 };

/* It lies in memory that all processes share. */
typedef struct gathering {
    int count;
    pthread_barrier_t barrier;
    char bytes[GATHERING_PROCESSES][GATHERING_SIZE];
} gathering;

/* A process of a gathering. */
typedef struct gathering_member {
    gathering *of;
    int self;
} gathering_member;

void gathering_init(gathering *g, int count);

/* Wait until all processes are here. */
void gathering_wait(gathering *g);

/* Gather 'size' bytes of each process, ordered by rank, into 'all'; 'context' is the member. */
pons_status gathering_all_gather(void *context, const void *mine, size_t size, void *all,
                                 pons_error *err);

#endif
