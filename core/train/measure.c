/*
 * measure.c - a training program run over and over, on noise or on the file's own patches; or the
 * program behind the sliding window, on noise.
 */
#include <config.h>

#include "train/measure.h"

#include "base/random.h"
#include "data/loader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct bench {
    const experiment *experiment;
    const measure_settings *settings;
    storage *storage;
    program *program;
    cache *cache;
    loader *loader;
    kernel_watch *watch;
    double section[4][MEASURE_STEPS_MAX];
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

/* One step; its seconds, and per section into b->section[...][at]. */
static pons_status step(bench *b, uint64_t number, int at, double *seconds, pons_error *err)
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
    b->section[0][at] = micro - begin;
    b->section[1][at] = finish - micro;
    b->section[2][at] = result.reduce_seconds;
    b->section[3][at] = result.update_seconds;
    return PONS_OK;
}

/* One batch of windows, as the sliding window has it predicted. */
static pons_status forward(bench *b, int at, double *seconds, pons_error *err)
{
    double begin = seconds_now();
    pons_status status = program_evaluate(b->program, err);

    *seconds = seconds_now() - begin;
    b->section[1][at] = *seconds;
    return status;
}

static pons_status run_steps(bench *b, int warm_up, double *seconds, pons_error *err)
{
    for (int i = 0; i < warm_up + b->settings->steps; i++) {
        int at = i < warm_up ? 0 : i - warm_up;
        if (b->watch != NULL)
            kernel_watch_step(b->watch, at);
        if ((b->settings->forward ? forward(b, at, &seconds[at], err)
                                  : step(b, (uint64_t)i, at, &seconds[at], err)) != PONS_OK)
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

static pons_status build(bench *b, pons_error *err)
{
    const experiment *e = b->experiment;

    if (storage_new(&e->device, &b->storage, err) != PONS_OK)
        return err->status;
    if (b->settings->forward)
        network_build_evaluation(e, b->storage, &b->program, err);
    else
        network_build_training(e, b->storage, &b->program, err);
    if (err->status != PONS_OK)
        return err->status;
    return storage_initialise(b->storage, (uint64_t)e->sections.experiment.seed, err);
}

static pons_status measure_kernels(bench *b, measured *out, pons_error *err)
{
    const device *d = &b->experiment->device;
    double ignored[MEASURE_STEPS_MAX];
    pons_error unread = PONS_ERROR_INIT;

    if (d->operations->limits != NULL
        && d->operations->limits(d->handle, &out->limits, err) != PONS_OK)
        return err->status;
    if (kernel_watch_open(b->program, b->settings->steps, &b->watch, err) != PONS_OK)
        return err->status;
    run_steps(b, 0, ignored, err);
    kernel_watch_close(b->watch, out, err->status == PONS_OK ? err : &unread);
    b->watch = NULL;
    return err->status;
}

static pons_status measure(bench *b, measured *out, pons_error *err)
{
    const measure_settings *s = b->settings;
    double with_data[MEASURE_STEPS_MAX];
    struct rusage usage;

    if (build(b, err) != PONS_OK || (!s->reference && refuse_reference(b->program, err) != PONS_OK))
        return err->status;
    fill_noise(b);
    if (run_steps(b, s->warm_up, out->step, err) != PONS_OK)
        return err->status;
    out->count = s->steps;
    for (int i = 0; i < 4; i++)
        out->section[i] = measure_median(s->steps, b->section[i]);
    getrusage(RUSAGE_SELF, &usage);
    out->peak = (uint64_t)usage.ru_maxrss * 1024;
    if (s->kernels && measure_kernels(b, out, err) != PONS_OK)
        return err->status;
    if (!s->data || s->forward)
        return PONS_OK;
    if (open_data(b, err) != PONS_OK || run_steps(b, s->warm_up, with_data, err) != PONS_OK)
        return err->status;
    out->with_data = measure_median(s->steps, with_data);
    return PONS_OK;
}

pons_status measure_steps(const experiment *e, const measure_settings *settings, measured *out,
                          pons_error *err)
{
    bench b = { .experiment = e, .settings = settings };

    *out = (measured){ .with_data = NAN };
    measure(&b, out, err);
    if (b.loader != NULL)
        loader_close(b.loader);
    if (b.cache != NULL)
        cache_close(b.cache);
    program_free(b.program);
    if (b.storage != NULL)
        storage_free(b.storage);
    return err->status;
}
