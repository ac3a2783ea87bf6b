/*
 * measure.c - run the training program repeatedly, on noise or on the file's patches, or the
 * evaluation program of sliding windows on noise.
 */
#include "bench/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number_order.h"
#include "base/random.h"
#include "base/system/memory_limit.h"
#include "bench/training_cases.h"
#include "cluster/watchdog/watchdog.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "replica/input_copy.h"
#include "replica/replicas.h"

typedef struct bench {
    experiment *experiment;
    const measure_settings *settings;
    replicas replicas;
    program *program;          /* of the first replica                                            */
    cache *cache;
    kernel_watch *watch;
    struct watchdog *alone;    /* watchdog of a single process; a group has its own               */
    uint64_t number;           /* number of the step                                              */
    int at;                    /* index of the step in 'section'                                  */
    double section[4][MEASURE_STEPS_MAX];
    double processor[MEASURE_STEPS_MAX]; /* seconds of all threads                                */
} bench;

static program *program_of(const bench *b, const replica *r)
{
    return b->settings->forward ? r->evaluation : r->training;
}

double measure_median(int count, const double *value)
{
    double sorted[MEASURE_STEPS_MAX];

    if (count == 0)
        return NAN;
    memcpy(sorted, value, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, order_doubles);
    return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

static pons_status refuse_reference(const program *p, pons_error *err)
{
    program_facts facts;

    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++) {
        kernel_facts k = program_kernel(p, i);
        if (k.implementation != NULL && strcmp(k.implementation, "reference") == 0)
            return pons_fail(err, PONS_DEVICE, "kernel '%s' of '%s' is a reference kernel, whose "
                             "time is not the device's\nhint: --reference measures it too", k.kind,
                             k.name);
    }
    return PONS_OK;
}

/* Fill the image with noise and the target with random classes. */
static pons_status fill_noise(void *context, replica *r, pons_error *err)
{
    const bench *b = context;
    program *p = program_of(b, r);
    pons_tensor tensor;
    float *image = program_input(p, "image", &tensor);
    int64_t count = image != NULL ? shape_count(tensor.shape) : 0;
    uint32_t u[4];

    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_voxels(1, (uint64_t)i / 4, u);
        image[i] = 2 * random_uniform(u[i % 4]) - 1;
    }
    uint8_t *target = program_input(p, "target", &tensor);
    int values = b->experiment->regions ? 2 : b->experiment->class_count;
    count = target != NULL ? shape_count(tensor.shape) : 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_voxels(2, (uint64_t)i / 4, u);
        target[i] = (uint8_t)(u[i % 4] % (uint32_t)values);
    }
    return PONS_OK;
}

/* Run a step of a replica; the first replica's seconds per section go to b->section[...][at]. */
static pons_status run_step(void *context, replica *r, pons_error *err)
{
    bench *b = context;
    int first = r->number * b->experiment->accumulate;
    double begin = seconds_now(), micro, finish;
    const loader_batch *batch;
    step_result result;

    if (r->trace != NULL)
        comm_trace_begin(r->trace, b->at);
    if (program_step_begin(r->training, b->number, err) != PONS_OK)
        return err->status;
    micro = seconds_now();
    for (int m = 0; m < b->experiment->accumulate; m++) {
        if ((r->loader != NULL && input_copy_next(r, b->experiment, &batch, err) != PONS_OK)
            || program_micro(r->training, (uint64_t)(first + m), err) != PONS_OK)
            return err->status;
    }
    finish = seconds_now();
    if (r->trace != NULL)
        comm_trace_backward_done(r->trace);
    if (program_step_end(r->training, b->experiment->sections.optimizer.lr, err) != PONS_OK
        || input_copy_ahead(r, b->experiment, (int64_t)b->number + 1, err) != PONS_OK
        || program_step_result(r->training, &result, err) != PONS_OK)
        return err->status;
    if (r->trace != NULL)
        comm_trace_end(r->trace);
    if (r->index > 0)
        return PONS_OK;
    b->section[0][b->at] = micro - begin;
    b->section[1][b->at] = finish - micro;
    b->section[2][b->at] = result.reduce_seconds;
    b->section[3][b->at] = result.update_seconds;
    return PONS_OK;
}

/* Evaluate a batch of windows as sliding-window prediction does. */
static pons_status run_evaluation(void *context, replica *r, pons_error *err)
{
    bench *b = context;
    double begin = seconds_now();
    pons_status status = program_evaluate(r->evaluation, err);

    if (r->index == 0)
        b->section[1][b->at] = seconds_now() - begin;
    return status;
}

/* Tell the watchdog that no step is running, which suspends its timeout. */
static void note_start(const bench *b)
{
    if (b->alone != NULL)
        watchdog_note(b->alone, -1, "start");
}

static void note_step(const bench *b)
{
    if (b->alone != NULL)
        watchdog_note(b->alone, (int64_t)b->number, "step");
}

static pons_status run_steps(bench *b, int warm_up, double *seconds, pons_error *err)
{
    for (int i = 0; i < warm_up + b->settings->steps; i++) {
        double begin = seconds_now(), processor = seconds_of_process();

        b->number = (uint64_t)i;
        b->at = i < warm_up ? 0 : i - warm_up;
        if (b->watch != NULL)
            kernel_watch_step(b->watch, b->at);
        note_step(b);
        if (replicas_run(&b->replicas, b->settings->forward ? run_evaluation : run_step, b, err)
            != PONS_OK)
            return err->status;
        seconds[b->at] = seconds_now() - begin;
        b->processor[b->at] = seconds_of_process() - processor;
    }
    note_start(b);
    return PONS_OK;
}

static unsigned programs_of(const bench *b, bool given)
{
    unsigned programs = b->settings->forward ? REPLICAS_EVALUATION : REPLICAS_TRAINING;

    programs |= given ? REPLICAS_GIVEN : 0;
    if (!b->settings->forward && (b->settings->trace || b->experiment->replicas > 1))
        programs |= REPLICAS_TRACED;
    return programs;
}

/* 'given': inputs are written by this file, also if the device would extract patches. */
static pons_status build_programs(bench *b, bool given, pons_error *err)
{
    if (replicas_open(b->experiment, programs_of(b, given), &b->replicas, err) != PONS_OK)
        return err->status;
    b->program = program_of(b, b->replicas.item);
    return PONS_OK;
}

static pons_status open_data(bench *b, pons_error *err)
{
    if (experiment_device_extracts(b->experiment)) {
        replicas_close(&b->replicas);
        if (build_programs(b, false, err) != PONS_OK)
            return err->status;
    }
    if (training_cases_open(b->experiment, programs_of(b, false), &b->replicas, &b->cache, err)
        == PONS_OK)
        b->program = program_of(b, b->replicas.item);
    return err->status;
}

/* True for a device with a stream, where calls return before their work is done. */
static bool has_stream(const bench *b)
{
    return !b->experiment->device.facts.host_memory;
}

static void sum_sections(measured *m)
{
    memset(m->section, 0, sizeof m->section);
    for (int i = 0; i < m->kernel_count; i++)
        m->section[m->kernel[i].facts.section] += m->kernel[i].seconds;
}

static pons_status measure_kernels(bench *b, measured *out, pons_error *err)
{
    const device *d = &b->experiment->device;
    double seconds[MEASURE_STEPS_MAX] = { 0 };
    pons_error unread = PONS_ERROR_INIT;

    if (measure_peak(d, out, err) != PONS_OK)
        return err->status;
    if (kernel_watch_open(b->program, b->settings->steps, &b->watch, err) != PONS_OK)
        return err->status;
    run_steps(b, 0, seconds, err);
    kernel_watch_close(b->watch, seconds, out, err->status == PONS_OK ? err : &unread);
    b->watch = NULL;
    if (err->status == PONS_OK)
        measure_peak(d, out, err);
    return err->status;
}

static pons_status measure_all(bench *b, measured *out, pons_error *err)
{
    const measure_settings *s = b->settings;
    double with_data[MEASURE_STEPS_MAX];

    if (build_programs(b, true, err) != PONS_OK
        || (!s->reference && refuse_reference(b->program, err) != PONS_OK))
        return err->status;
    if (replicas_run(&b->replicas, fill_noise, b, err) != PONS_OK
        || run_steps(b, s->warm_up, out->step, err) != PONS_OK)
        return err->status;
    out->count = s->steps;
    out->processor = measure_median(s->steps, b->processor);
    for (int i = 0; i < 4; i++)
        out->section[i] = measure_median(s->steps, b->section[i]);
    out->peak = (uint64_t)memory_peak_bytes();
    if (measure_sums(b->experiment, &b->replicas, out, err) != PONS_OK)
        return err->status;
    if ((s->kernels || has_stream(b)) && measure_kernels(b, out, err) != PONS_OK)
        return err->status;
    if (has_stream(b))
        sum_sections(out);
    if (!s->data || s->forward)
        return PONS_OK;
    if (open_data(b, err) != PONS_OK || run_steps(b, s->warm_up, with_data, err) != PONS_OK)
        return err->status;
    out->with_data = measure_median(s->steps, with_data);
    return PONS_OK;
}

pons_status measure_steps(experiment *e, const measure_settings *settings, measured *out,
                          pons_error *err)
{
    const watchdog_settings alone = { .size = 1, .timeout_s = e->sections.distribute.timeout_s };
    bench b = { .experiment = e, .settings = settings };

    *out = (measured){ .with_data = NAN, .sums = { .hidden = NAN } };
    if (e->group == NULL && watchdog_open(&alone, &b.alone, err) != PONS_OK)
        return err->status;
    measure_all(&b, out, err);
    if (b.alone != NULL)
        watchdog_announce_exit_alone(b.alone, err);
    replicas_close(&b.replicas);
    if (b.cache != NULL)
        cache_close(b.cache);
    if (b.alone != NULL)
        watchdog_close(b.alone);
    return err->status;
}
