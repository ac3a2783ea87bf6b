/*
 * card_trial.h - what tests of the cuda device's libraries begin and end with: a card of the
 * made-up driver, a graph with numbers in its leaves, numbers that are compared, a kernel that does
 * not run, and what is chosen by timing.
 */
#ifndef TESTS_CARD_TRIAL_H
#define TESTS_CARD_TRIAL_H

#include "cuda/cuda.h"
#include "evaluate.h"
#include "graph/ir/shape.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static const pons_step_key trial_moment = { 7, 3, 2 };

static inline device card(const pons_device_settings *settings)
{
    pons_error err = PONS_ERROR_INIT;
    device d = { .operations = &cuda_operations };

    ck_assert_msg(cuda_operations.open(settings, &d.handle, &err) == PONS_OK, "%s", err.text);
    cuda_operations.facts(d.handle, &d.facts);
    return d;
}

/* The graph on a device, with numbers from -1 to 1 in its leaves. */
static inline evaluation *evaluation_filled(pons_graph *g, const device *d, pons_type storage,
                                            int count, pons_node *const *leaf)
{
    pons_error err = PONS_ERROR_INIT;
    evaluation *e = evaluation_new(g, d, storage, &err);

    ck_assert_msg(e != NULL, "%s", err.text);
    for (int k = 0; k < count; k++)
        for (int64_t i = 0; i < shape_count(leaf[k]->shape); i++)
            evaluation_set(e, leaf[k], i, (double)((i * 37 + 11 * k) % 101) / 50 - 1);
    return e;
}

static inline void expect_run(evaluation *e)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(evaluation_run(e, &trial_moment, &err) == PONS_OK, "%s", err.text);
}

/* A library's kernel ends while it runs, which one line says. */
static inline void expect_run_fails(evaluation *e, const char *said)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(evaluation_run(e, &trial_moment, &err), PONS_DEVICE);
    ck_assert_msg(strstr(err.text, said) != NULL, "%s", err.text);
}

/* Two evaluations of a node differ by at most that part of its largest element. */
static inline void expect_near(const char *name, const pons_node *x, const evaluation *expected,
                               const evaluation *found, double tolerance)
{
    int64_t count = shape_count(x->shape);
    double largest = 0;

    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(evaluation_get(expected, x, i)));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(evaluation_get(expected, x, i) - evaluation_get(found, x, i))
                      <= tolerance * largest, "%s, element %lld: %g, expected %g", name,
                      (long long)i, evaluation_get(found, x, i), evaluation_get(expected, x, i));
}

enum { NOTES = 8 };

/* What a run keeps for its devices. */
typedef struct notes {
    int count, kept;
    struct note {
        char key[PONS_AUTOTUNE_ENTRY_SIZE], choice[PONS_AUTOTUNE_ENTRY_SIZE];
        double seconds;
    } note[NOTES];
} notes;

static inline const char *find_note(void *context, const char *key)
{
    notes *n = context;

    for (int i = 0; i < n->count; i++)
        if (strcmp(n->note[i].key, key) == 0)
            return n->note[i].choice;
    return NULL;
}

static inline pons_status keep_note(void *context, const char *key, const char *choice,
                                    double seconds, pons_error *err)
{
    notes *n = context;
    int i = 0;

    while (i < n->count && strcmp(n->note[i].key, key) != 0)
        i++;
    ck_assert_int_lt(i, NOTES);
    n->count += i == n->count;
    n->kept++;
    ck_assert(strlen(key) < PONS_AUTOTUNE_ENTRY_SIZE && strlen(choice) < PONS_AUTOTUNE_ENTRY_SIZE);
    strcpy(n->note[i].key, key);
    strcpy(n->note[i].choice, choice);
    n->note[i].seconds = seconds;
    return PONS_OK;
}

#endif
