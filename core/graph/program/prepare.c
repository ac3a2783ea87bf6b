/*
 * prepare.c - make a kernel for every request of a program, in running order (R15).
 *
 * A request that the device declines gets the reference kernel. Weights in a kernel's own layout
 * are packed once a step; kernels with equal layouts share the packed weight. In a step of one
 * micro-batch a call packs its weights itself, as often, into memory that other calls use, too. So
 * it does in an evaluation whose operations take far longer (plan.h).
 */
#include <string.h>

#include "base/arena.h"
#include "graph/program/program_internal.h"
#include "graph/reference/reference.h"
#include "plugin/plugin_status.h"

static const char *const kernel_names[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_MAP] = "map",
    [PONS_KERNEL_CONVOLUTION] = "convolution",
    [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = "convolution_input_gradient",
    [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = "convolution_weight_gradient",
    [PONS_KERNEL_MATMUL] = "matmul",
    [PONS_KERNEL_POOL] = "pool",
    [PONS_KERNEL_POOL_GRADIENT] = "pool_gradient",
    [PONS_KERNEL_RESIZE] = "resize",
    [PONS_KERNEL_RESIZE_GRADIENT] = "resize_gradient",
    [PONS_KERNEL_TRANSPOSE] = "transpose",
    [PONS_KERNEL_FLIP] = "flip",
    [PONS_KERNEL_CROP] = "crop",
    [PONS_KERNEL_PAD] = "pad",
    [PONS_KERNEL_PAD_GRADIENT] = "pad_gradient",
    [PONS_KERNEL_CONCATENATE] = "concatenate",
    [PONS_KERNEL_GATHER] = "gather",
    [PONS_KERNEL_ARG_MAX] = "arg_max",
    [PONS_KERNEL_REDUCE_MINMAX_GRADIENT] = "extreme_gradient",
    [PONS_KERNEL_COPY] = "copy",
    [PONS_KERNEL_ALL_REDUCE] = "all_reduce",
    [PONS_KERNEL_OP] = "op",
    [PONS_KERNEL_PATCH] = "patch",
    [PONS_KERNEL_PATCH_NORMAL] = "patch_normal",
    [PONS_KERNEL_PATCH_ACCUMULATE] = "patch_add",
};

const char *kernel_kind_name(pons_kernel_kind kind)
{
    return kernel_names[kind] != NULL ? kernel_names[kind] : "unknown";
}

static pons_status prepare_on(const device *d, const pons_request *r, pons_kernel *k,
                              bool *supported, pons_error *err)
{
    *k = (pons_kernel){ .run = NULL };
    *supported = false;
    return plugin_status(d->operations->prepare(d->handle, r, k, supported, err), "the device",
                         "prepare", err);
}

static pons_status prepare_kernel(program *p, program_call *c, pons_error *err)
{
    const pons_request *r = c->request;
    pons_kernel *k = &c->kernel;
    bool supported;
    device reference;
    pons_status status;

    if (r->kind == PONS_KERNEL_ALL_REDUCE) {
        c->host = p->device.facts.host_memory;
        return all_reduce_kernel_prepare(p, r, k, err);
    }
    status = prepare_on(&p->device, r, k, &supported, err);
    c->fixed = supported;
    if (status != PONS_OK || supported)
        return status;
    if (!p->device.reference) {
        device_reference(&reference, p->device.wide);
        c->host = p->device.facts.host_memory;
        status = prepare_on(&reference, r, k, &supported, err);
        if (supported && !c->host)
            status = host_kernel_prepare(&p->device, r, k, err);
    }
    if (status == PONS_OK && !supported)
        status = pons_fail(err, PONS_DEVICE, "the device '%s' has no kernel for '%s' of '%s'",
                           p->device.facts.name, kernel_kind_name(r->kind),
                           r->name != NULL ? r->name : "");
    return status;
}

static program_call *new_call(program *p, node_section section, const pons_request *r)
{
    program_call *c = p->calls.call + p->calls.count++;

    *c = (program_call){ .section = section, .request = r, .scratch = -1 };
    return c;
}

static pons_status add_call(program *p, node_section section, const pons_request *r,
                            program_call **out, pons_error *err)
{
    program_call *c = new_call(p, section, r);

    if (r->input_count > PONS_KERNEL_INPUTS_MAX)
        return pons_fail(err, PONS_PLUGIN, "'%s' of '%s' has %d inputs, expected at most %d",
                         kernel_kind_name(r->kind), r->name, r->input_count,
                         PONS_KERNEL_INPUTS_MAX);
    c->bytes = explain_request_bytes(r);
    *out = c;
    return prepare_kernel(p, c, err);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static program_tensor **list_tensors(const program *p, int count, pons_node *const *owner)
{
    program_tensor **list = arena_alloc(p->arena, (size_t)(count + 1) * sizeof *list);

    for (int i = 0; i < count; i++)
        list[i] = p->layout.tensor + owner[i]->number;
    return list;
}

static void widen_operand(const pons_operand *o)
{
    if (o->type == PONS_F32)
        ((pons_operand *)o)->type = PONS_F64;
}

/*
 * Make f32 tensors f64, for the wide reference device. The plan's requests live in the graph's
 * arena.
 */
static void widen_request(const pons_request *r)
{
    const pons_map *m = r->kind == PONS_KERNEL_MAP ? r->attributes : NULL;

    for (int i = 0; i < r->input_count; i++)
        if (r->input[i].type == PONS_F32)
            ((pons_tensor *)r->input)[i].type = PONS_F64;
    for (int i = 0; i < r->output_count; i++)
        if (r->output[i].type == PONS_F32)
            ((pons_tensor *)r->output)[i].type = PONS_F64;
    for (int i = 0; m != NULL && i < m->load_count; i++)
        widen_operand(m->load + i);
    for (int i = 0; m != NULL && i < m->store_count; i++)
        widen_operand(&m->store[i].to);
    for (int i = 0; m != NULL && i < m->reduction_count; i++)
        for (int k = 0; k < 2; k++)
            widen_operand(m->reduction[i].to + k);
}

static pons_status prepare_section(program *p, node_section section, pons_error *err)
{
    for (int i = 0; i < p->plan.kernel_count; i++) {
        const plan_kernel *from = p->plan.kernel + i;
        program_call *c;

        if (from->section != section)
            continue;
        if (p->device.wide)
            widen_request(&from->request);
        if (add_call(p, section, &from->request, &c, err) != PONS_OK)
            return PONS_DEVICE;
        c->input = list_tensors(p, from->request.input_count, from->input);
        c->output = list_tensors(p, from->request.output_count, from->output);
        c->flop = from->flop;
        c->nodes = from->node_count;
        c->backward = from->backward;
        c->origin = from->origin;
    }
    return PONS_OK;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* The packed tensor that an earlier call has requested, or NULL. */
static void *find_packed(const program *p, const program_call *c, int input)
{
    for (const program_call *d = p->calls.call; d < c; d++) {
        for (int i = 0; i < PACKED_INPUTS && d->packed != NULL && i < d->request->input_count; i++)
            if (d->packed[i] != NULL && d->input[i] == c->input[input]
                && d->kernel.pack_key[i] == c->kernel.pack_key[input]
                && d->kernel.pack_size[i] == c->kernel.pack_size[input])
                return d->packed[i];
    }
    return NULL;
}

static int count_packs(const program *p, int first)
{
    int count = 0;

    for (int k = first; k < p->calls.count; k++)
        for (int i = 0; i < PACKED_INPUTS && i < p->calls.call[k].request->input_count; i++)
            count += p->calls.call[k].kernel.pack_size[i] > 0;
    return count;
}

/* Let each call of micro, from 'micro' on, pack its inputs itself. */
static void pack_first(program *p, int micro)
{
    for (int k = micro; k < p->calls.count; k++) {
        program_call *c = p->calls.call + k;

        for (int i = 0; i < PACKED_INPUTS && i < c->request->input_count; i++)
            c->packs_first |= c->kernel.pack_size[i] > 0;
        if (c->packs_first)
            c->packed = arena_alloc(p->arena, PONS_KERNEL_INPUTS_MAX * sizeof *c->packed);
    }
}

/* Make one call in begin for every layout of every weight. The calls of micro begin at 'micro'. */
static pons_status prepare_packs(program *p, int micro, pons_error *err)
{
    int packs = count_packs(p, micro), end = p->calls.count, made = 0;
    program_call *pack = arena_alloc(p->arena, (size_t)(packs + 1) * sizeof *pack);

    for (int k = micro; k < end; k++) {
        program_call *c = p->calls.call + k;

        for (int i = 0; i < PACKED_INPUTS && i < c->request->input_count; i++) {
            if (c->kernel.pack_size[i] == 0)
                continue;
            if (c->packed == NULL)
                c->packed = arena_alloc(p->arena, PONS_KERNEL_INPUTS_MAX * sizeof *c->packed);
            c->packed[i] = find_packed(p, c, i);
            if (c->packed[i] != NULL)
                continue;
            c->packed[i] = table_pool_take_bytes(&p->calls.pool, c->kernel.pack_size[i], err);
            if (c->packed[i] == NULL)
                return PONS_DEVICE;
            p->calls.packed_size += memory_round(c->kernel.pack_size[i]);
            pack[made++] = (program_call){ .section = SECTION_BEGIN, .request = c->request,
                                           .origin = c->origin, .pack_call = k,
                                           .pack_input = i, .scratch = -1,
                                           .bytes = c->input[i]->size + c->kernel.pack_size[i] };
        }
    }
    memmove(p->calls.call + micro + made, p->calls.call + micro,
            (size_t)(end - micro) * sizeof *p->calls.call);
    memcpy(p->calls.call + micro, pack, (size_t)made * sizeof *pack);
    for (int i = 0; i < made; i++) {
        p->calls.call[micro + i].pack_call += made;
        p->calls.call[micro + i].packs = true;
    }
    p->calls.count += made;
    return PONS_OK;
}

/* ---- accumulate, norm, update ---------------------------------------------------------------- */

static pons_status prepare_built_map(program *p, int section, map_builder_call *m, pons_error *err)
{
    program_call *c;

    if (add_call(p, section == SECTION_ACCUMULATE ? SECTION_NORM : (node_section)section,
                 &m->request, &c, err) != PONS_OK)
        return PONS_DEVICE;
    c->input_memory = m->input;
    c->output_memory = m->output;
    c->flop = m->flop;
    c->backward = section == SECTION_ACCUMULATE;
    c->nodes = ((const pons_map *)m->request.attributes)->value_count;
    return PONS_OK;
}

/* Add a bucket of slot i + 1 to that of slot i. */
static pons_status prepare_accumulate_call(program *p, int i, const program_bucket *bucket,
                                           pons_error *err)
{
    int64_t count = (int64_t)(bucket->size / p->storage->real_size);
    char *slot = p->grad_accum.memory + (size_t)i * p->grad_accum.slot_size + bucket->offset;
    map_builder_operand left = { slot, count, PONS_INDEX_SPACE };
    map_builder_operand right = { slot + p->grad_accum.slot_size, count, PONS_INDEX_SPACE };
    map_builder m;
    int a, b;

    map_builder_begin(&m, p->arena, p->storage->real, count);
    a = map_builder_load(&m, left);
    b = map_builder_load(&m, right);
    map_builder_store(&m, map_builder_apply(&m, PONS_MAP_ADD, a, b, 0), left);
    return prepare_built_map(p, SECTION_ACCUMULATE, map_builder_finish(&m, "accumulate"), err);
}

/* Call i x buckets + b of the section adds bucket b of slot i + 1 to that of slot i. */
static pons_status prepare_accumulate(program *p, pons_error *err)
{
    gradient_buckets_cut(p);
    for (int i = 0; i + 1 < p->grad_accum.slot_count; i++)
        for (int b = 0; b < p->buckets.count; b++)
            if (prepare_accumulate_call(p, i, p->buckets.bucket + b, err) != PONS_OK)
                return PONS_DEVICE;
    return PONS_OK;
}

/*
 * The numbers of the step, then those of the check: two kernels for each parameter, one for each
 * state.
 */
static pons_status make_numbers(program *p, pons_error *err)
{
    size_t checks = 2 * (size_t)p->gradients.count + (size_t)p->gradients.state_count;
    const size_t first = STEP_NUMBER_COUNT * MEMORY_ALIGNMENT;

    if (staging_new(&p->device, first + checks * p->storage->real_size, &p->numbers.staging,
                    err) != PONS_OK)
        return PONS_DEVICE;
    for (int i = 0; i < STEP_NUMBER_COUNT; i++)
        p->numbers.step[i] = p->numbers.staging.device + i * MEMORY_ALIGNMENT;
    p->numbers.check.number = p->numbers.staging.device + first;
    p->numbers.check.name = arena_alloc(p->arena, (checks + 1) * sizeof *p->numbers.check.name);
    return PONS_OK;
}

static pons_status make_update(program *p, update_calls *calls, pons_error *err)
{
    update_settings *u = arena_alloc(p->arena, sizeof *u);
    void **gradient = arena_alloc(p->arena, (size_t)p->gradients.count * sizeof *gradient);
    size_t merges = (size_t)p->gradients.state_count + 1;
    void **contribution = arena_alloc(p->arena, merges * sizeof *contribution);
    double *rate = arena_alloc(p->arena, merges * sizeof *rate);

    *u = (update_settings){ .storage = p->storage, .arena = p->arena, .pool = &p->calls.pool,
        .micro_batches = p->settings.micro_batches, .clip_norm = p->settings.clip_norm,
        .ema_decay = p->settings.ema_decay, .scaled = p->gradients.loss_scale != NULL,
        .scaling = p->settings.scaling,
        .optimizer = p->settings.optimizer, .config = p->settings.optimizer_config,
        .count = p->gradients.count, .parameter = p->gradients.parameter, .gradient = gradient,
        .gradients = p->grad_accum.memory,
        .gradient_count = (int64_t)(p->grad_accum.gradients_size / p->storage->real_size),
        .state_count = p->gradients.state_count, .state = p->gradients.state,
        .contribution = contribution, .rate = rate,
        .sums = p->grad_accum.memory + p->grad_accum.gradients_size,
        .sum_count = (int64_t)((p->grad_accum.loss_offset - p->grad_accum.gradients_size)
                               / p->storage->real_size) + 1,
        .loss = p->grad_accum.memory + p->grad_accum.loss_offset,
        .number = p->numbers.step, .check = &p->numbers.check };
    if (make_numbers(p, err) != PONS_OK)
        return PONS_DEVICE;
    for (int i = 0; i < p->gradients.count; i++)
        gradient[i] = tensor_layout_slot_block(p, p->gradients.parameter[i]->block);
    for (int i = 0; i < p->gradients.state_count; i++) {
        contribution[i] = tensor_layout_slot_block(p, p->gradients.state[i]->block);
        rate[i] = p->graph->merge[i].rate;
    }
    return update_make(u, calls, err);
}

static pons_status prepare_step_end(program *p, const update_calls *calls, pons_error *err)
{
    p->calls.section_first[SECTION_NORM] = p->calls.count;
    for (int i = 0; i < calls->reduce_count; i++)
        if (prepare_built_map(p, SECTION_NORM, calls->reduce[i], err) != PONS_OK)
            return PONS_DEVICE;
    p->calls.section_first[SECTION_UPDATE] = p->calls.count;
    for (int i = 0; i < calls->update_count; i++)
        if (prepare_built_map(p, SECTION_UPDATE, calls->update[i], err) != PONS_OK)
            return PONS_DEVICE;
    p->calls.section_first[SECTION_ACCUMULATE] = p->calls.count;
    return p->training ? prepare_accumulate(p, err) : PONS_OK;
}

pons_status prepare_calls(program *p, pons_error *err)
{
    update_calls calls = { .reduce_count = 0 };
    int begin = 0, room;

    if (p->training && make_update(p, &calls, err) != PONS_OK)
        return err != NULL ? err->status : PONS_DEVICE;
    for (int i = 0; i < p->plan.kernel_count; i++)
        begin += p->plan.kernel[i].section == SECTION_BEGIN;
    room = 3 * p->plan.kernel_count + calls.reduce_count + calls.update_count
         + p->grad_accum.slot_count * gradient_buckets_limit(p);
    p->calls.call = arena_alloc(p->arena, (size_t)(room + 1) * sizeof *p->calls.call);
    if (prepare_section(p, SECTION_BEGIN, err) != PONS_OK
        || prepare_section(p, SECTION_MICRO, err) != PONS_OK)
        return PONS_DEVICE;
    if (p->training ? p->settings.accumulate == 1 : p->plan.repeats)
        pack_first(p, begin);
    else if (prepare_packs(p, begin, err) != PONS_OK)
        return PONS_DEVICE;
    p->calls.section_first[SECTION_MICRO] = begin;
    while (p->calls.section_first[SECTION_MICRO] < p->calls.count
           && p->calls.call[p->calls.section_first[SECTION_MICRO]].packs)
        p->calls.section_first[SECTION_MICRO]++;
    if (prepare_step_end(p, &calls, err) != PONS_OK)
        return PONS_DEVICE;
    p->calls.section_first[SECTION_ALL] = p->calls.count;
    schedule_build(p);
    return PONS_OK;
}
