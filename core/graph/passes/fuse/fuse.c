/*
 * fuse.c - the pass that decides which nodes share a kernel, and which of them are materialised in
 * memory.
 *
 * Nodes that must be in memory and reductions are materialised (fuse_materialise.c). A unit
 * computes outputs of one index space from tensors in memory (fuse_unit.c). It computes the
 * expressions in between itself, as every other unit that needs them does: that costs arithmetic
 * and saves memory traffic. Units join into one kernel (fuse_join.c). An expression that many units
 * would compute from many tensors is materialised after all (fuse_store.c). Both repeat until
 * nothing changes. fuse_lower.c makes the requests.
 */
#include "graph/passes/fuse/fuse.h"

#include <string.h>

static bool is_leaf(const pons_node *x)
{
    return x->kind >= NODE_INPUT && x->kind <= NODE_SCALAR;
}

static void mark_live(fusion *f)
{
    for (int i = 0; i < f->root_count; i++)
        f->live[f->root[i]->number] = true;
    for (int i = f->g->node_count - 1; i >= 0; i--)
        for (int k = 0; f->live[i] && k < f->g->node[i]->input_count; k++)
            f->live[f->g->node[i]->input[k]->number] = true;
}

static void mark_uniform(fusion *f)
{
    for (int i = 0; i < f->g->node_count; i++) {
        const pons_node *x = f->g->node[i];
        bool uniform = x->kind == NODE_CONSTANT ||
                       ((node_is_map(x) || x->kind == NODE_BROADCAST) && x->input_count > 0);

        for (int k = 0; k < x->input_count; k++)
            uniform = uniform && f->uniform[x->input[k]->number];
        f->uniform[i] = uniform;
    }
}

/* The first SECOND of each moments node. */
static void find_seconds(fusion *f)
{
    for (int i = f->g->node_count - 1; i >= 0; i--)
        if (f->g->node[i]->kind == NODE_SECOND)
            f->second[f->g->node[i]->input[0]->number] = f->g->node[i];
}

static void make_units(fusion *f)
{
    f->unit_count = 0;
    memset(f->unit_of, 0, sizeof(*f->unit_of) * (size_t)f->g->node_count);
    for (int i = 0; i < f->g->node_count; i++) {
        pons_node *x = f->g->node[i];

        if (!f->live[i] || is_leaf(x) || x->kind == NODE_RESHAPE || f->view[i] ||
            x->kind == PONS_MAP_STOP_GRADIENT || fuse_in_parts(f, x))
            continue;
        if (x->kind == NODE_SECOND)
            f->unit_of[i] = f->unit_of[x->input[0]->number];
        else if (!fuse_is_value(f, x) || f->materialised[i])
            fuse_unit_make(f, x);
    }
}

void fuse_graph(fusion *f)
{
    size_t size = (size_t)f->g->node_count + 1;

    f->live = arena_alloc(f->arena, size);
    f->materialised = arena_alloc(f->arena, size);
    f->uniform = arena_alloc(f->arena, size);
    f->view = arena_alloc(f->arena, size);
    f->per_point = arena_alloc(f->arena, size);
    f->random = arena_alloc(f->arena, size);
    f->channels = arena_alloc(f->arena, sizeof(int) * size);
    f->unit_of = arena_alloc(f->arena, sizeof(*f->unit_of) * size);
    f->part_of = arena_alloc(f->arena, sizeof(*f->part_of) * size);
    f->second = arena_alloc(f->arena, sizeof(*f->second) * size);
    f->seen = arena_alloc(f->arena, sizeof(*f->seen) * size);
    mark_live(f);
    mark_uniform(f);
    find_seconds(f);
    if (!f->off) {
        fuse_mark_views(f);
        fuse_mark_parts(f);
    }
    do {
        fuse_materialise(f);
        make_units(f);
        if (f->off)
            return;
        fuse_join(f);
    } while (fuse_store_costly(f));
}
