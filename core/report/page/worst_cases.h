/*
 * worst_cases.h - the slices of the worst cases of a validation.
 *
 * Any thread may add a case; the other functions are of one thread, without others at the time.
 */
#ifndef CORE_REPORT_PAGE_WORST_CASES_H
#define CORE_REPORT_PAGE_WORST_CASES_H

#include "cluster/group/group.h"
#include "report/page/mosaic.h"

#include <pthread.h>

/* Pictures of a report: 60 MB of slices where cases are large. */
enum { WORST_CASES_MAX = 128 };

typedef struct worst_case {
    int number;
    double badness;           /* larger: worse; NaN: it has no score and comes last               */
    mosaic_slices *slices;    /* owned                                                            */
} worst_case;

typedef struct worst_cases {
    pthread_mutex_t lock;
    int room, count;
    worst_case item[WORST_CASES_MAX];
} worst_cases;

/* An empty set for the 'room' worst cases, at most WORST_CASES_MAX. */
void worst_cases_init(worst_cases *w, int room);
void worst_cases_clear(worst_cases *w);
/* Free the slices and the lock. */
void worst_cases_close(worst_cases *w);
/* Cut the slices of a case, unless as many cases as there is room for are worse. */
pons_status worst_cases_add(worst_cases *w, int number, double badness, const mosaic_case *c,
                            pons_error *err);
/* Move the cases of all processes to rank 0. Collective; other ranks have none afterwards. */
pons_status worst_cases_gather(worst_cases *w, group *g, pons_error *err);

#endif
