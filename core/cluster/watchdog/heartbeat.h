/*
 * heartbeat.h - what a process says of itself a few times a second, and what rank 0 concludes from
 * all of them. No clock is read and nothing is sent here.
 */
#ifndef CORE_CLUSTER_WATCHDOG_HEARTBEAT_H
#define CORE_CLUSTER_WATCHDOG_HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct beat {
    int64_t serial;           /* of this beat, from 1; 0: none has come yet                       */
    int64_t progress;         /* grows with every note and collective                             */
    int64_t step;             /* attempted; -1: none yet                                          */
    int64_t number, size;     /* of the collective that is waited for, else of the one started    */
                              /* last; -1: none yet. Bytes                                        */
    int32_t waiting, left;    /* in a collective; closing in order                                */
    char kind[16], doing[16];
    double age;               /* seconds since all this was so, when it was handed on             */
} beat;

/* A rank as rank 0 has seen it; times are seconds on one clock, but for ... */
typedef struct beat_row {
    beat last;
    double heard, changed;    /* when a beat came, and one with progress                          */
    double made;              /* ... when the last beat was true, on a clock that never rests     */
} beat_row;

/*
 * 'b' has been read at 'now'; the same one may come again. 'on_way': seconds since it was handed
 * on, of which it is 'clock' now.
 */
void beat_take(beat_row *row, const beat *b, double now, double on_way, double clock);
/* What the row says of its rank, for others to read. */
beat beat_hand_on(const beat_row *row, double clock);
/*
 * Whether something is wrong with the run, and one line about it:
 * - a rank from which nothing has been heard for timeout_s;
 * - a rank without progress for timeout_s that does not wait for others; at "start" only when
 *   others have waited as long;
 * - a collective that all wait for and that does not end for timeout_s;
 * - ranks that have started different collectives under one number.
 * A rank that waits for others which make progress waits as long as it takes.
 */
bool beats_judge(const beat_row *row, int count, double now, double timeout_s, char *line,
                 size_t room);
/*
 * One line per rank, each after a newline, as many as there is room for: how long before 'clock' it
 * was last heard, unless that is the present, and what it was at then.
 */
void beats_tell(const beat_row *row, int count, double clock, char *out, size_t room);

#endif
