/*
 * plugin_check_device.c - compare a device with the reference kernels.
 *
 * Each kind of request has a small training step, forward and backward, in fp32 and, for products,
 * in bf16. Requests that the device declines run on the reference kernels, and are counted.
 */
#include "cli/plugin/plugin_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "graph/program/memory.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"

/*
 * Tolerances relative to the largest element. In fp32 sums may have another order, and in bf16
 * products are rounded.
 */
static const double agreement = 1e-4, half_agreement = 3e-2;

static const pons_shape shapes[] = { { 5, { 2, 5, 4, 6, 3 } }, { 5, { 1, 4, 5, 4, 16 } } };

/* ---- one step -------------------------------------------------------------------------------- */

/* The result of a step: the output, then every parameter and state. */
typedef struct outcome {
    int64_t count;
    double *number;            /* malloc'ed                                                       */
    int kernels, own;          /* number of all kernels, and of the device's own                  */
} outcome;

typedef struct device_trial {
    const device_request *what;
    pons_shape shape;
    precision precision;
    pons_error *err;
} device_trial;

static bool append(outcome *o, const float *from, int64_t count)
{
    double *more = realloc(o->number, (size_t)(o->count + count) * sizeof *more);

    if (more == NULL)
        return false;
    for (int64_t i = 0; i < count; i++)
        more[o->count + i] = from[i];
    o->number = more;
    o->count += count;
    return true;
}

static pons_status take_outcome(const device_trial *t, const storage *s, program *p, outcome *out)
{
    pons_tensor tensor;
    const void *y = program_output(p, 0, &tensor);
    bool taken = y != NULL && append(out, y, shape_count(tensor.shape));
    program_facts facts;

    for (storage_group group = STORAGE_PARAMETER; group <= STORAGE_STATE; group++)
        for (int i = 0; i < storage_count(s, group) && taken; i++) {
            storage_tensor one = storage_item(s, group, i);
            taken = append(out, one.memory, shape_count(one.shape));
        }
    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++)
        out->own += strcmp(program_kernel(p, i).implementation, "reference") != 0;
    out->kernels += facts.kernel_count;
    return taken ? PONS_OK
         : pons_fail(t->err, PONS_DEVICE, y == NULL ? "cannot read the output from the device"
                                                    : "out of memory");
}

static pons_status take_step(const device_trial *t, const storage *s, program *p, outcome *out)
{
    step_result result;

    if (program_step_begin(p, 0, t->err) == PONS_OK && program_micro(p, 0, t->err) == PONS_OK
        && program_step_finish(p, 1, &result, t->err) == PONS_OK)
        take_outcome(t, s, p, out);
    return t->err->status;
}

/* The sum of the output with a different weight for each element. */
static pons_node *weighted_sum(pons_graph *g, pons_node *y)
{
    int64_t count = shape_count(pons_shape_of(y));
    pons_shape row = pons_shape_make(1, &count);
    pons_node *share = pons_sin(g, pons_scale(g, pons_iota(g, 1, 0, count), 1.7));

    return pons_sum_all(g, pons_mul(g, pons_reshape(g, y, row), share));
}

/* A compiled step. */
typedef struct made {
    storage *storage;
    program *program;
} made;

static void made_free(made *m)
{
    program_free(m->program);
    storage_free(m->storage);
    *m = (made){ .storage = NULL };
}

static pons_status make_case(const device_trial *t, const device *d, made *m)
{
    program_settings settings = { .precision = t->precision, .micro_batches = 1, .accumulate = 1,
                                  .optimizer = &plugin_check_descent, .seed = 1 };
    pons_graph *g = graph_new(true);

    if (g == NULL)
        return pons_fail(t->err, PONS_DEVICE, "out of memory");
    g->scope = SCOPE_MODEL;
    pons_node *x = pons_parameter_leaf(g, "x", PONS_ROLE_WEIGHT, t->shape,
                                       (pons_init){ PONS_INIT_NORMAL, 1 });
    pons_node *y = t->what->build(g, x, t->what->which);
    g->scope = SCOPE_CORE;
    pons_node *loss = weighted_sum(g, y);
    if (pons_graph_status(g, t->err) != PONS_OK || storage_new(d, &m->storage, t->err) != PONS_OK) {
        graph_free(g);
        return t->err->status;
    }
    if (program_new(m->storage, d, g, loss, 1, &y, &settings, &m->program, t->err) == PONS_OK)
        storage_initialise(m->storage, 1, t->err);
    return t->err->status;
}

static pons_status run_case(const device_trial *t, const device *d, outcome *out)
{
    made m = { .storage = NULL };

    if (make_case(t, d, &m) == PONS_OK)
        take_step(t, m.storage, m.program, out);
    made_free(&m);
    return t->err->status;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static pons_status compare(const device_trial *t, const outcome *expected, const outcome *found,
                           const outcome *again)
{
    const double share = t->precision == PRECISION_FP32 ? agreement : half_agreement;
    double most = 0;

    if (expected->count != found->count || found->count != again->count)
        return pons_fail(t->err, PONS_PLUGIN, "it makes %lld numbers, the reference %lld",
                         (long long)found->count, (long long)expected->count);
    for (int64_t i = 0; i < expected->count; i++)
        most = fmax(most, fabs(expected->number[i]));
    for (int64_t i = 0; i < expected->count; i++) {
        if (!(fabs(found->number[i] - expected->number[i]) <= share * most))
            return pons_fail(t->err, PONS_PLUGIN, "element %lld is %.9g, by the reference kernels "
                             "%.9g", (long long)i, found->number[i], expected->number[i]);
        if (found->number[i] != again->number[i])
            return pons_fail(t->err, PONS_PLUGIN, "element %lld is %.9g and then %.9g",
                             (long long)i, found->number[i], again->number[i]);
    }
    return PONS_OK;
}

static pons_status check_case(const device_trial *t, const device *d, const made *first,
                              outcome *total)
{
    outcome expected = { .number = NULL }, found = expected, again = expected;
    device reference;

    device_reference(&reference, false);
    if (run_case(t, &reference, &expected) == PONS_OK
        && take_step(t, first->storage, first->program, &found) == PONS_OK
        && run_case(t, d, &again) == PONS_OK)
        compare(t, &expected, &found, &again);
    free(expected.number);
    free(found.number);
    free(again.number);
    total->kernels += found.kernels;
    total->own += found.own;
    return t->err->status;
}

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Find trial 'number'. Returns false if it is in bf16 and its request is checked in fp32 alone. */
static bool find_trial(int number, device_trial *t, pons_error *cause)
{
    const device_request *r = &device_requests[number / 2 / SHAPES];
    bool half = number % 2 != 0;

    *cause = (pons_error)PONS_ERROR_INIT;
    *t = (device_trial){ r, shapes[number / 2 % SHAPES], half ? PRECISION_BF16 : PRECISION_FP32,
                         cause };
    return !half || r->half;
}

static int count_trials(void)
{
    int count = 0;

    while (device_requests[count].name != NULL)
        count++;
    return count * SHAPES * 2;
}

static pons_status blame(const device_trial *t, pons_error *err)
{
    return pons_fail(err, t->err->status, "%s of [%lld, %lld, %lld, %lld, %lld] in %s: %s",
                     t->what->name, (long long)t->shape.extent[0], (long long)t->shape.extent[1],
                     (long long)t->shape.extent[2], (long long)t->shape.extent[3],
                     (long long)t->shape.extent[4],
                     t->precision == PRECISION_BF16 ? "bf16" : "fp32", t->err->text);
}

/* Make all steps before one runs, so that a device compiles its kernels once. */
static pons_status check_requests(const device *d, outcome *total, pons_error *err)
{
    int trials = count_trials();
    made *list = calloc((size_t)trials, sizeof *list);
    pons_error cause;
    device_trial t;

    if (list == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < trials && err->status == PONS_OK; i++)
        if (find_trial(i, &t, &cause) && make_case(&t, d, &list[i]) != PONS_OK)
            blame(&t, err);
    for (int i = 0; i < trials && err->status == PONS_OK; i++)
        if (find_trial(i, &t, &cause) && check_case(&t, d, &list[i], total) != PONS_OK)
            blame(&t, err);
    for (int i = 0; i < trials; i++)
        made_free(&list[i]);
    free(list);
    return err->status;
}

/* ---- the device itself ----------------------------------------------------------------------- */

static pons_status check_memory(const device *d, pons_error *err)
{
    enum { SIZE = 3 * 4096 };
    unsigned char *memory = d->operations->memory.allocate(d->handle, SIZE, err);

    if (memory == NULL)
        return err->status != PONS_OK ? err->status
               : pons_fail(err, PONS_PLUGIN, "'allocate' fails and does not say why");
    if ((uintptr_t)memory % MEMORY_ALIGNMENT != 0)
        pons_fail(err, PONS_PLUGIN, "'allocate' gives %p, expected a multiple of %d",
                  (void *)memory, MEMORY_ALIGNMENT);
    for (int i = 0; i < SIZE && d->facts.host_memory && err->status == PONS_OK; i++)
        if (memory[i] != 0)
            pons_fail(err, PONS_PLUGIN, "'allocate' gives memory that is not zeroed");
    d->operations->memory.release(d->handle, memory, SIZE);
    return err->status;
}

pons_status plugin_check_device(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_device_settings settings = { .index = 0, .count = 1, .deterministic = true };
    device d;
    outcome total = { .count = 0 };

    if (device_open_plugin(p, &settings, &d, err) != PONS_OK)
        return err->status;
    if (d.facts.name[0] == '\0' || d.facts.threads < 1)
        pons_fail(err, PONS_PLUGIN, "its facts are the name '%s' and %d threads, expected a name "
                  "and at least 1", d.facts.name, d.facts.threads);
    else if (device_attach(&d, err) == PONS_OK && check_memory(&d, err) == PONS_OK)
        check_requests(&d, &total, err);
    if (err->status == PONS_OK)
        printf("device %s: %s; %d of %d kernels are its own\n", p->descriptor->name, d.facts.name,
               total.own, total.kernels);
    device_close(&d);
    return err->status;
}
