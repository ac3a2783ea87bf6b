/*
 * fuse_store.c - expressions worth storing: many units would compute them from many tensors.
 */
#include "graph/fuse.h"

/* users[n]: units that compute expression n. */
static void count_users(fusion *f, int *users, int *seen)
{
    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        fuse_walk w = { .f = f, .seen = seen, .stamp = ++f->stamp };

        for (int k = 0; u->map && k < u->sink_count; k++)
            fuse_walk_sink(&w, u->sink[k]);
        for (int n = 0; u->map && n <= u->last; n++)
            users[n] += seen[n] == w.stamp;
    }
}

/* Tensors as large as the space that the expression x is computed from; marks what lies between. */
static int large_reads(fusion *f, pons_node *x, arena *scratch, int *seen)
{
    fuse_unit reads = { 0 };
    fuse_walk w = { .f = f, .seen = seen, .stamp = ++f->stamp };
    int large = 0;

    fuse_walk_sink(&w, x);
    reads.read = arena_alloc(scratch, sizeof(*reads.read) * (size_t)(w.count + 1));
    w.u = &reads;
    w.stamp = ++f->stamp;
    fuse_walk_sink(&w, x);
    for (int k = 0; k < reads.read_count; k++)
        large += reads.read[k].whole;
    return large;
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
    int *users = arena_alloc(scratch, sizeof(int) * size);
    int *seen = arena_alloc(scratch, sizeof(int) * size);
    int *below = arena_alloc(scratch, sizeof(int) * size);
    bool changed = false;

    count_users(f, users, seen);
    for (int i = f->g->node_count - 1; i >= 0; i--) {
        pons_node *x = f->g->node[i];

        if (users[i] < 2 || f->sink[i] || below[i])
            continue;
        if ((users[i] - 1) * (large_reads(f, x, scratch, seen) - 1) <= 2)
            continue;
        for (int n = 0; n < i; n++)
            below[n] = below[n] || seen[n] == f->stamp;
        f->sink[i] = true;
        changed = true;
    }
    arena_free(scratch);
    return changed;
}
