/*
 * autotune.c - time the candidates of a request in rounds, and keep the choice.
 */
#include "cuda/cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds over all candidates, so that a change of the clock affects all of them. */
enum { ROUNDS = 3, RUNS = 4 };
/* After the first round a candidate slower than this multiple of the fastest is dropped. */
static const double slow_factor = 2;
/* Fill byte of operands: a small value in each of their types. */
enum { FILLING = 0x3c };

typedef struct bench {
    const autotune_trial *trial;
    void *operand[AUTOTUNE_OPERANDS], *workspace;
    size_t operand_size[AUTOTUNE_OPERANDS], workspace_size;
    double seconds[AUTOTUNE_CANDIDATES]; /* shortest time of a run; NaN: it does not run          */
} bench;

/* ---- memory ---------------------------------------------------------------------------------- */

static void *take_memory(const bench *b, size_t size)
{
    pons_error unread = PONS_ERROR_INIT;

    return cuda_allocate(b->trial->device, size, &unread);
}

static bool take_operands(bench *b)
{
    const cuda_driver *driver = &b->trial->device->driver;

    for (int i = 0; i < AUTOTUNE_OPERANDS; i++) {
        const pons_tensor *tensor = &b->trial->operand[i];
        b->operand_size[i] = (size_t)codegen_count(tensor->shape)
                           * (tensor->type == PONS_F32 ? 4 : 2);
        b->operand[i] = take_memory(b, b->operand_size[i]);
        if (b->operand[i] == NULL
            || driver->clear((cuda_address)(uintptr_t)b->operand[i], FILLING, b->operand_size[i])
               != 0)
            return false;
    }
    return driver->stream_wait(NULL) == 0;
}

/* Allocate the largest workspace that fits. Candidates that need more do not run. */
static void take_workspace(bench *b)
{
    const autotune_trial *t = b->trial;

    for (;;) {
        size_t most = 0;

        for (int i = 0; i < t->count; i++)
            if (!isnan(b->seconds[i]) && t->workspace[i] > most)
                most = t->workspace[i];
        b->workspace_size = most;
        b->workspace = most > 0 ? take_memory(b, most) : NULL;
        if (most == 0 || b->workspace != NULL)
            return;
        for (int i = 0; i < t->count; i++)
            if (t->workspace[i] == most)
                b->seconds[i] = NAN;
    }
}

static void release_memory(bench *b)
{
    for (int i = 0; i < AUTOTUNE_OPERANDS; i++)
        cuda_release(b->trial->device, b->operand[i], b->operand_size[i]);
    cuda_release(b->trial->device, b->workspace, b->workspace_size);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Time runs of one candidate. A run that the library refuses marks the candidate as not running. */
static pons_status time_one(const bench *b, int i, double *seconds, pons_error *err)
{
    const autotune_trial *t = b->trial;
    int refused = 0;

    if (cuda_timer_start(t->device, err) != PONS_OK)
        return err->status;
    for (int k = 0; k < RUNS && refused == 0; k++)
        refused = t->run(t->context, i, b->operand, b->workspace);
    if (cuda_timer_stop(t->device, seconds, err) != PONS_OK)
        return err->status;
    *seconds = refused != 0 ? NAN : *seconds / RUNS;
    return PONS_OK;
}

static double least_of(const bench *b)
{
    double least = INFINITY;

    for (int i = 0; i < b->trial->count; i++)
        least = fmin(least, b->seconds[i]);
    return least;
}

/* A first run of one candidate, which may load code; NaN: it does not run. */
static pons_status load_one(bench *b, int i, pons_error *err)
{
    const autotune_trial *t = b->trial;

    if (!isnan(b->seconds[i]) && t->run(t->context, i, b->operand, b->workspace) != 0)
        b->seconds[i] = NAN;
    return cuda_synchronize(t->device, err);
}

static pons_status time_all(bench *b, pons_error *err)
{
    for (int i = 0; i < b->trial->count; i++)
        if (load_one(b, i, err) != PONS_OK)
            return err->status;
    for (int round = 0; round < ROUNDS; round++) {
        double bound = round > 0 ? slow_factor * least_of(b) : INFINITY;
        for (int i = 0; i < b->trial->count; i++) {
            double seconds;
            if (!(b->seconds[i] <= bound))
                continue;
            if (time_one(b, i, &seconds, err) != PONS_OK)
                return err->status;
            b->seconds[i] = isnan(seconds) || seconds < b->seconds[i] ? seconds : b->seconds[i];
        }
    }
    return PONS_OK;
}

/* Time all candidates in memory of their own. If there is no memory, nothing runs. */
static pons_status time_in_memory(bench *b, pons_error *err)
{
    const autotune_trial *t = b->trial;

    if (!take_operands(b))
        return PONS_OK;
    take_workspace(b);
    if (t->begin != NULL && t->begin(t->context, b->operand, b->workspace) != 0)
        return PONS_OK;
    return time_all(b, err);
}

/* ---- the fastest ----------------------------------------------------------------------------- */

pons_status autotune_run(const autotune_trial *t, int *best, double *seconds, pons_error *err)
{
    bench b = { .trial = t };
    pons_error cause = PONS_ERROR_INIT;

    *best = t->count == 1 ? 0 : -1;
    *seconds = NAN;
    for (int i = 0; i < t->count; i++)
        b.seconds[i] = INFINITY;
    if (t->count > 1)
        time_in_memory(&b, &cause);
    release_memory(&b);
    if (cause.status != PONS_OK)
        return pons_fail(err, PONS_DEVICE, "cannot time the %s for '%s': %s\nhint: --set "
                         "device.autotune=no", t->kind, t->request, cause.text);
    for (int i = 0; i < t->count; i++) {
        if (b.seconds[i] < INFINITY && (*best < 0 || b.seconds[i] < *seconds)) {
            *best = i;
            *seconds = b.seconds[i];
        }
    }
    return PONS_OK;
}

/* ---- stored choices -------------------------------------------------------------------------- */

static const char limit_word[] = " within ";

autotune_found autotune_find(const cuda_device *d, const char *key, char name[AUTOTUNE_NAME_SIZE])
{
    const char *kept = d->autotune->find(d->autotune->context, key);
    const char *room = kept != NULL ? strstr(kept, limit_word) : NULL;
    int length;

    if (kept == NULL)
        return AUTOTUNE_NOT_FOUND;
    if (kept[0] == '\0')
        return AUTOTUNE_FOUND_UNTIMED;
    if (room != NULL && d->autotune->keep != NULL
        && strtoull(room + strlen(limit_word), NULL, 10) < d->workspace_limit)
        return AUTOTUNE_NOT_FOUND;
    length = (int)(room != NULL ? (size_t)(room - kept) : strlen(kept));
    snprintf(name, AUTOTUNE_NAME_SIZE, "%.*s", length, kept);
    return AUTOTUNE_FOUND;
}

pons_status autotune_keep(const cuda_device *d, const char *key, const char *name,
                          double seconds, pons_error *err)
{
    const pons_autotune_cache *autotune = d->autotune;
    char kept[PONS_AUTOTUNE_ENTRY_SIZE] = "";

    if (name[0] != '\0')
        snprintf(kept, sizeof kept, "%s%s%zu", name, limit_word, d->workspace_limit);
    return autotune->keep(autotune->context, key, kept, seconds, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

void autotune_put_numbers(FILE *to, const char *name, int count, const int64_t *number)
{
    fprintf(to, " %s", name);
    for (int i = 0; i < count; i++)
        fprintf(to, " %lld", (long long)number[i]);
}
