/*
 * measure_kernels.c - the seconds of each kernel of a program, as program_watch reports them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "bench/measure.h"
#include "graph/program/explain.h"

struct kernel_watch {
    program *program;
    int kernel_count, step_count, step;
    double *seconds, *host; /* [kernel][step] on the device; on the host                          */
    int64_t *calls;        /* [kernel] over all steps                                             */
};

static void after_kernel(void *context, int kernel, double seconds, double host_seconds)
{
    kernel_watch *w = context;
    size_t at = (size_t)kernel * (size_t)w->step_count + (size_t)w->step;

    w->seconds[at] += seconds;
    w->host[at] += host_seconds;
    w->calls[kernel]++;
}

static void watch_free(kernel_watch *w)
{
    if (w == NULL)
        return;
    program_watch(w->program, NULL, NULL);
    free(w->seconds);
    free(w->host);
    free(w->calls);
    free(w);
}

pons_status kernel_watch_open(program *p, int steps, kernel_watch **out, pons_error *err)
{
    kernel_watch *w = calloc(1, sizeof *w);
    program_facts facts;

    program_describe(p, &facts);
    if (w != NULL) {
        *w = (kernel_watch){ .program = p, .kernel_count = facts.kernel_count,
                             .step_count = steps };
        w->seconds = calloc((size_t)facts.kernel_count * (size_t)steps + 1, sizeof *w->seconds);
        w->host = calloc((size_t)facts.kernel_count * (size_t)steps + 1, sizeof *w->host);
        w->calls = calloc((size_t)facts.kernel_count + 1, sizeof *w->calls);
    }
    if (w == NULL || w->seconds == NULL || w->host == NULL || w->calls == NULL) {
        watch_free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory for the times of %d kernels",
                         facts.kernel_count);
    }
    program_watch(p, after_kernel, w);
    *out = w;
    return PONS_OK;
}

void kernel_watch_step(kernel_watch *w, int step)
{
    w->step = step;
}

static int longest_first(const void *a, const void *b)
{
    const measured_kernel *x = a, *y = b;

    return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds)
                                    : strcmp(x->name, y->name);
}

static double seconds_between(const kernel_watch *w, const double *step)
{
    double rest[MEASURE_STEPS_MAX];

    for (int s = 0; s < w->step_count; s++) {
        rest[s] = step[s];
        for (int i = 0; i < w->kernel_count; i++)
            rest[s] -= w->seconds[(size_t)i * (size_t)w->step_count + (size_t)s];
    }
    return measure_median(w->step_count, rest);
}

pons_status kernel_watch_close(kernel_watch *w, const double *step, measured *out, pons_error *err)
{
    bool lost = false;

    out->between = seconds_between(w, step);
    out->kernel = calloc((size_t)w->kernel_count + 1, sizeof *out->kernel);
    for (int i = 0; out->kernel != NULL && i < w->kernel_count; i++) {
        measured_kernel *k = out->kernel + out->kernel_count;
        char name[512];
        if (w->calls[i] == 0)
            continue;
        program_kernel_name(w->program, i, name, sizeof name);
        *k = (measured_kernel){ .facts = program_kernel(w->program, i), .name = strdup(name),
            .calls = ceil_div_i64(w->calls[i], w->step_count),
            .seconds = measure_median(w->step_count,
                                      w->seconds + (size_t)i * (size_t)w->step_count),
            .host_seconds = measure_median(w->step_count,
                                           w->host + (size_t)i * (size_t)w->step_count) };
        lost |= k->name == NULL;
        k->facts.name = k->name;
        out->kernel_count++;
    }
    if (out->kernel == NULL || lost)
        pons_fail(err, PONS_DEVICE, "out of memory for the times of %d kernels", w->kernel_count);
    else
        qsort(out->kernel, (size_t)out->kernel_count, sizeof *out->kernel, longest_first);
    watch_free(w);
    return err->status;
}

void measured_clear(measured *m)
{
    for (int i = 0; i < m->kernel_count; i++)
        free(m->kernel[i].name);
    free(m->kernel);
    m->kernel = NULL;
    m->kernel_count = 0;
    free(m->sums.step.sum);
    m->sums.step = (comm_trace_step){ .count = 0 };
}
