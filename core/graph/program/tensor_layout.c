/*
 * tensor_layout.c - where each tensor of a program lies: storage, inputs, what begin keeps, the
 * fold buffer, or the arena; and the arena's plan from lifetimes (R15, R16).
 */
#include <string.h>

#include "base/arena.h"
#include "graph/ir/shape.h"
#include "graph/passes/fuse/fuse.h"
#include "graph/program/program_internal.h"

static pons_type stored_type(const program *p, pons_type type)
{
    return type == PONS_F32 && p->device.wide ? PONS_F64 : type;
}

static program_tensor *tensor_of(const program *p, const pons_node *owner)
{
    return p->tensor + owner->number;
}

static void describe_tensor(const program *p, const pons_node *x)
{
    program_tensor *t = tensor_of(p, x);

    t->tensor = (pons_tensor){ stored_type(p, x->type), x->shape };
    t->size = (size_t)shape_count(x->shape) * type_size(t->tensor.type);
    t->block = -1;
}

/* ---- fold ------------------------------------------------------------------------------------ */

/* Sets alive at once: the landing one above one for each bit of the micro-batches behind. */
static int count_sets(int accumulate)
{
    int most = 1;

    for (int m = 0; m < accumulate; m++)
        if (__builtin_popcount((unsigned)m) + 1 > most)
            most = __builtin_popcount((unsigned)m) + 1;
    return most;
}

size_t fold_block_offset(const program *p, const storage_block *block)
{
    size_t number = 0;

    for (const storage_block *b = p->storage->block; b != block; b = b->next)
        number++;
    return p->fold_block[number];
}

static size_t fold_offset(const program *p, const storage_entry *e)
{
    return fold_block_offset(p, e->block) + (size_t)e->offset * p->storage->real_size;
}

/* [gradients of the parameter blocks | contributions of the state blocks | loss] */
static pons_status make_fold(program *p, pons_error *err)
{
    static const storage_group order[] = { STORAGE_PARAMETER, STORAGE_STATE };
    size_t blocks = 0, size = 0;
    void *memory;

    for (const storage_block *b = p->storage->block; b != NULL; b = b->next)
        blocks++;
    p->fold_block = arena_alloc(p->arena, blocks * sizeof *p->fold_block);
    for (int k = 0; k < 2; k++) {
        size_t i = 0;

        for (const storage_block *b = p->storage->block; b != NULL; b = b->next, i++) {
            if (b->group != order[k])
                continue;
            p->fold_block[i] = size;
            size += (size_t)b->elements * p->storage->real_size;
        }
        if (k == 0)
            p->fold_gradients = size;
    }
    p->fold_loss = size;
    p->fold_size = size + STORAGE_ALIGNMENT * p->storage->real_size;
    p->fold_sets = count_sets(p->settings.accumulate);
    if (storage_allocate(p->storage, p->fold_size * (size_t)p->fold_sets, &memory, err) != PONS_OK)
        return PONS_DEVICE;
    p->fold = memory;
    if (p->settings.collective == NULL || p->device.facts.host_memory
        || p->settings.collective->stream != NULL)
        return PONS_OK;
    p->summed = p->device.operations->memory.allocate_host(p->device.handle, p->fold_size, err);
    return p->summed != NULL ? PONS_OK
         : pons_fail(err, PONS_DEVICE, "cannot allocate %zu bytes on the host", p->fold_size);
}

static void land_in_fold(const program *p, pons_node *x, size_t offset)
{
    program_tensor *t = tensor_of(p, plan_owner(x));

    t->kind = PLACE_FOLD;
    t->offset = offset;
}

static pons_status place_fold(program *p, pons_error *err)
{
    if (make_fold(p, err) != PONS_OK)
        return PONS_DEVICE;
    land_in_fold(p, p->loss, p->fold_loss);
    for (int i = 0; i < p->gradient_count; i++)
        land_in_fold(p, p->gradient[i], fold_offset(p, p->trained[i]));
    for (int i = 0; i < p->merge_count; i++)
        land_in_fold(p, p->contribution[i], fold_offset(p, p->merged[i]));
    return PONS_OK;
}

/* ---- leaves and begin ------------------------------------------------------------------------ */

static pons_status place_leaf(program *p, const pons_node *x, pons_error *err)
{
    program_tensor *t = tensor_of(p, x);

    if (x->kind == NODE_PARAMETER || x->kind == NODE_STATE) {
        t->kind = PLACE_ENTRY;
        t->entry = storage_find(p->storage, x->kind == NODE_PARAMETER ? STORAGE_PARAMETER
                                                                      : STORAGE_STATE, x->name);
    } else if (x->kind == NODE_INPUT) {
        t->kind = PLACE_FIXED;
        t->offset = p->inputs_size;
        p->inputs_size += memory_round(t->size);
    } else if (x->kind == NODE_HELD || x->kind == NODE_PATCH_ADD) {
        t->kind = PLACE_FIXED; /* where: program_hold */
    } else if (x == p->scale) {
        t->kind = PLACE_SCALE;
    } else if (x->kind == NODE_SLOT || x->kind == NODE_GRADIENT || x->kind == NODE_MERGED
               || x->kind == NODE_SCALAR) {
        return pons_fail(err, PONS_PLUGIN, "a '%s' outside the optimizer's update",
                         node_kinds[x->kind].name);
    }
    return PONS_OK;
}

static void place_kept(program *p)
{
    for (int k = 0; k < p->plan.kernel_count; k++) {
        const plan_kernel *kernel = p->plan.kernel + k;

        for (int i = 0; i < kernel->request.output_count && kernel->section == SECTION_BEGIN; i++) {
            program_tensor *t = tensor_of(p, kernel->output[i]);

            if (t->kind != PLACE_NONE)
                continue;
            t->kind = PLACE_FIXED;
            t->offset = p->kept_size;
            p->kept_size += memory_round(t->size);
        }
    }
}

/* Inputs and begin's tensors get their addresses; packed weights are prepare.c's. */
static pons_status allocate_fixed(program *p, pons_error *err)
{
    void *memory;

    p->step_key_offset = p->inputs_size;
    p->inputs_size += memory_round(sizeof(pons_step_key));
    if (storage_allocate(p->storage, p->inputs_size, &memory, err) != PONS_OK)
        return PONS_DEVICE;
    p->inputs = memory;
    if (!p->device.facts.host_memory
        && mirror_new(&p->device, p->inputs_size, &p->sent, err) != PONS_OK)
        return PONS_DEVICE;
    if (storage_allocate(p->storage, p->kept_size, &memory, err) != PONS_OK)
        return PONS_DEVICE;
    p->kept = memory;
    for (int i = 0; i < p->tensor_count; i++) {
        program_tensor *t = p->tensor + i;
        int kind = p->graph->node[i]->kind;

        if (t->kind == PLACE_FIXED && kind != NODE_HELD && kind != NODE_PATCH_ADD)
            t->memory = (kind == NODE_INPUT ? p->inputs : p->kept) + t->offset;
    }
    return PONS_OK;
}

pons_status program_place(program *p, pons_error *err)
{
    p->tensor_count = p->graph->node_count;
    p->tensor = arena_alloc(p->arena, (size_t)p->tensor_count * sizeof *p->tensor);
    for (int i = 0; i < p->tensor_count; i++) {
        describe_tensor(p, p->graph->node[i]);
        if (place_leaf(p, p->graph->node[i], err) != PONS_OK)
            return PONS_PLUGIN;
    }
    if (p->training && place_fold(p, err) != PONS_OK)
        return PONS_DEVICE;
    place_kept(p);
    return allocate_fixed(p, err);
}

/* ---- arena ----------------------------------------------------------------------------------- */

static int add_block(program *p, size_t size, int step)
{
    if (p->block_count == p->block_room) {
        memory_block *larger;

        p->block_room = p->block_room > 0 ? 2 * p->block_room : 256;
        larger = arena_alloc(p->arena, (size_t)p->block_room * sizeof *larger);
        if (p->block_count > 0)
            memcpy(larger, p->block, (size_t)p->block_count * sizeof *larger);
        p->block = larger;
    }
    p->block[p->block_count] = (memory_block){ size, step, step, 0 };
    return p->block_count++;
}

static void extend(program *p, const program_tensor *t, int step)
{
    memory_block *b = p->block + t->block;

    b->first = step < b->first ? step : b->first;
    b->last = step > b->last ? step : b->last;
}

/* A block for each tensor that has no other place, alive from its first writer to its last use. */
static void list_blocks(program *p)
{
    int first = p->section_first[SECTION_MICRO], end = p->section_first[SECTION_MICRO + 1];

    for (int k = first; k < end; k++) {
        program_call *c = p->call + k;

        for (int i = 0; i < c->request->output_count; i++) {
            program_tensor *t = c->output[i];

            t->writers++;
            if (t->kind == PLACE_NONE) {
                t->kind = PLACE_ARENA;
                t->block = add_block(p, t->size, k);
            }
            if (t->kind == PLACE_ARENA)
                extend(p, t, t->output ? end : k);
        }
        for (int i = 0; i < c->request->input_count; i++)
            if (c->input[i]->kind == PLACE_ARENA)
                extend(p, c->input[i], k);
    }
}

/* All inputs of the call that are this tensor may be overwritten by output 0. */
static bool may_share(const program_call *c, const program_tensor *t)
{
    for (int i = 0; i < c->request->input_count; i++)
        if (c->input[i] == t && !(c->kernel.share >> i & 1))
            return false;
    return true;
}

/* Put output 0 into the memory of an input that nobody reads afterwards. */
static void share_memory(program *p, int k)
{
    program_call *c = p->call + k;
    program_tensor *to = c->request->output_count > 0 ? c->output[0] : NULL;

    if (to == NULL || to->kind != PLACE_ARENA || to->writers != 1 || c->kernel.share == 0)
        return;
    for (int i = 0; i < c->request->input_count && i < 64; i++) {
        program_tensor *from = c->input[i];
        memory_block *a, *b;

        if (from->kind != PLACE_ARENA || from->block == to->block || !may_share(c, from)
            || to->size > from->size)
            continue;
        a = p->block + from->block;
        b = p->block + to->block;
        if (a->last != k || b->first != k)
            continue;
        a->last = b->last;
        b->size = 0;
        to->block = from->block;
        return;
    }
}

/* One block for all folds, which run between the calls of micro as buckets become ready. */
static int fold_scratch(program *p)
{
    size_t most = 0;
    int block;

    for (int k = p->section_first[SECTION_FOLD]; k < p->section_first[SECTION_ALL]; k++)
        if (p->call[k].kernel.scratch_size > most)
            most = p->call[k].kernel.scratch_size;
    if (most == 0)
        return -1;
    block = add_block(p, most, p->section_first[SECTION_MICRO]);
    p->block[block].last = p->section_first[SECTION_MICRO + 1];
    return block;
}

static void list_scratch(program *p)
{
    int first = p->section_first[SECTION_MICRO], end = p->section_first[SECTION_MICRO + 1];
    int fold = p->bucket_count > 1 ? fold_scratch(p) : -1;

    for (int k = 0; k < p->call_count; k++) {
        program_call *c = p->call + k;

        c->scratch = -1;
        if (c->kernel.scratch_size == 0)
            continue;
        /* Outside micro nothing else of the arena is alive but outputs, which reach to 'end'. */
        c->scratch = fold >= 0 && k >= p->section_first[SECTION_FOLD] ? fold
                     : add_block(p, c->kernel.scratch_size, k >= first && k < end ? k : end);
        if (c->kernel.scratch_size > p->scratch_size)
            p->scratch_size = c->kernel.scratch_size;
    }
}

pons_status program_lay_out(program *p, pons_error *err)
{
    int first = p->section_first[SECTION_MICRO], end = p->section_first[SECTION_MICRO + 1];
    bool reuse = !p->settings.no_reuse;

    for (int i = 0; i < p->output_count; i++)
        tensor_of(p, plan_owner(p->output[i]))->output = true;
    list_blocks(p);
    for (int k = first; k < end && reuse; k++)
        share_memory(p, k);
    list_scratch(p);
    p->work_size = memory_plan(p->block, p->block_count, reuse);
    for (int k = 0; k < p->call_count; k++)
        p->call[k].alive = memory_alive(p->block, p->block_count, k);
    storage_want_work(p->storage, p->work_size);
    return PONS_OK;
}
