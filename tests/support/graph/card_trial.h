/*
 * card_trial.h - the shared parts of tests of the cuda device's libraries: a GPU of the fake
 * driver, a graph with filled leaves, comparisons, a kernel that fails, and entries of the autotune
 * cache.
 */
#ifndef TESTS_CARD_TRIAL_H
#define TESTS_CARD_TRIAL_H

#include "cuda/cuda.h"
#include "graph/ir/shape.h"
#include "support/graph/evaluate_nodes.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

device gpu_open(const pons_device_settings *settings);

/* The graph on a device, with values from -1 to 1 in its leaves. */
evaluation *evaluation_filled(pons_graph *g, const device *d, pons_type storage,
                              int count, pons_node *const *leaf);

void expect_run(evaluation *e);

/* The run fails in a library's kernel, with one line that contains 'said'. */
void expect_run_fails(evaluation *e, const char *said);

/* Two evaluations of a node differ by at most 'tolerance' of its largest element. */
void expect_near(const char *name, const pons_node *x, const evaluation *expected,
                 const evaluation *found, double tolerance);

enum { NOTES = 8 };

/* The autotune cache of a run. */
typedef struct notes {
    int count, kept;
    struct note {
        char key[PONS_AUTOTUNE_ENTRY_SIZE], choice[PONS_AUTOTUNE_ENTRY_SIZE];
        double seconds;
    } note[NOTES];
} notes;

const char *find_note(void *context, const char *key);

pons_status keep_note(void *context, const char *key, const char *choice,
                      double seconds, pons_error *err);

#endif
