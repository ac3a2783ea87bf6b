/*
 * map_kernel.c - prepare a map kernel: a plan from a pons_map, and the layout of its scratch
 * memory.
 *
 * The device accepts every map. map_pass.c makes the passes, map_run.c runs them.
 */
#include "cpu/cpu.h"
#include "cpu/map/map_internal.h"
#include "cpu/map/jit/jit.h"

#include <stdlib.h>

#include "base/integer.h"

typedef struct map_memory {
    struct map_memory *next;
    _Alignas(max_align_t) char first[];
} map_memory;

void *map_allocate(map_plan *plan, size_t count, size_t size)
{
    map_memory *m;

    if (size != 0 && count > (SIZE_MAX / 2 - sizeof *m) / size)
        return NULL;
    m = calloc(1, sizeof *m + (count * size > 0 ? count * size : 1));
    if (m == NULL)
        return NULL;
    m->next = plan->memory;
    plan->memory = m;
    return m->first;
}

void map_release(map_plan *plan)
{
    map_memory *m = plan->memory;

    while (m != NULL) {
        map_memory *next = m->next;
        free(m);
        m = next;
    }
    plan->memory = NULL;
}

static void plan_free(map_plan *plan)
{
    for (int k = 0; k < plan->pass_count; k++)
        jit_free(&plan->pass[k]);
    map_release(plan);
    free(plan);
}

/* The points of the index space; 0 in the ragged form. */
static int64_t points_of(const pons_map *m)
{
    int64_t n = m->segment_count == 0;

    for (int a = 0; a < m->axis_count; a++)
        n *= m->extent[a];
    return n;
}

/*
 * Outputs of 'non_temporal_size' bytes and more are stored non-temporally, except in the ragged
 * form: its outputs share the memory of inputs, which is in the cache.
 */
static bool operands_make(map_plan *plan, int64_t non_temporal_size)
{
    const pons_map *m = plan->map;

    plan->load = map_allocate(plan, (size_t)m->load_count, sizeof *plan->load);
    plan->store = map_allocate(plan, (size_t)m->store_count, sizeof *plan->store);
    plan->reduce = map_allocate(plan, (size_t)m->reduction_count, sizeof *plan->reduce);
    if (plan->load == NULL || plan->store == NULL || plan->reduce == NULL)
        return false;
    for (int v = 0; v < m->value_count; v++) {
        const pons_value *x = &m->value[v];
        if (x->operation == PONS_VALUE_LOAD
            && !map_access_make(plan, &m->load[x->operand], !x->per_point, &plan->load[x->operand]))
            return false;
    }
    for (int i = 0; i < m->store_count; i++) {
        if (!map_access_make(plan, &m->store[i].to, !m->value[m->store[i].value].per_point,
                             &plan->store[i]))
            return false;
        plan->store[i].stream = points_of(m) * (int64_t)map_type_size(plan->store[i].type)
                              >= non_temporal_size
                              && plan->lanes->machine->non_temporal != NULL;
    }
    for (int i = 0; i < m->reduction_count; i++) {
        const pons_reduction *from = &m->reduction[i];
        bool per_channel = !m->value[from->value].per_point;
        map_reduce *r = &plan->reduce[i];
        r->kind = from->kind;
        r->groups = from->groups;
        r->value = from->value;
        r->rows = per_channel ? plan->rows : 1;
        for (int k = 0; k < (from->kind == PONS_REDUCE_MOMENTS ? 2 : 1); k++)
            if (!map_access_make(plan, &from->to[k], per_channel, &r->to[k]))
                return false;
    }
    return true;
}

/*
 * Layout of the scratch memory: the workers, the shared results of a call, the memory of the
 * workers.
 */
static void layout_scratch(map_plan *plan)
{
    size_t at = round_up_size((size_t)plan->threads * sizeof(map_worker), 64);

    for (int i = 0; i < plan->map->reduction_count; i++)
        if (plan->reduce[i].groups > 0) {
            plan->reduce[i].dense_at = at;
            at += round_up_size((size_t)plan->reduce[i].dense_count * 2 * sizeof(float), 64);
        }
    for (int i = 0; i < plan->pass_count; i++) {
        map_pass *p = &plan->pass[i];
        size_t size = map_worker_size(p);
        plan->worker_size = max_size(size, plan->worker_size);
        if (p->reduce_count == 0 || p->blocks_per_group == 1)
            continue;
        p->partial_at = at;
        at += round_up_size((size_t)p->block_count * p->partial_floats * sizeof(float), 64);
        p->count_at = at;
        at += round_up_size((size_t)p->block_count * (size_t)p->reduce_count * sizeof(double), 64);
    }
    plan->worker_at = at;
    plan->scratch_size = at + (size_t)plan->threads * plan->worker_size;
}

static bool same_address(const pons_map *m, const pons_operand *a, const pons_operand *b)
{
    if (map_type_size(a->type) != map_type_size(b->type) || a->offset != b->offset
        || a->index != b->index)
        return false;
    for (int i = 0; i < m->axis_count && m->segment_count == 0; i++)
        if (m->extent[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return true;
}

/*
 * The inputs whose memory output 0 may share: those that are read only at the element that is
 * written.
 */
static uint64_t shared_inputs(const pons_request *request, const pons_map *m)
{
    const pons_operand *to = NULL;
    uint64_t share = 0, other = 0;

    for (int i = 0; i < m->store_count; i++)
        if (m->store[i].to.tensor == 0) {
            if (to != NULL)
                return 0;
            to = &m->store[i].to;
        }
    for (int i = 0; i < m->reduction_count; i++)
        if (m->reduction[i].to[0].tensor == 0 || m->reduction[i].to[1].tensor == 0)
            to = NULL;
    if (to == NULL || to->index == PONS_INDEX_SEGMENT || to->index == PONS_INDEX_SCALAR)
        return 0;
    for (int i = 0; i < m->load_count; i++) {
        int t = m->load[i].tensor;
        if (t >= 64)
            continue;
        if (same_address(m, &m->load[i], to))
            share |= UINT64_C(1) << t;
        else
            other |= UINT64_C(1) << t;
    }
    return share & ~other;
}

static void kernel_free(pons_kernel *kernel) { plan_free(kernel->state); }

/* Passes over single points are interpreted beside those that are compiled. */
static bool is_compiled(const map_plan *plan)
{
    bool any = false;

    for (int k = 0; k < plan->pass_count; k++)
        any = any || plan->pass[k].compiled != NULL;
    return any;
}

pons_status map_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                        bool *supported, pons_error *err)
{
    map_plan *plan = calloc(1, sizeof *plan);

    *supported = true;
    if (plan == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    plan->map = request->attributes;
    plan->lanes = device->lanes;
    plan->threads = device->threads;
    if (!map_space_make(plan) || !operands_make(plan, device->non_temporal_size)
        || !map_nodes_make(plan)
        || !map_passes_make(plan)) {
        plan_free(plan);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    for (int k = 0; k < plan->pass_count && device->compiles_maps; k++)
        if (plan->pass[k].stores == PONS_INDEX_ELEMENT) /* no compiled code for single points */
            jit_compile(plan, &plan->pass[k]);
    layout_scratch(plan);
    kernel->run = map_run_all;
    kernel->free = kernel_free;
    kernel->state = plan;
    kernel->implementation = is_compiled(plan) ? "jit" : "interpreter";
    kernel->scratch_size = plan->scratch_size;
    kernel->share = shared_inputs(request, plan->map);
    return PONS_OK;
}
