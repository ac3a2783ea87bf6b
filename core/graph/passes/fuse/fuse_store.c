/*
 * fuse_store.c - expressions worth storing: many units would compute them from many tensors.
 */
#include "graph/passes/fuse/fuse.h"

/* users[n]: units that compute expression n. */
static void count_users(fusion *f, int *users)
{
    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        fuse_walk w = { .f = f, .stamp = ++f->stamp, .visits = users };

        for (int k = 0; u->map && k < u->sink_count; k++)
            fuse_walk_sink(&w, u->sink[k]);
    }
}

/* Tensors as large as the space that the expression x is computed from. */
static int large_reads(fusion *f, pons_node *x, arena *scratch)
{
    fuse_unit reads = { 0 };
    fuse_walk w = { .f = f, .stamp = ++f->stamp };
    int large = 0;

    fuse_walk_sink(&w, x);
    reads.read_room = w.count;
    reads.read = arena_alloc(scratch, sizeof(*reads.read) * (size_t)reads.read_room);
    w.u = &reads;
    w.stamp = ++f->stamp;
    fuse_walk_sink(&w, x);
    for (int k = 0; k < reads.read_count; k++)
        large += reads.read[k].whole;
    return large;
}

static void store(fusion *f, pons_node *x, int *below)
{
    fuse_walk w = { .f = f, .stamp = ++f->stamp, .visits = below };

    fuse_walk_sink(&w, x);
    f->sink[x->number] = true;
}

/*
 * Where several units compute x from several large tensors: beyond (units - 1) (tensors - 1) = 2
 * storing it moves fewer bytes. Later nodes first: what lies below a stored one is computed less
 * often then, and is looked at in the next round.
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

        if (users[i] < 2 || f->sink[i] || below[i] > 0)
            continue;
        if ((users[i] - 1) * (large_reads(f, x, scratch) - 1) <= 2)
            continue;
        store(f, x, below);
        changed = true;
    }
    arena_free(scratch);
    return changed;
}
