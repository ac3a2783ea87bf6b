/*
 * program_run.c - run a compiled program: begin, micro, norm, update (R1, R2, R8). A run allocates
 * no memory.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"
#include "graph/storage/profiler_range.h"
#include "graph/storage/device_stream.h"

/* Wait for the device. The first failure is reported. */
static pons_status end_run(program *p, pons_status status, pons_error *err)
{
    pons_status waited = staging_wait(&p->device, err);

    /* Kernels follow the copy of the inputs unless no micro-batch has taken it. */
    p->run.inputs_in_flight = p->run.inputs_sent_early;
    return status != PONS_OK ? status : waited;
}

/* End a part of a step: a device with memory of its own is not waited for before the step's end. */
static pons_status end_piece(program *p, pons_status status, pons_error *err)
{
    return p->device.facts.host_memory || status != PONS_OK ? end_run(p, status, err) : PONS_OK;
}

static pons_status pack_input(program *p, const program_call *reader, int input, pons_error *err)
{
    return reader->kernel.pack(&reader->kernel, input, bind_address_of(p, reader->input[input]),
                               reader->packed[input], err);
}

static pons_status run_call(program *p, const program_call *c, pons_error *err)
{
    pons_status status = PONS_OK;

    if (c->packs)
        return pack_input(p, p->calls.call + c->pack_call, c->pack_input, err);
    for (int i = 0; c->packs_first && i < PACKED_INPUTS && status == PONS_OK; i++)
        if (c->pack_block[i] >= 0)
            status = pack_input(p, c, i, err);
    return status != PONS_OK ? status : c->kernel.run(&c->kernel, &c->call, err);
}

static pons_status fill_with_nan(const program *p, char *memory, size_t size, pons_error *err)
{
    unsigned char nan[4096];

    memset(nan, 0xff, sizeof nan);
    for (size_t at = 0; at < size; at += sizeof nan)
        if (staging_write(&p->device, memory + at, nan,
                          size - at < sizeof nan ? size - at : sizeof nan, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* --debug: fill the arena's blocks whose last use is call k with NaN. */
static pons_status fill_freed(const program *p, int k, pons_error *err)
{
    pons_status status = PONS_OK;

    for (int i = 0; i < p->layout.block_count && status == PONS_OK; i++)
        if (p->layout.block[i].last == k)
            status = fill_with_nan(p, (char *)p->storage->work + p->layout.block[i].offset,
                                   p->layout.block[i].size, err);
    return status;
}

static const char *call_name(const program_call *c)
{
    const char *name = c->request->name;

    return name != NULL && name[0] ? name : kernel_kind_name(c->request->kind);
}

static pons_status run_kernel(program *p, const program_call *c, pons_error *err)
{
    pons_status status;

    range_begin(&p->device, RANGE_KERNEL, call_name(c));
    status = run_call(p, c, err);
    range_end(&p->device);
    return plugin_status(status, "the device", c->packs ? "pack" : "run", err);
}

/* Run a call alone and time it, by the device's clock if it has one. */
static pons_status run_watched(program *p, int k, pons_error *err)
{
    const pons_device_operations *o = p->device.operations;
    const program_call *c = p->calls.call + k;
    bool timed = c->fixed && o->profiling.timer_start != NULL;
    double start, host, seconds = 0;
    pons_status status = PONS_OK;

    if (timed)
        status = plugin_status(o->profiling.timer_start(p->device.handle, err), "the device",
                               "profiling.timer_start", err);
    start = seconds_now();
    if (status == PONS_OK)
        status = run_kernel(p, c, err);
    host = seconds_now() - start;
    if (status == PONS_OK && timed)
        status = plugin_status(o->profiling.timer_stop(p->device.handle, &seconds, err),
                               "the device", "profiling.timer_stop", err);
    else
        status = end_run(p, status, err);
    p->watch.after(p->watch.context, k, timed ? seconds : seconds_now() - start, host);
    return status;
}

pons_status program_run_call(program *p, int k, pons_error *err)
{
    program_call *c = p->calls.call + k;
    bool fill_nan = p->settings.fill_nan && c->section == SECTION_MICRO;
    pons_status status = c->host ? staging_wait(&p->device, err) : PONS_OK;

    if (status != PONS_OK)
        return status;
    status = p->watch.after != NULL ? run_watched(p, k, err) : run_kernel(p, c, err);
    if (fill_nan)
        status = end_run(p, status, err);
    return fill_nan && status == PONS_OK ? fill_freed(p, k, err) : status;
}

/* Copy the inputs off the host, beside kernels that still run. */
static pons_status send_inputs(program *p, pons_error *err)
{
    const device *d = &p->device;
    const staging *s = &p->layout.input_staging;

    p->run.inputs_in_flight = true;
    if (stream_wait_event(d, PONS_STREAM_COPY, EVENT_INPUTS_TAKEN, err) != PONS_OK
        || stream_copy(d, PONS_STREAM_COPY, s->device, s->host, s->size, err) != PONS_OK)
        return err->status;
    return event_record(d, PONS_STREAM_COPY, EVENT_INPUTS_SENT, err);
}

static pons_status take_inputs(program *p, pons_error *err)
{
    const device *d = &p->device;
    const staging *s = &p->layout.input_staging;

    p->run.inputs_sent_early = false;
    if (stream_wait_event(d, PONS_STREAM_KERNELS, EVENT_INPUTS_SENT, err) != PONS_OK
        || stream_copy(d, PONS_STREAM_KERNELS, p->layout.inputs, s->device, s->size, err)
           != PONS_OK)
        return err->status;
    return event_record(d, PONS_STREAM_KERNELS, EVENT_INPUTS_TAKEN, err);
}

static void set_step_key(program *p, uint64_t step, uint64_t micro_batch)
{
    pons_step_key *m = program_host_input(p, p->layout.inputs + p->layout.step_key_offset);

    *m = (pons_step_key){ p->settings.seed, step, micro_batch };
}

pons_status program_send(program *p, uint64_t step, uint64_t micro_batch, pons_error *err)
{
    if (p->device.facts.host_memory)
        return PONS_OK;
    set_step_key(p, step, micro_batch);
    p->run.inputs_sent_early = true;
    return send_inputs(p, err);
}

/* Bring the inputs and the step key to where kernels read them. */
static pons_status give_inputs(program *p, uint64_t micro_batch, pons_error *err)
{
    if (!p->run.inputs_sent_early)
        set_step_key(p, p->run.step, micro_batch);
    if (p->device.facts.host_memory)
        return bind_addresses(p, err); /* inputs may have other memory */
    if (!p->run.inputs_sent_early && send_inputs(p, err) != PONS_OK)
        return err->status;
    return take_inputs(p, err);
}

static pons_status run_begin(program *p, pons_error *err)
{
    pons_status status = captured_graphs_run(p, p->schedules.begin, err);

    if (status == PONS_OK)
        p->run.weights_version = p->storage->version;
    return status;
}

static pons_status run_evaluation(program *p, pons_error *err)
{
    pons_status status = bind_addresses(p, err);

    p->run.step = p->run.sample;
    if (status == PONS_OK && p->run.weights_version != p->storage->version)
        status = run_begin(p, err);
    if (status == PONS_OK)
        status = give_inputs(p, p->run.batch, err);
    if (status == PONS_OK)
        status = captured_graphs_run(p, p->schedules.micro[0], err);
    return status;
}

pons_status program_evaluate(program *p, pons_error *err)
{
    return end_run(p, run_evaluation(p, err), err);
}

pons_status program_evaluate_ahead(program *p, pons_error *err)
{
    return end_piece(p, run_evaluation(p, err), err);
}

void program_set_sample(program *p, uint64_t sample, uint64_t batch)
{
    p->run.sample = sample;
    p->run.batch = batch;
}

void program_weights_changed(program *p)
{
    p->run.weights_version = 0;
}

pons_status program_step_begin(program *p, uint64_t step, pons_error *err)
{
    pons_status status = bind_addresses(p, err);

    p->run.step = step;
    p->run.micro = 0;
    p->run.sums_ended = false;
    return status == PONS_OK ? run_begin(p, err) : status;
}

pons_status program_micro(program *p, uint64_t micro_batch, pons_error *err)
{
    int m = p->run.micro;
    pons_status status;

    if (m >= p->settings.accumulate)
        return pons_fail(err, PONS_FAILURE, "micro-batch %d of a step that has %d", m + 1,
                         p->settings.accumulate);
    bind_grad_slot(p, __builtin_popcount((unsigned)m));
    p->run.micro++;
    status = give_inputs(p, micro_batch, err);
    if (status == PONS_OK)
        status = captured_graphs_run(p, p->schedules.micro[m], err);
    if (status == PONS_OK && p->run.micro == p->settings.accumulate)
        status = gradient_buckets_start_host_sums(p, err);
    return end_piece(p, status, err);
}

pons_status program_step_wait(program *p, pons_error *err)
{
    if (p->run.micro != p->settings.accumulate)
        return pons_fail(err, PONS_FAILURE, "a step ends after micro-batch %d of %d", p->run.micro,
                         p->settings.accumulate);
    if (p->run.sums_ended)
        return PONS_OK;
    p->run.sums_ended = true;
    return gradient_buckets_wait(p, err);
}

/* Queue the copy of the step's numbers to the host. */
static pons_status send_numbers(program *p, pons_error *err)
{
    const device *d = &p->device;
    const staging *s = &p->numbers.staging;

    return d->facts.host_memory ? PONS_OK
         : stream_copy(d, PONS_STREAM_KERNELS, s->host, s->device, s->size, err);
}

/* The pinned host copy of the number at device address 'memory'. */
static void *host_number(const program *p, const void *memory)
{
    return p->numbers.staging.host + ((const char *)memory - p->numbers.staging.device);
}

/*
 * Queue the copy of the learning rate. It reuses the memory of the last step's numbers, which have
 * been read.
 */
static pons_status send_rate(program *p, double lr, pons_error *err)
{
    void *to = p->numbers.step[STEP_LR], *from = host_number(p, to);

    if (p->storage->real == PONS_F64)
        *(double *)from = lr;
    else
        *(float *)from = (float)lr;
    return to == from ? PONS_OK
         : stream_copy(&p->device, PONS_STREAM_KERNELS, to, from, p->storage->real_size, err);
}

/* The value of the number at device address 'memory'. */
static double number_at(const program *p, const void *memory)
{
    const void *at = host_number(p, memory);

    return p->storage->real == PONS_F64 ? *(const double *)at : *(const float *)at;
}

/* The first tensor for which the update's kernels saw a number that is not finite. */
static const char *find_nonfinite(const program *p)
{
    const char *at = p->numbers.check.number;

    for (int i = 0; i < p->numbers.check.count; i++, at += p->storage->real_size)
        if (number_at(p, at) != 0)
            return p->numbers.check.name[i];
    return NULL;
}

pons_status program_step_end(program *p, double lr, pons_error *err)
{
    double start = seconds_now(), middle;
    pons_status status = program_step_wait(p, err);

    if (status == PONS_OK)
        status = send_rate(p, lr, err);
    if (status == PONS_OK)
        status = captured_graphs_run(p, p->schedules.norm, err);
    middle = seconds_now();
    /* Until here a signal may save the values that the step began with. */
    storage_device_writes(p->storage);
    if (status == PONS_OK)
        status = captured_graphs_run(p, p->schedules.update, err);
    if (status == PONS_OK)
        status = send_numbers(p, err);
    p->storage->version++;
    status = end_piece(p, status, err);
    p->run.result = (step_result){ .reduce_seconds = middle - start,
                                   .update_seconds = seconds_now() - middle };
    return status;
}

pons_status program_step_result(program *p, step_result *result, pons_error *err)
{
    if (end_run(p, PONS_OK, err) != PONS_OK)
        return err->status;
    p->run.result.loss = number_at(p, p->numbers.step[STEP_LOSS]);
    p->run.result.grad_norm = number_at(p, p->numbers.step[STEP_NORM]);
    p->run.result.applied = number_at(p, p->numbers.step[STEP_OK]) != 0;
    p->run.result.nonfinite = find_nonfinite(p);
    p->run.result.scale = p->gradients.loss_scale != NULL
        ? number_at(p, p->numbers.step[STEP_SCALE]) : 1;
    *result = p->run.result;
    return PONS_OK;
}

pons_status program_step_finish(program *p, double lr, step_result *result, pons_error *err)
{
    return program_step_end(p, lr, err) == PONS_OK ? program_step_result(p, result, err)
                                                   : err->status;
}

/* ---- the first tensor that is not finite ----------------------------------------------------- */

/* A tensor that cannot be read counts as not finite. */
static bool is_finite(program *p, const program_tensor *t)
{
    const pons_tensor tensor = t->tensor;
    int64_t count = shape_count(tensor.shape);
    const void *memory = program_peek(p, bind_address_of(p, t), t->size);

    if (memory == NULL)
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (tensor.type == PONS_F32 && !isfinite(((const float *)memory)[i]))
            return false;
        if (tensor.type == PONS_F64 && !isfinite(((const double *)memory)[i]))
            return false;
        if (tensor.type == PONS_BF16 && (((const uint16_t *)memory)[i] & 0x7f80) == 0x7f80)
            return false;
        if (tensor.type == PONS_F16 && (((const uint16_t *)memory)[i] & 0x7c00) == 0x7c00)
            return false;
    }
    return true;
}

/* The output of a started sum may not be read before its wait. */
static bool is_under_way(const program_call *c)
{
    const pons_all_reduce_attributes *a = c->request->attributes;

    return c->request->kind == PONS_KERNEL_ALL_REDUCE && a->part == PONS_ALL_REDUCE_START;
}

/* Whether a later kernel writes another part of the tensor. */
static bool is_written_after(const program *p, int k, const program_tensor *t)
{
    int end = p->calls.section_first[SECTION_MICRO + 1];

    for (int later = k + 1; t->writers > 1 && later < end; later++)
        for (int i = 0; i < p->calls.call[later].request->output_count; i++)
            if (p->calls.call[later].output[i] == t)
                return true;
    return false;
}

static bool outputs_are_finite(program *p, int k)
{
    const program_call *c = p->calls.call + k;

    if (c->packs || is_under_way(c))
        return true;
    for (int i = 0; i < c->request->output_count; i++)
        if (!is_written_after(p, k, c->output[i]) && !is_finite(p, c->output[i]))
            return false;
    return true;
}

static const char *bad_leaf(program *p)
{
    for (int i = 0; i < p->layout.tensor_count; i++) {
        const program_tensor *t = p->layout.tensor + i;
        bool input = t->location == LOCATION_FIXED && p->graph->node[i]->kind == NODE_INPUT;

        if ((t->location == LOCATION_ENTRY || input) && !is_finite(p, t))
            return p->graph->node[i]->name;
    }
    return NULL;
}

/*
 * The micro-batch runs again, with a look at every tensor behind its kernel. It runs to its end if
 * other replicas wait for sums of this one.
 */
pons_status program_find_nonfinite(program *p, uint64_t micro_batch, program_nonfinite *found,
                                   pons_error *err)
{
    int first = p->calls.section_first[SECTION_MICRO];
    int end = p->calls.section_first[SECTION_MICRO + 1];
    pons_status status = end_run(p, give_inputs(p, micro_batch, err), err);

    *found = (program_nonfinite){ .index = -1 };
    if (status == PONS_OK)
        found->name = bad_leaf(p);
    for (int k = first; status == PONS_OK && k < end; k++) {
        if (found->name != NULL && p->all_reduce.count == 0)
            break;
        status = end_run(p, program_run_call(p, k, err), err);
        if (status == PONS_OK && found->name == NULL && !outputs_are_finite(p, k))
            *found = (program_nonfinite){ call_name(p->calls.call + k), k - first };
    }
    return status;
}
