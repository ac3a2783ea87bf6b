/*
 * fuse_store.c - materialise expressions that many units would compute from many tensors.
 */
#include "graph/passes/fuse/fuse.h"

/* users[n]: the number of units that compute expression n. */
static void count_users(fusion *f, int *users)
{
    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        fuse_walk w = { .f = f, .stamp = ++f->stamp, .visits = users };

        for (int k = 0; u->map && k < u->output_count; k++)
            fuse_walk_output(&w, u->output[k]);
    }
}

/* The number of tensors as large as the space from which the expression 'x' is computed. */
static int large_reads(fusion *f, pons_node *x, arena *scratch)
{
    fuse_unit reads = { 0 };
    fuse_walk w = { .f = f, .stamp = ++f->stamp };
    int large = 0;

    fuse_walk_output(&w, x);
    reads.read_room = w.count;
    reads.read = arena_alloc(scratch, sizeof(*reads.read) * (size_t)reads.read_room);
    w.u = &reads;
    w.stamp = ++f->stamp;
    fuse_walk_output(&w, x);
    for (int k = 0; k < reads.read_count; k++)
        large += reads.read[k].whole;
    return large;
}

static void store_expression(fusion *f, pons_node *x, int *below)
{
    fuse_walk w = { .f = f, .stamp = ++f->stamp, .visits = below };

    fuse_walk_output(&w, x);
    f->materialised[x->number] = true;
}

/*
 * Storing 'x' moves fewer bytes if (units - 1) (large tensors - 1) > 2. Later nodes come first: the
 * expressions below a stored one have fewer users and wait for the next round.
 */
bool fuse_store_costly(fusion *f)
{
    arena *scratch = arena_new();
    size_t size = (size_t)f->g->node_count + 1;
    int *users = arena_alloc(scratch, sizeof(*users) * size);
    int *below = arena_alloc(scratch, sizeof(*below) * size);
    bool changed = false;

    count_users(f, users);
    for (int i = f->g->node_count - 1; i >= 0; i--) {
        pons_node *x = f->g->node[i];

        if (users[i] < 2 || f->materialised[i] || below[i] > 0)
            continue;
        if ((users[i] - 1) * (large_reads(f, x, scratch) - 1) <= 2)
            continue;
        store_expression(f, x, below);
        changed = true;
    }
    arena_free(scratch);
    return changed;
}
