/*
 * heartbeat.h - the heartbeats that processes send a few times a second, and the failures that rank
 * 0 detects in them. This file reads no clock and sends nothing.
 */
#ifndef CORE_CLUSTER_WATCHDOG_HEARTBEAT_H
#define CORE_CLUSTER_WATCHDOG_HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heartbeat {
    int64_t serial;           /* number of the heartbeat, from 1; 0: none yet                     */
    int64_t progress;         /* grows with every note and collective                             */
    int64_t step;             /* attempted step; -1: none yet                                     */
    /* Number and bytes of the collective waited for, else of the last one started; -1: none. */
    int64_t number, size;
    int32_t waiting, left;    /* inside a collective; ending normally                             */
    char kind[16], doing[16];
    double age;               /* seconds from this state until it was sent                        */
} heartbeat;

/* State of a rank on rank 0. Times are seconds of one clock, except 'state_time'. */
typedef struct heartbeat_row {
    heartbeat last;
    double heard, changed;    /* last heartbeat; last one with progress                           */
    double state_time;        /* time of the last heartbeat's state, by base/clock.h              */
} heartbeat_row;

/*
 * Record a heartbeat that was read at 'now'; a repeated one is ignored. 'on_way' is the time since
 * it was sent; 'clock' is the present time of base/clock.h.
 */
void heartbeat_record(heartbeat_row *row, const heartbeat *b, double now, double on_way,
                      double clock);
/* The last heartbeat with its present age, to send to other ranks. */
heartbeat heartbeat_forward(const heartbeat_row *row, double clock);
/*
 * Whether the run has failed, with a one-line message. Failures are:
 * - a rank without a heartbeat for timeout_s;
 * - a rank outside collectives without progress for timeout_s; in phase "start" only if other
 *   ranks have waited as long;
 * - a collective that all ranks wait for and that has not ended for timeout_s;
 * - ranks that have started different collectives under one number.
 * A rank that waits for others that make progress may wait as long as it takes.
 */
bool heartbeats_check(const heartbeat_row *row, int count, double now, double timeout_s, char *line,
                      size_t room);
/*
 * Write one line per rank, each after a newline, as many as fit: the age of its last heartbeat, if
 * that is not recent, and its state.
 */
void heartbeats_print(const heartbeat_row *row, int count, double clock, char *out, size_t room);

#endif
