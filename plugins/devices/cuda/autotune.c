/*
 * autotune.c - time candidates: a few runs of each, in turns; and what is kept of that.
 */
#include "cuda/cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In turns, so that a clock that changes changes all of them. */
enum { ROUNDS = 3, RUNS = 4 };
/* After the first round one that takes so many times what the best takes is left out. */
static const double hopeless = 2;
/* Bytes of operands: a small number in each of their types. */
enum { FILLING = 0x3c };

typedef struct bench {
    const cuda_trial *trial;
    void *operand[CUDA_OPERANDS], *workspace;
    size_t operand_size[CUDA_OPERANDS], workspace_size;
    double seconds[CUDA_CANDIDATES]; /* of a run, the least; NaN: it does not run                 */
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

    for (int i = 0; i < CUDA_OPERANDS; i++) {
        const pons_tensor *tensor = &b->trial->operand[i];
        b->operand_size[i] = (size_t)source_count(tensor->shape)
                           * (tensor->type == PONS_F32 ? 4 : 2);
        b->operand[i] = take_memory(b, b->operand_size[i]);
        if (b->operand[i] == NULL
            || driver->clear((cuda_address)(uintptr_t)b->operand[i], FILLING, b->operand_size[i])
               != 0)
            return false;
    }
    return driver->stream_wait(NULL) == 0;
}

/* For the one that wants most, of those for which there is room; the others do not run. */
static void take_workspace(bench *b)
{
    const cuda_trial *t = b->trial;

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

static void release(bench *b)
{
    for (int i = 0; i < CUDA_OPERANDS; i++)
        cuda_release(b->trial->device, b->operand[i], b->operand_size[i]);
    cuda_release(b->trial->device, b->workspace, b->workspace_size);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Runs of one candidate; what the library refuses makes it one that does not run. */
static pons_status time_one(const bench *b, int i, double *seconds, pons_error *err)
{
    const cuda_trial *t = b->trial;
    int refused = 0;

    if (cuda_time(t->device, err) != PONS_OK)
        return err->status;
    for (int k = 0; k < RUNS && refused == 0; k++)
        refused = t->run(t->context, i, b->operand, b->workspace);
    if (cuda_timed(t->device, seconds, err) != PONS_OK)
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

/* A run of one, which may load what it needs; NaN: it does not run. */
static pons_status load_one(bench *b, int i, pons_error *err)
{
    const cuda_trial *t = b->trial;

    if (!isnan(b->seconds[i]) && t->run(t->context, i, b->operand, b->workspace) != 0)
        b->seconds[i] = NAN;
    return cuda_synchronise(t->device, err);
}

static pons_status time_all(bench *b, pons_error *err)
{
    for (int i = 0; i < b->trial->count; i++)
        if (load_one(b, i, err) != PONS_OK)
            return err->status;
    for (int round = 0; round < ROUNDS; round++) {
        double bound = round > 0 ? hopeless * least_of(b) : INFINITY;
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

/* In memory that it takes; where there is none nothing has run. */
static pons_status time_in_memory(bench *b, pons_error *err)
{
    const cuda_trial *t = b->trial;

    if (!take_operands(b))
        return PONS_OK;
    take_workspace(b);
    if (t->begin != NULL && t->begin(t->context, b->operand, b->workspace) != 0)
        return PONS_OK;
    return time_all(b, err);
}

/* ---- the fastest ----------------------------------------------------------------------------- */

pons_status cuda_try(const cuda_trial *t, int *best, double *seconds, pons_error *err)
{
    bench b = { .trial = t };
    pons_error cause = PONS_ERROR_INIT;

    *best = t->count == 1 ? 0 : -1;
    *seconds = NAN;
    for (int i = 0; i < t->count; i++)
        b.seconds[i] = INFINITY;
    if (t->count > 1)
        time_in_memory(&b, &cause);
    release(&b);
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

/* ---- what is kept ---------------------------------------------------------------------------- */

static const char room_word[] = " within ";

cuda_found cuda_find_choice(const cuda_device *d, const char *key, char name[CUDA_NAME_SIZE])
{
    const char *kept = d->tuning->find(d->tuning->context, key);
    const char *room = kept != NULL ? strstr(kept, room_word) : NULL;
    int length;

    if (kept == NULL)
        return CUDA_NOT_FOUND;
    if (kept[0] == '\0')
        return CUDA_FOUND_UNTIMED;
    if (room != NULL && d->tuning->keep != NULL
        && strtoull(room + strlen(room_word), NULL, 10) < d->workspace_limit)
        return CUDA_NOT_FOUND;
    length = (int)(room != NULL ? (size_t)(room - kept) : strlen(kept));
    snprintf(name, CUDA_NAME_SIZE, "%.*s", length, kept);
    return CUDA_FOUND;
}

pons_status cuda_keep_choice(const cuda_device *d, const char *key, const char *name,
                             double seconds, pons_error *err)
{
    const pons_autotune_cache *tuning = d->tuning;
    char kept[PONS_AUTOTUNE_ENTRY_SIZE] = "";

    if (name[0] != '\0')
        snprintf(kept, sizeof kept, "%s%s%zu", name, room_word, d->workspace_limit);
    return tuning->keep(tuning->context, key, kept, seconds, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

void cuda_put_numbers(FILE *to, const char *name, int count, const int64_t *number)
{
    fprintf(to, " %s", name);
    for (int i = 0; i < count; i++)
        fprintf(to, " %lld", (long long)number[i]);
}
