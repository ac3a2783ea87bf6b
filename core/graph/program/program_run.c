/*
 * program_run.c - run a compiled program: begin, micro, fold, reduce, update (R1, R2, R8). Nothing
 * is allocated here.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"
#include "graph/storage/profiler_range.h"
#include "graph/storage/device_stream.h"

/* At the end of what may have failed before: the first failure stays. */
static pons_status end_run(program *p, pons_status status, pons_error *err)
{
    pons_status waited = mirror_wait(&p->device, err);

    p->sending = p->ahead; /* kernels follow what was sent, unless nobody has taken it yet */
    return status != PONS_OK ? status : waited;
}

/* After a piece of a step: where memory is not the host's nobody looks before the step's end. */
static pons_status end_piece(program *p, pons_status status, pons_error *err)
{
    return p->device.facts.host_memory || status != PONS_OK ? end_run(p, status, err) : PONS_OK;
}

static pons_status run_pack(program *p, const program_call *c, pons_error *err)
{
    const program_call *reader = p->call + c->pack_call;

    return reader->kernel.pack(&reader->kernel, c->pack_input,
                               program_address(p, reader->input[c->pack_input]),
                               reader->packed[c->pack_input], err);
}

static pons_status fill_with_nan(const program *p, char *memory, size_t size, pons_error *err)
{
    unsigned char nan[4096];

    memset(nan, 0xff, sizeof nan);
    for (size_t at = 0; at < size; at += sizeof nan)
        if (mirror_write(&p->device, memory + at, nan,
                         size - at < sizeof nan ? size - at : sizeof nan, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* Test switch: whatever dies with call k becomes NaN. */
static pons_status poison_freed(const program *p, int k, pons_error *err)
{
    pons_status status = PONS_OK;

    for (int i = 0; i < p->block_count && status == PONS_OK; i++)
        if (p->block[i].last == k)
            status = fill_with_nan(p, (char *)p->storage->work + p->block[i].offset,
                                   p->block[i].size, err);
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

    range_begin(&p->device, call_name(c));
    status = c->packs ? run_pack(p, c, err) : c->kernel.run(&c->kernel, &c->call, err);
    range_end(&p->device);
    return plugin_answer(status, "the device", c->packs ? "pack" : "run", err);
}

/* Alone, and with the device's own clock where it has one. */
static pons_status run_watched(program *p, int k, pons_error *err)
{
    const pons_device_operations *o = p->device.operations;
    const program_call *c = p->call + k;
    bool timed = c->fixed && o->profiling.timer_start != NULL;
    double start, host, seconds = 0;
    pons_status status = PONS_OK;

    if (timed)
        status = plugin_answer(o->profiling.timer_start(p->device.handle, err), "the device",
                               "profiling.timer_start", err);
    start = seconds_now();
    if (status == PONS_OK)
        status = run_kernel(p, c, err);
    host = seconds_now() - start;
    if (status == PONS_OK && timed)
        status = plugin_answer(o->profiling.timer_stop(p->device.handle, &seconds, err),
                               "the device", "profiling.timer_stop", err);
    else
        status = end_run(p, status, err);
    p->after(p->context, k, timed ? seconds : seconds_now() - start, host);
    return status;
}

pons_status program_run_call(program *p, int k, pons_error *err)
{
    program_call *c = p->call + k;
    bool poison = p->settings.poison && c->section == SECTION_MICRO;
    pons_status status = c->host ? mirror_wait(&p->device, err) : PONS_OK;

    if (status != PONS_OK)
        return status;
    status = p->after != NULL ? run_watched(p, k, err) : run_kernel(p, c, err);
    if (poison)
        status = end_run(p, status, err);
    return poison && status == PONS_OK ? poison_freed(p, k, err) : status;
}

/* The inputs leave the host, beside the kernels that still run; and reach what these read. */
static pons_status send_inputs(program *p, pons_error *err)
{
    const device *d = &p->device;

    p->sending = true;
    if (stream_wait_event(d, PONS_STREAM_COPY, MARK_TAKEN, err) != PONS_OK
        || stream_copy(d, PONS_STREAM_COPY, p->sent.device, p->sent.host, p->sent.size, err)
           != PONS_OK)
        return err->status;
    return event_record(d, PONS_STREAM_COPY, MARK_SENT, err);
}

static pons_status take_inputs(program *p, pons_error *err)
{
    const device *d = &p->device;

    p->ahead = false;
    if (stream_wait_event(d, PONS_STREAM_KERNELS, MARK_SENT, err) != PONS_OK
        || stream_copy(d, PONS_STREAM_KERNELS, p->inputs, p->sent.device, p->sent.size, err)
           != PONS_OK)
        return err->status;
    return event_record(d, PONS_STREAM_KERNELS, MARK_TAKEN, err);
}

static void set_step_key(program *p, uint64_t step, uint64_t micro_batch)
{
    pons_step_key *m = program_host_input(p, p->inputs + p->step_key_offset);

    *m = (pons_step_key){ p->settings.seed, step, micro_batch };
}

pons_status program_send(program *p, uint64_t step, uint64_t micro_batch, pons_error *err)
{
    if (p->device.facts.host_memory)
        return PONS_OK;
    set_step_key(p, step, micro_batch);
    p->ahead = true;
    return send_inputs(p, err);
}

/* What the host has filled in, and the moment, are where kernels read them. */
static pons_status give_inputs(program *p, uint64_t micro_batch, pons_error *err)
{
    if (!p->ahead)
        set_step_key(p, p->step, micro_batch);
    if (p->device.facts.host_memory)
        return program_bind(p, err); /* inputs may have been lent */
    if (!p->ahead && send_inputs(p, err) != PONS_OK)
        return err->status;
    return take_inputs(p, err);
}

static pons_status run_begin(program *p, pons_error *err)
{
    pons_status status = program_run_passage(p, p->begin_passage, err);

    if (status == PONS_OK)
        p->version = p->storage->version;
    return status;
}

static pons_status evaluate(program *p, pons_error *err)
{
    pons_status status = program_bind(p, err);

    p->step = 0;
    if (status == PONS_OK && p->version != p->storage->version)
        status = run_begin(p, err);
    if (status == PONS_OK)
        status = give_inputs(p, 0, err);
    if (status == PONS_OK)
        status = program_run_passage(p, p->micro_passage[0], err);
    return status;
}

pons_status program_evaluate(program *p, pons_error *err)
{
    return end_run(p, evaluate(p, err), err);
}

pons_status program_evaluate_ahead(program *p, pons_error *err)
{
    return end_piece(p, evaluate(p, err), err);
}

void program_weights_changed(program *p)
{
    p->version = 0;
}

pons_status program_step_begin(program *p, uint64_t step, pons_error *err)
{
    pons_status status = program_bind(p, err);

    p->step = step;
    p->micro = 0;
    p->waited = false;
    return status == PONS_OK ? run_begin(p, err) : status;
}

pons_status program_micro(program *p, uint64_t micro_batch, pons_error *err)
{
    int m = p->micro;
    pons_status status;

    if (m >= p->settings.accumulate)
        return pons_fail(err, PONS_FAILURE, "micro-batch %d of a step that has %d", m + 1,
                         p->settings.accumulate);
    program_land(p, __builtin_popcount((unsigned)m));
    p->micro++;
    status = give_inputs(p, micro_batch, err);
    if (status == PONS_OK)
        status = program_run_passage(p, p->micro_passage[m], err);
    if (status == PONS_OK && p->micro == p->settings.accumulate)
        status = program_buckets_started(p, err);
    return end_piece(p, status, err);
}

pons_status program_step_wait(program *p, pons_error *err)
{
    if (p->micro != p->settings.accumulate)
        return pons_fail(err, PONS_FAILURE, "a step ends after micro-batch %d of %d", p->micro,
                         p->settings.accumulate);
    if (p->waited)
        return PONS_OK;
    p->waited = true;
    return program_buckets_wait(p, err);
}

/* The device's numbers of a step, on their way to where this process reads them. */
static pons_status send_numbers(program *p, pons_error *err)
{
    const device *d = &p->device;

    return d->facts.host_memory ? PONS_OK
         : stream_copy(d, PONS_STREAM_KERNELS, p->numbers.host, p->numbers.device, p->numbers.size,
                      err);
}

/* The pinned host copy of the number at device address 'memory'. */
static void *host_number(const program *p, const void *memory)
{
    return p->numbers.host + ((const char *)memory - p->numbers.device);
}

/* Queue the copy of the rate. It reuses the memory of the last step's numbers, which are read. */
static pons_status send_rate(program *p, double lr, pons_error *err)
{
    void *to = p->number[STEP_LR], *from = host_number(p, to);

    if (p->storage->real == PONS_F64)
        *(double *)from = lr;
    else
        *(float *)from = (float)lr;
    return to == from ? PONS_OK
         : stream_copy(&p->device, PONS_STREAM_KERNELS, to, from, p->storage->real_size, err);
}

/* What has come of the number at 'memory' on the device. */
static double number_at(const program *p, const void *memory)
{
    const void *at = host_number(p, memory);

    return p->storage->real == PONS_F64 ? *(const double *)at : *(const float *)at;
}

/* The first tensor of which the update's kernels saw something that is not finite. */
static const char *find_damaged(const program *p)
{
    const char *at = p->check.number;

    for (int i = 0; i < p->check.count; i++, at += p->storage->real_size)
        if (number_at(p, at) != 0)
            return p->check.name[i];
    return NULL;
}

pons_status program_step_end(program *p, double lr, pons_error *err)
{
    double start = seconds_now(), middle;
    pons_status status = program_step_wait(p, err);

    if (status == PONS_OK)
        status = send_rate(p, lr, err);
    if (status == PONS_OK)
        status = program_run_passage(p, p->reduce_passage, err);
    middle = seconds_now();
    storage_lose(p->storage); /* not before: until here a signal may save what a step began with */
    if (status == PONS_OK)
        status = program_run_passage(p, p->update_passage, err);
    if (status == PONS_OK)
        status = send_numbers(p, err);
    p->storage->version++;
    status = end_piece(p, status, err);
    p->result = (step_result){ .reduce_seconds = middle - start,
                               .update_seconds = seconds_now() - middle };
    return status;
}

pons_status program_step_result(program *p, step_result *result, pons_error *err)
{
    if (end_run(p, PONS_OK, err) != PONS_OK)
        return err->status;
    p->result.loss = number_at(p, p->number[STEP_LOSS]);
    p->result.grad_norm = number_at(p, p->number[STEP_NORM]);
    p->result.applied = number_at(p, p->number[STEP_OK]) != 0;
    p->result.damaged = find_damaged(p);
    p->result.scale = p->scale != NULL ? number_at(p, p->number[STEP_SCALE]) : 1;
    *result = p->result;
    return PONS_OK;
}

pons_status program_step_finish(program *p, double lr, step_result *result, pons_error *err)
{
    return program_step_end(p, lr, err) == PONS_OK ? program_step_result(p, result, err)
                                                   : err->status;
}

/* ---- what was not finite --------------------------------------------------------------------- */

/* What cannot be looked at is not finite either. */
static bool is_finite(program *p, const program_tensor *t)
{
    const pons_tensor tensor = t->tensor;
    int64_t count = shape_count(tensor.shape);
    const void *memory = program_look(p, program_address(p, t), t->size);

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

/* A sum over replicas that has begun is nobody's to read before its end. */
static bool is_under_way(const program_call *c)
{
    const pons_all_reduce_attributes *a = c->request->attributes;

    return c->request->kind == PONS_KERNEL_ALL_REDUCE && a->part == PONS_ALL_REDUCE_START;
}

/* What several kernels write is whole after the last of them. */
static bool is_written_after(const program *p, int k, const program_tensor *t)
{
    for (int later = k + 1; t->writers > 1 && later < p->section_first[SECTION_MICRO + 1]; later++)
        for (int i = 0; i < p->call[later].request->output_count; i++)
            if (p->call[later].output[i] == t)
                return true;
    return false;
}

static bool outputs_are_finite(program *p, int k)
{
    const program_call *c = p->call + k;

    if (c->packs || is_under_way(c))
        return true;
    for (int i = 0; i < c->request->output_count; i++)
        if (!is_written_after(p, k, c->output[i]) && !is_finite(p, c->output[i]))
            return false;
    return true;
}

static const char *bad_leaf(program *p)
{
    for (int i = 0; i < p->tensor_count; i++) {
        const program_tensor *t = p->tensor + i;
        bool input = t->kind == PLACE_FIXED && p->graph->node[i]->kind == NODE_INPUT;

        if ((t->kind == PLACE_ENTRY || input) && !is_finite(p, t))
            return p->graph->node[i]->name;
    }
    return NULL;
}

/*
 * The micro-batch is run once more, with a look at every tensor after its kernel; to its end where
 * other replicas wait for sums of this one.
 */
pons_status program_find_nonfinite(program *p, uint64_t micro_batch, program_nonfinite *found,
                                   pons_error *err)
{
    int first = p->section_first[SECTION_MICRO], end = p->section_first[SECTION_MICRO + 1];
    pons_status status = end_run(p, give_inputs(p, micro_batch, err), err);

    *found = (program_nonfinite){ .place = -1 };
    if (status == PONS_OK)
        found->name = bad_leaf(p);
    for (int k = first; status == PONS_OK && k < end && (found->name == NULL || p->sum_count > 0);
         k++) {
        status = end_run(p, program_run_call(p, k, err), err);
        if (status == PONS_OK && found->name == NULL && !outputs_are_finite(p, k))
            *found = (program_nonfinite){ call_name(p->call + k), k - first };
    }
    return status;
}
