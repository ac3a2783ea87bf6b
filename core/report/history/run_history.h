/*
 * run_history.h - the numbers of a run over its steps, read from metrics.jsonl.
 */
#ifndef CORE_REPORT_HISTORY_RUN_HISTORY_H
#define CORE_REPORT_HISTORY_RUN_HISTORY_H

#include "base/arena.h"

#include <pons/plugin.h>
#include <stdint.h>

/* A number of the records of one kind, "dice.spleen" of "validation"; steps rise. */
typedef struct history_series {
    const char *kind, *name;
    int count, room;
    double *step, *value;     /* a value may be NaN                                               */
    int *record;              /* the number of each value's record                                */
} history_series;

typedef struct history_record {
    const char *kind;
    int64_t step, epoch;
} history_record;

typedef struct run_history {
    int count, room;
    history_series *series;   /* in the order in which they appear in the file                    */
    int record_count, record_room;
    history_record *record;
    int64_t steps;            /* of the last record                                               */
    int64_t epochs;           /* of the last step; that of a validation is complete               */
} run_history;

/*
 * Read the file. Lines that are no records are passed over, such as one that a training is writing.
 * PONS_DATA: there is no such file. Everything lies in 'memory'.
 */
pons_status run_history_read(arena *memory, const char *path, run_history *out, pons_error *err);
/* The series of a kind and a name; NULL: none. */
const history_series *run_history_find(const run_history *h, const char *kind, const char *name);
/* The sum of the values that are finite; 0 of NULL. */
double history_series_sum(const history_series *s);

#endif
