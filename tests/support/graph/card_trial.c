/*
 * card_trial.c - see card_trial.h.
 */
#include "support/graph/card_trial.h"

static const pons_step_key trial_moment = { 7, 3, 2 };

device gpu_open(const pons_device_settings *settings)
{
    pons_error err = PONS_ERROR_INIT;
    device d = { .operations = &cuda_operations };

    ck_assert_msg(cuda_operations.open(settings, &d.handle, &err) == PONS_OK, "%s", err.text);
    cuda_operations.facts(d.handle, &d.facts);
    return d;
}

evaluation *evaluation_filled(pons_graph *g, const device *d, pons_type storage,
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

void expect_run(evaluation *e)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(evaluation_run(e, &trial_moment, &err) == PONS_OK, "%s", err.text);
}

void expect_run_fails(evaluation *e, const char *said)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(evaluation_run(e, &trial_moment, &err), PONS_DEVICE);
    ck_assert_msg(strstr(err.text, said) != NULL, "%s", err.text);
}

void expect_near(const char *name, const pons_node *x, const evaluation *expected,
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

const char *find_note(void *context, const char *key)
{
    notes *n = context;

    for (int i = 0; i < n->count; i++)
        if (strcmp(n->note[i].key, key) == 0)
            return n->note[i].choice;
    return NULL;
}

pons_status keep_note(void *context, const char *key, const char *choice,
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
