/*
 * measure.c - a training program run over and over, on noise or on the file's own patches.
 */
#include <config.h>

#include "train/measure.h"

#include "base/random.h"
#include "data/loader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct bench {
    const experiment *experiment;
    storage *storage;
    program *program;
    cache *cache;
    loader *loader;
    double section[4];
} bench;

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double measure_median(int count, const double *value)
{
    double sorted[MEASURE_STEPS_MAX];

    if (count == 0)
        return NAN;
    memcpy(sorted, value, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_numbers);
    return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

static pons_status refuse_reference(const program *p, pons_error *err)
{
    program_facts facts;

    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++) {
        kernel_facts k = program_kernel(p, i);
        if (k.implementation != NULL && strcmp(k.implementation, "reference") == 0)
            return pons_fail(err, PONS_DEVICE, "kernel '%s' of '%s' is the plain reference; its "
                             "time means nothing\nhint: --reference measures all the same", k.kind,
                             k.name);
    }
    return PONS_OK;
}

/* Noise for an image, any classes for a target. */
static void fill_noise(bench *b)
{
    pons_tensor tensor;
    float *image = program_input(b->program, "image", &tensor);
    int64_t count = image != NULL ? shape_count(tensor.shape) : 0;
    uint32_t u[4];

    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_voxels(1, (uint64_t)i / 4, u);
        image[i] = 2 * random_uniform(u[i % 4]) - 1;
    }
    uint8_t *target = program_input(b->program, "target", &tensor);
    int values = b->experiment->regions ? 2 : b->experiment->class_count;
    count = target != NULL ? shape_count(tensor.shape) : 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_voxels(2, (uint64_t)i / 4, u);
        target[i] = (uint8_t)(u[i % 4] % (uint32_t)values);
    }
}

static pons_status feed(bench *b, pons_error *err)
{
    const loader_batch *batch = NULL;
    pons_tensor tensor;

    if (loader_next(b->loader, &batch, err) != PONS_OK)
        return err->status;
    void *image = program_input(b->program, "image", &tensor);
    memcpy(image, batch->image, (size_t)shape_count(tensor.shape) * sizeof(float));
    void *target = program_input(b->program, "target", &tensor);
    memcpy(target, batch->label, (size_t)shape_count(tensor.shape));
    return PONS_OK;
}

/* One step; its seconds, and per section into b->section. */
static pons_status step(bench *b, uint64_t number, double *seconds, pons_error *err)
{
    step_result result;
    double begin = seconds_now(), micro, finish;

    if (program_step_begin(b->program, number, err) != PONS_OK)
        return err->status;
    micro = seconds_now();
    for (int m = 0; m < b->experiment->micro_batches; m++) {
        if ((b->loader != NULL && feed(b, err) != PONS_OK)
            || program_micro(b->program, (uint64_t)m, err) != PONS_OK)
            return err->status;
    }
    finish = seconds_now();
    if (program_step_finish(b->program, b->experiment->sections.optimizer.lr, &result, err)
        != PONS_OK)
        return err->status;
    *seconds = seconds_now() - begin;
    b->section[0] += micro - begin;
    b->section[1] += finish - micro;
    b->section[2] += result.reduce_seconds;
    b->section[3] += result.update_seconds;
    return PONS_OK;
}

static pons_status run_steps(bench *b, int warm_up, int steps, double *seconds, pons_error *err)
{
    for (int i = 0; i < warm_up + steps; i++) {
        if (i == warm_up)
            memset(b->section, 0, sizeof b->section);
        if (step(b, (uint64_t)i, &seconds[i < warm_up ? 0 : i - warm_up], err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status open_data(bench *b, pons_error *err)
{
    const experiment *e = b->experiment;
    cache_settings held;
    loader_settings settings;

    cache_settings_fill(&e->sections, &held);
    loader_settings_fill(&e->sections, &settings);
    settings.micro_batches = settings.count = e->micro_batches;
    memcpy(settings.extent, e->patch, sizeof settings.extent);
    if (cache_open(e->data, e->preprocess, e->data->training_count, e->data->training, &held,
                   e->log, &b->cache, err) != PONS_OK)
        return err->status;
    return loader_open(b->cache, e->data->training_count, e->data->training,
                       e->augment != NULL && e->augment->count > 0 ? e->augment : NULL, &settings,
                       &b->loader, err);
}

static pons_status measure(bench *b, int warm_up, int steps, bool reference, bool data,
                           measured *out, pons_error *err)
{
    const experiment *e = b->experiment;
    double with_data[MEASURE_STEPS_MAX];

    if (storage_new(&e->device, &b->storage, err) != PONS_OK
        || network_build_training(e, b->storage, &b->program, err) != PONS_OK
        || storage_initialise(b->storage, (uint64_t)e->sections.experiment.seed, err) != PONS_OK
        || (!reference && refuse_reference(b->program, err) != PONS_OK))
        return err->status;
    fill_noise(b);
    if (run_steps(b, warm_up, steps, out->step, err) != PONS_OK)
        return err->status;
    out->count = steps;
    for (int i = 0; i < 4; i++)
        out->section[i] = b->section[i] / steps;
    if (!data)
        return PONS_OK;
    if (open_data(b, err) != PONS_OK || run_steps(b, warm_up, steps, with_data, err) != PONS_OK)
        return err->status;
    out->with_data = measure_median(steps, with_data);
    return PONS_OK;
}

pons_status measure_steps(const experiment *e, int warm_up, int steps, bool reference, bool data,
                          measured *out, pons_error *err)
{
    bench b = { .experiment = e };

    *out = (measured){ .with_data = NAN };
    measure(&b, warm_up, steps, reference, data, out, err);
    if (b.loader != NULL)
        loader_close(b.loader);
    if (b.cache != NULL)
        cache_close(b.cache);
    program_free(b.program);
    if (b.storage != NULL)
        storage_free(b.storage);
    return err->status;
}
