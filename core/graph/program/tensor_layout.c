/*
 * tensor_layout.c - the location of each tensor of a program: storage, inputs, results of begin,
 * accumulation slots or the arena. It plans the arena from lifetimes (R15, R16).
 */
#include <string.h>

#include "base/arena.h"
#include "base/integer.h"
#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"

static pons_type stored_type(const program *p, pons_type type)
{
    return type == PONS_F32 && p->device.wide ? PONS_F64 : type;
}

static program_tensor *tensor_of(const program *p, const pons_node *owner)
{
    return p->layout.tensor + owner->number;
}

static void describe_tensor(const program *p, const pons_node *x)
{
    program_tensor *t = tensor_of(p, x);

    t->tensor = (pons_tensor){ stored_type(p, x->type), x->shape };
    t->size = (size_t)shape_count(x->shape) * type_size(t->tensor.type);
    t->block = -1;
}

/* ---- accumulation slots ---------------------------------------------------------------------- */

/*
 * The slots alive at once: one for each bit of the number of finished micro-batches, and the one
 * that is written.
 */
static int count_slots(int accumulate)
{
    int most = 1;

    for (int m = 0; m < accumulate; m++)
        if (__builtin_popcount((unsigned)m) + 1 > most)
            most = __builtin_popcount((unsigned)m) + 1;
    return most;
}

static size_t block_offset(const program *p, const storage_block *block)
{
    size_t number = 0;

    for (const storage_block *b = p->storage->block; b != block; b = b->next)
        number++;
    return p->grad_accum.block_offset[number];
}

char *tensor_layout_slot_block(const program *p, const storage_block *block)
{
    return p->grad_accum.memory + block_offset(p, block);
}

static size_t slot_offset(const program *p, const storage_entry *e)
{
    return block_offset(p, e->block) + (size_t)e->offset * p->storage->real_size;
}

/* [gradients of the parameter blocks | contributions of the state blocks | loss] */
static void cut_slot(program *p)
{
    static const storage_group order[] = { STORAGE_PARAMETER, STORAGE_STATE };
    program_grad_accum *g = &p->grad_accum;
    size_t blocks = 0, size = 0;

    for (const storage_block *b = p->storage->block; b != NULL; b = b->next)
        blocks++;
    g->block_offset = arena_alloc(p->arena, blocks * sizeof *g->block_offset);
    for (int k = 0; k < 2; k++) {
        size_t i = 0;

        for (const storage_block *b = p->storage->block; b != NULL; b = b->next, i++) {
            if (b->group != order[k])
                continue;
            g->block_offset[i] = size;
            size += (size_t)b->elements * p->storage->real_size;
        }
        if (k == 0)
            g->gradients_size = size;
    }
    g->loss_offset = size;
    g->slot_size = size + STORAGE_ALIGNMENT * p->storage->real_size;
}

static pons_status make_slots(program *p, pons_error *err)
{
    const device *d = &p->device;
    program_grad_accum *g = &p->grad_accum;
    void *memory;

    cut_slot(p);
    g->slot_count = count_slots(p->settings.accumulate);
    if (storage_allocate(p->storage, g->slot_size * (size_t)g->slot_count, &memory, err) != PONS_OK)
        return PONS_DEVICE;
    g->memory = memory;
    if (p->settings.collective == NULL || d->facts.host_memory
        || p->settings.collective->stream != NULL)
        return PONS_OK;
    g->host_slot = d->operations->memory.allocate_host(d->handle, g->slot_size, err);
    return g->host_slot != NULL ? PONS_OK
         : pons_fail(err, PONS_DEVICE, "out of memory for %zu bytes on the host", g->slot_size);
}

static void assign_to_slot(const program *p, pons_node *x, size_t offset)
{
    program_tensor *t = tensor_of(p, node_owner(x));

    t->location = LOCATION_GRAD_ACCUM;
    t->offset = offset;
}

static pons_status assign_slots(program *p, pons_error *err)
{
    if (make_slots(p, err) != PONS_OK)
        return PONS_DEVICE;
    assign_to_slot(p, p->loss, p->grad_accum.loss_offset);
    for (int i = 0; i < p->gradients.count; i++)
        assign_to_slot(p, p->gradients.gradient[i], slot_offset(p, p->gradients.parameter[i]));
    for (int i = 0; i < p->gradients.state_count; i++)
        assign_to_slot(p, p->gradients.contribution[i], slot_offset(p, p->gradients.state[i]));
    return PONS_OK;
}

/* ---- leaves and begin ------------------------------------------------------------------------ */

static pons_status assign_leaf(program *p, const pons_node *x, pons_error *err)
{
    program_tensor *t = tensor_of(p, x);

    if (x->kind == NODE_PARAMETER || x->kind == NODE_STATE) {
        t->location = LOCATION_ENTRY;
        t->entry = storage_find(p->storage, x->kind == NODE_PARAMETER ? STORAGE_PARAMETER
                                                                      : STORAGE_STATE, x->name);
    } else if (x->kind == NODE_INPUT) {
        t->location = LOCATION_FIXED;
        t->offset = p->layout.inputs_size;
        p->layout.inputs_size += memory_round(t->size);
    } else if (x->kind == NODE_RESIDENT || x->kind == NODE_PATCH_ACCUMULATE) {
        t->location = LOCATION_FIXED; /* program_bind_resident sets the address                   */
    } else if (x == p->gradients.loss_scale) {
        t->location = LOCATION_SCALE;
    } else if (x->kind == NODE_SLOT || x->kind == NODE_GRADIENT || x->kind == NODE_SCALAR) {
        return pons_fail(err, PONS_PLUGIN, "a '%s' outside the optimizer's update",
                         node_kinds[x->kind].name);
    }
    return PONS_OK;
}

static void assign_begin(program *p)
{
    for (int k = 0; k < p->plan.kernel_count; k++) {
        const plan_kernel *kernel = p->plan.kernel + k;

        for (int i = 0; i < kernel->request.output_count && kernel->section == SECTION_BEGIN; i++) {
            program_tensor *t = tensor_of(p, kernel->output[i]);

            if (t->location != LOCATION_NONE)
                continue;
            t->location = LOCATION_FIXED;
            t->offset = p->layout.begin_size;
            p->layout.begin_size += memory_round(t->size);
        }
    }
}

/* Allocate inputs and results of begin. prepare.c allocates packed weights. */
static pons_status allocate_fixed(program *p, pons_error *err)
{
    void *memory;

    p->layout.step_key_offset = p->layout.inputs_size;
    p->layout.inputs_size += memory_round(sizeof(pons_step_key));
    if (storage_allocate(p->storage, p->layout.inputs_size, &memory, err) != PONS_OK)
        return PONS_DEVICE;
    p->layout.inputs = memory;
    if (!p->device.facts.host_memory
        && staging_new(&p->device, p->layout.inputs_size, &p->layout.input_staging, err) != PONS_OK)
        return PONS_DEVICE;
    if (storage_allocate(p->storage, p->layout.begin_size, &memory, err) != PONS_OK)
        return PONS_DEVICE;
    p->layout.begin_memory = memory;
    for (int i = 0; i < p->layout.tensor_count; i++) {
        program_tensor *t = p->layout.tensor + i;
        int kind = p->graph->node[i]->kind;

        if (t->location == LOCATION_FIXED && kind != NODE_RESIDENT && kind != NODE_PATCH_ACCUMULATE)
            t->memory = (kind == NODE_INPUT ? p->layout.inputs : p->layout.begin_memory)
                + t->offset;
    }
    return PONS_OK;
}

pons_status tensor_layout_assign(program *p, pons_error *err)
{
    p->layout.tensor_count = p->graph->node_count;
    p->layout.tensor = arena_alloc(p->arena,
                                   (size_t)p->layout.tensor_count * sizeof(program_tensor));
    for (int i = 0; i < p->layout.tensor_count; i++) {
        describe_tensor(p, p->graph->node[i]);
        if (assign_leaf(p, p->graph->node[i], err) != PONS_OK)
            return PONS_PLUGIN;
    }
    if (p->training && assign_slots(p, err) != PONS_OK)
        return PONS_DEVICE;
    assign_begin(p);
    return allocate_fixed(p, err);
}

/* ---- arena ----------------------------------------------------------------------------------- */

static int add_block(program *p, size_t size, int step)
{
    if (p->layout.block_count == p->layout.block_room) {
        memory_block *larger;

        p->layout.block_room = p->layout.block_room > 0 ? 2 * p->layout.block_room : 256;
        larger = arena_alloc(p->arena, (size_t)p->layout.block_room * sizeof *larger);
        if (p->layout.block_count > 0)
            memcpy(larger, p->layout.block, (size_t)p->layout.block_count * sizeof *larger);
        p->layout.block = larger;
    }
    p->layout.block[p->layout.block_count] = (memory_block){ size, step, step, 0 };
    return p->layout.block_count++;
}

static void extend_life(program *p, const program_tensor *t, int step)
{
    memory_block *b = p->layout.block + t->block;

    b->first = min_int(step, b->first);
    b->last = max_int(step, b->last);
}

/*
 * Make a block for each tensor without another location, alive from its first writer to its last
 * use.
 */
static void list_blocks(program *p)
{
    int first = p->calls.section_first[SECTION_MICRO];
    int end = p->calls.section_first[SECTION_MICRO + 1];

    for (int k = first; k < end; k++) {
        program_call *c = p->calls.call + k;

        for (int i = 0; i < c->request->output_count; i++) {
            program_tensor *t = c->output[i];

            t->writers++;
            if (t->location == LOCATION_NONE) {
                t->location = LOCATION_ARENA;
                t->block = add_block(p, t->size, k);
            }
            if (t->location == LOCATION_ARENA)
                extend_life(p, t, t->output ? end : k);
        }
        for (int i = 0; i < c->request->input_count; i++)
            if (c->input[i]->location == LOCATION_ARENA)
                extend_life(p, c->input[i], k);
    }
}

/* Whether output 0 may overwrite all inputs of the call that are this tensor. */
static bool may_share(const program_call *c, const program_tensor *t)
{
    for (int i = 0; i < c->request->input_count; i++)
        if (c->input[i] == t && !(c->kernel.share >> i & 1))
            return false;
    return true;
}

/* Put output 0 into the memory of an input whose last use this call is. */
static void share_memory(program *p, int k)
{
    program_call *c = p->calls.call + k;
    program_tensor *to = c->request->output_count > 0 ? c->output[0] : NULL;

    if (to == NULL || to->location != LOCATION_ARENA || to->writers != 1 || c->kernel.share == 0)
        return;
    for (int i = 0; i < c->request->input_count && i < 64; i++) {
        program_tensor *from = c->input[i];
        memory_block *a, *b;

        if (from->location != LOCATION_ARENA || from->block == to->block || !may_share(c, from)
            || to->size > from->size)
            continue;
        a = p->layout.block + from->block;
        b = p->layout.block + to->block;
        if (a->last != k || b->first != k)
            continue;
        a->last = b->last;
        b->size = 0;
        to->block = from->block;
        return;
    }
}

/* One block for all accumulations, which run between the calls of micro as buckets complete. */
static int accumulate_scratch(program *p)
{
    size_t most = 0;
    int block;

    for (int k = p->calls.section_first[SECTION_ACCUMULATE]; k < p->calls.count; k++)
        if (p->calls.call[k].kernel.scratch_size > most)
            most = p->calls.call[k].kernel.scratch_size;
    if (most == 0)
        return -1;
    block = add_block(p, most, p->calls.section_first[SECTION_MICRO]);
    p->layout.block[block].last = p->calls.section_first[SECTION_MICRO + 1];
    return block;
}

static void list_packs(program *p, int k)
{
    program_call *c = p->calls.call + k;

    for (int i = 0; i < PACKED_INPUTS && c->packs_first; i++) {
        size_t size = i < c->request->input_count ? c->kernel.pack_size[i] : 0;

        c->pack_block[i] = size > 0 ? add_block(p, size, k) : -1;
    }
}

static void list_scratch(program *p)
{
    int first = p->calls.section_first[SECTION_MICRO];
    int end = p->calls.section_first[SECTION_MICRO + 1];
    int accumulate = p->buckets.count > 1 ? accumulate_scratch(p) : -1;

    for (int k = 0; k < p->calls.count; k++) {
        program_call *c = p->calls.call + k;

        list_packs(p, k);
        c->scratch = -1;
        if (c->kernel.scratch_size == 0)
            continue;
        /* Outside micro only outputs are alive in the arena; they reach to 'end'. */
        c->scratch = accumulate >= 0 && k >= p->calls.section_first[SECTION_ACCUMULATE] ? accumulate
                     : add_block(p, c->kernel.scratch_size, k >= first && k < end ? k : end);
        if (c->kernel.scratch_size > p->layout.scratch_size)
            p->layout.scratch_size = c->kernel.scratch_size;
    }
}

pons_status tensor_layout_plan_arena(program *p, pons_error *err)
{
    int first = p->calls.section_first[SECTION_MICRO];
    int end = p->calls.section_first[SECTION_MICRO + 1];
    bool reuse = !p->settings.testing.no_reuse;

    for (int i = 0; i < p->output_count; i++)
        tensor_of(p, node_owner(p->output[i]))->output = true;
    list_blocks(p);
    for (int k = first; k < end && reuse; k++)
        share_memory(p, k);
    list_scratch(p);
    p->layout.arena_size = memory_plan(p->layout.block, p->layout.block_count, reuse);
    for (int k = 0; k < p->calls.count; k++)
        p->calls.call[k].alive = memory_alive(p->layout.block, p->layout.block_count, k);
    storage_request_work(p->storage, p->layout.arena_size);
    return PONS_OK;
}
