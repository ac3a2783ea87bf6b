/*
 * explain.c - facts about a program before it runs: kernels, memory, operations.
 */
#include "graph/program/explain.h"

#include <stdio.h>
#include <string.h>

#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"

/* The elements that an operand touches; repeated ones count once. */
static uint64_t operand_count(const pons_map *m, const pons_operand *o)
{
    uint64_t count = 1;

    if (m->segment_count > 0)
        return o->index == PONS_INDEX_ELEMENT ? (uint64_t)m->extent[0]
             : o->index == PONS_INDEX_SEGMENT ? (uint64_t)m->segment_count : 1;
    for (int i = 0; i < m->axis_count; i++)
        count *= o->stride[i] != 0 ? (uint64_t)m->extent[i] : 1;
    return count;
}

static uint64_t operand_bytes(const pons_map *m, const pons_operand *o)
{
    return operand_count(m, o) * type_size(o->type);
}

static uint64_t map_bytes(const pons_map *m)
{
    uint64_t bytes = 0;

    for (int i = 0; i < m->load_count; i++)
        bytes += operand_bytes(m, m->load + i);
    for (int i = 0; i < m->store_count; i++)
        bytes += operand_bytes(m, &m->store[i].to);
    for (int i = 0; i < m->reduction_count; i++)
        bytes += operand_bytes(m, m->reduction[i].to)
                 * (m->reduction[i].kind == PONS_REDUCE_MOMENTS ? 2 : 1);
    return bytes;
}

static uint64_t tensor_bytes(const pons_tensor *t, int count)
{
    uint64_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += (uint64_t)shape_count(t[i].shape) * type_size(t[i].type);
    return bytes;
}

uint64_t explain_request_bytes(const pons_request *r)
{
    uint64_t sums = 0; /* of patches, in resident memory */

    if (r->kind == PONS_KERNEL_MAP)
        return map_bytes(r->attributes);
    if (r->kind == PONS_KERNEL_PATCH_ACCUMULATE)
        sums = 2 * (uint64_t)shape_count(r->input[3].shape) * sizeof(float);
    return tensor_bytes(r->input, r->input_count) + tensor_bytes(r->output, r->output_count) + sums;
}

static size_t storage_bytes(const storage *s)
{
    size_t bytes = 0;

    for (const storage_block *b = s->block; b != NULL; b = b->next) {
        bytes += (size_t)b->elements * s->real_size * (b->ema.size > 0 ? 2 : 1);
        for (int i = 0; i < PONS_SLOTS_MAX; i++)
            bytes += b->slot[i].size;
    }
    return bytes;
}

void program_describe(const program *p, program_facts *facts)
{
    *facts = (program_facts){ .arena = p->layout.arena_size, .scratch = p->layout.scratch_size,
        .packed = p->layout.begin_size + p->calls.packed_size, .inputs = p->layout.inputs_size,
        .external_inputs = p->device.facts.host_memory ? p->layout.step_key_offset : 0,
        .parameters = storage_bytes(p->storage),
        .grad_accum = p->grad_accum.slot_size * (size_t)p->grad_accum.slot_count,
        .kernel_count = p->calls.count, .bucket_count = p->buckets.count,
        .captured_graph_count = captured_graphs_count(p),
        .node_count = p->graph->node_count,
        .untrained_count = p->gradients.untrained_count };
    for (int i = 0; i < p->layout.tensor_count; i++)
        if (p->layout.tensor[i].location == LOCATION_ARENA)
            facts->sum_of_tensors += p->layout.tensor[i].size;
    for (const leaf *l = p->graph->parameter; l != NULL; l = l->next)
        facts->parameter_count += shape_count(l->shape);
}

kernel_facts program_kernel(const program *p, int index)
{
    const program_call *c = p->calls.call + index;

    return (kernel_facts){ .section = c->section,
        .kind = c->packs ? "pack" : kernel_kind_name(c->request->kind),
        .name = c->request->name != NULL ? c->request->name : "",
        .implementation = c->packs ? p->calls.call[c->pack_call].kernel.implementation
                                   : c->kernel.implementation,
        .bytes = c->bytes, .flop = c->flop, .arena = c->alive, .nodes = c->nodes,
        .type = c->request->input_count > 0 ? c->request->input[0].type : PONS_F32,
        .tf32 = c->request->tf32 };
}

void program_kernel_name(const program *p, int index, char *out, size_t size)
{
    const char *name = program_kernel(p, index).name;
    int before = 0;

    for (int i = 0; i < index; i++)
        before += strcmp(program_kernel(p, i).name, name) == 0;
    snprintf(out, size, before > 0 ? "%s#%d" : "%s", name, before + 1);
}

const char *program_untrained(const program *p, int index)
{
    return p->gradients.untrained[index];
}

static bool seen_before(const graph_op *first, const graph_op *op)
{
    for (; first != op; first = first->next)
        if (first->plugin == op->plugin)
            return true;
    return false;
}

const struct plugin *program_op(const program *p, int index)
{
    for (const graph_op *op = p->graph->op; op != NULL; op = op->next)
        if (!seen_before(p->graph->op, op) && index-- == 0)
            return op->plugin;
    return NULL;
}

void program_watch(program *p, program_after *after, void *context)
{
    p->watch.after = after;
    p->watch.context = context;
}
