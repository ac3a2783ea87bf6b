/*
 * dnn_choose.c - the engine for a convolution by timing ([device] autotune): those that the library
 * proposes and that fit run a few times, each in turn, on memory of their own. Engines and knobs
 * that are chosen have a name, by which they are found again without timing.
 */
#include "cuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In turns, so that a clock that changes changes all of them. */
enum { ROUNDS = 3, RUNS = 4 };
/* After the first round an engine that takes so many times what the best takes is left out. */
static const double hopeless = 2;
/* Bytes of operands: a small number in each of their types. */
enum { FILLING = 0x3c };

typedef struct trial {
    cuda_device *device;
    const dnn_convolution *convolution;
    dnn_candidates *all;
    void *operand[3], *workspace;
    size_t operand_size[3], workspace_size;
    dnn_list described;
    dnn_descriptor pack;
    double seconds[DNN_CANDIDATES]; /* of a run, the least; NaN: it does not run                  */
} trial;

/* ---- keys ------------------------------------------------------------------------------------ */

static void put_numbers(FILE *to, const char *name, int count, const int64_t *number)
{
    fprintf(to, " %s", name);
    for (int i = 0; i < count; i++)
        fprintf(to, " %lld", (long long)number[i]);
}

static void put_places(FILE *to, const char *name, const int number[3])
{
    put_numbers(to, name, 3, (const int64_t[]){ number[0], number[1], number[2] });
}

/* All that an engine's time may depend on, but for card and library. y follows from the rest. */
static bool write_key(const dnn_convolution *c, char *key, size_t size)
{
    static const char *const kinds[PONS_KERNEL_KIND_COUNT] = {
        [PONS_KERNEL_CONVOLUTION] = "convolution",
        [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = "input gradient",
        [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = "weight gradient",
    };
    const pons_convolution *v = c->request->attributes;
    const char *type = c->x.type == PONS_F16 ? "fp16" : c->x.type == PONS_BF16 ? "bf16"
                     : c->request->tf32 ? "tf32" : "fp32";
    FILE *to = fmemopen(key, size - 1, "w");

    key[size - 1] = '\0';
    if (to == NULL)
        return false;
    fprintf(to, "%s %s", kinds[c->request->kind], type);
    put_numbers(to, "x", 5, c->x.shape.extent);
    put_numbers(to, "w", 5, c->w.shape.extent);
    put_places(to, "stride", v->stride);
    put_places(to, "dilation", v->dilation);
    put_places(to, "low", v->pad_low);
    put_places(to, "high", v->pad_high);
    fprintf(to, " groups %d", v->groups);
    return fclose(to) == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *take_memory(trial *t, size_t size)
{
    pons_error unread = PONS_ERROR_INIT;

    return cuda_allocate(t->device, size, &unread);
}

static bool take_operands(trial *t)
{
    const pons_tensor *tensor[3] = { &t->convolution->x, &t->convolution->w, &t->convolution->y };
    const cuda_driver *driver = &t->device->driver;

    for (int i = 0; i < 3; i++) {
        t->operand_size[i] = (size_t)source_count(tensor[i]->shape)
                           * (tensor[i]->type == PONS_F32 ? 4 : 2);
        t->operand[i] = take_memory(t, t->operand_size[i]);
        if (t->operand[i] == NULL
            || driver->clear((cuda_address)(uintptr_t)t->operand[i], FILLING, t->operand_size[i])
               != 0)
            return false;
    }
    return driver->stream_wait(NULL) == 0;
}

/* For the one that wants most, of those for which there is room; the others do not run. */
static void take_workspace(trial *t)
{
    for (;;) {
        size_t most = 0;

        for (int i = 0; i < t->all->count; i++)
            if (!isnan(t->seconds[i]) && t->all->item[i].workspace > most)
                most = t->all->item[i].workspace;
        t->workspace_size = most;
        t->workspace = most > 0 ? take_memory(t, most) : NULL;
        if (most == 0 || t->workspace != NULL)
            return;
        for (int i = 0; i < t->all->count; i++)
            if (t->all->item[i].workspace == most)
                t->seconds[i] = NAN;
    }
}

static void release(trial *t)
{
    dnn_list_free(&t->described);
    for (int i = 0; i < 3; i++)
        cuda_release(t->device, t->operand[i], t->operand_size[i]);
    cuda_release(t->device, t->workspace, t->workspace_size);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Runs of one candidate; what the library refuses makes it one that does not run. */
static pons_status time_one(trial *t, int i, int runs, double *seconds, pons_error *err)
{
    const cuda_dnn *dnn = &t->device->dnn;
    int refused = 0;

    if (cuda_time(t->device, err) != PONS_OK)
        return err->status;
    for (int k = 0; k < runs && refused == 0; k++)
        refused = dnn->execute(dnn->handle, t->all->item[i].plan, t->pack);
    if (cuda_timed(t->device, seconds, err) != PONS_OK)
        return err->status;
    *seconds = refused != 0 ? NAN : *seconds / runs;
    return PONS_OK;
}

static double least_of(const trial *t)
{
    double least = INFINITY;

    for (int i = 0; i < t->all->count; i++)
        least = fmin(least, t->seconds[i]);
    return least;
}

/* One run of each to load it, then all rounds. */
static pons_status time_all(trial *t, pons_error *err)
{
    for (int round = -1; round < ROUNDS; round++) {
        double bound = round > 0 ? hopeless * least_of(t) : INFINITY;
        for (int i = 0; i < t->all->count; i++) {
            double seconds;
            if (!(t->seconds[i] <= bound))
                continue;
            if (time_one(t, i, round < 0 ? 1 : RUNS, &seconds, err) != PONS_OK)
                return err->status;
            t->seconds[i] = round < 0 && !isnan(seconds) ? INFINITY
                          : isnan(seconds) || seconds < t->seconds[i] ? seconds : t->seconds[i];
        }
    }
    return PONS_OK;
}

static pons_status explain_failure(const trial *t, const pons_error *cause, pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "cannot time the engines for '%s': %s\nhint: [device] "
                     "autotune = no", t->convolution->request->name, cause->text);
}

/* The fastest; -1: none runs. */
static pons_status find_fastest(trial *t, int *best, pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT;

    *best = -1;
    t->described = (dnn_list){ .dnn = &t->device->dnn };
    if (take_operands(t)) {
        take_workspace(t);
        t->pack = dnn_pack(&t->described, t->operand, t->workspace);
        if (t->described.status == 0)
            time_all(t, &cause);
        for (int i = 0; i < t->all->count && t->described.status == 0; i++)
            if (t->seconds[i] < INFINITY
                && (*best < 0 || t->seconds[i] < t->seconds[*best]))
                *best = i;
    }
    release(t);
    return cause.status != PONS_OK ? explain_failure(t, &cause, err) : PONS_OK;
}

/* ---- choose ---------------------------------------------------------------------------------- */

/* Time those that fit, and keep the fastest; the library's first where none of them runs. */
static pons_status choose(cuda_device *d, const dnn_convolution *c, const dnn_wishes *w,
                          const char *key, dnn_plan *out, pons_error *err)
{
    const pons_tuning *tuning = d->tuning;
    dnn_candidates all;
    trial t = { .device = d, .convolution = c, .all = &all };
    pons_status status = dnn_candidates_make(&d->dnn, c, w, DNN_CANDIDATES, &all, err);
    int best = 0;

    for (int i = 0; i < all.count; i++)
        t.seconds[i] = INFINITY;
    if (status == PONS_OK && all.count > 1)
        status = find_fastest(&t, &best, err);
    if (status == PONS_OK && all.count > 0)
        status = tuning->keep(tuning->context, key, best >= 0 ? all.item[best].name : "",
                              best >= 0 && all.count > 1 ? t.seconds[best] : NAN, err);
    dnn_candidates_take(&all, status != PONS_OK ? -1 : best >= 0 ? best : 0, out);
    return status;
}

pons_status cuda_choose_plan(cuda_device *d, const dnn_convolution *c, const dnn_wishes *wishes,
                             dnn_plan *out, pons_error *err)
{
    const pons_tuning *tuning = d->tuning;
    dnn_wishes chosen = *wishes;
    char key[PONS_CHOICE_SIZE];

    if (tuning == NULL || !write_key(c, key, sizeof key))
        return dnn_plan_make(&d->dnn, c, wishes, out, err);
    chosen.name = tuning->find(tuning->context, key);
    if (chosen.name != NULL && chosen.name[0] != '\0') {
        if (dnn_plan_make(&d->dnn, c, &chosen, out, err) != PONS_OK || out->plan != NULL)
            return err->status;
        dnn_plan_free(out);
    }
    if (tuning->keep != NULL && (chosen.name == NULL || chosen.name[0] != '\0'))
        return choose(d, c, wishes, key, out, err);
    return dnn_plan_make(&d->dnn, c, wishes, out, err);
}
