/*
 * shared_table.h - a test in several processes that share a table of values, as the processes of a
 * run share their store.
 */
#ifndef TESTS_SHARED_TABLE_H
#define TESTS_SHARED_TABLE_H

#include "base/clock.h"
#include "support/asserts.h"
#include "support/pause.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pons/comm.h>

enum { PROCESSES = 8, TABLE_ROWS = 64, TABLE_VALUE = 8192 };

typedef struct table_row {
    char key[64];
    size_t size;
    char value[TABLE_VALUE];
} table_row;

/* The processes and their table, in memory shared by all of them. */
typedef struct processes {
    int count;
    pthread_mutex_t lock;
    int rows;
    table_row row[TABLE_ROWS];
    double patience;          /* seconds that 'table_get' waits                                   */
    int per_node;             /* consecutive processes with one address; 0: all of them           */
    pid_t pid[PROCESSES];
    int code[PROCESSES];      /* status of waitpid, from processes_join                           */
    pons_error err[PROCESSES];
    double ended[PROCESSES];  /* monotonic time at which the work returned                        */
    double note[PROCESSES];   /* a number that the work reports                                   */
} processes;

processes *processes_new(int count);

void processes_free(processes *p);

pons_status table_set(void *context, const char *key, const void *value, size_t size,
                      pons_error *err);

pons_status table_get(void *context, const char *key, void *value, size_t room,
                      size_t *size, pons_error *err);

typedef pons_status processes_work(processes *p, int rank, void *context, pons_error *err);

/* Fork all processes; 'work' runs in each, and its error is kept. */
void processes_start(processes *p, processes_work *work, void *context);

/*
 * Wait until all processes have ended. A process that has not ended after 'patience' seconds of an
 * idle machine is killed and fails the test. The limit counts looks, not time: a paused machine
 * ends no process.
 */
void processes_join(processes *p, double patience);

void processes_check(const processes *p);

#endif
