/*
 * fuse_join.c - join units into one kernel.
 *
 * Two units join when one reads the other's outputs point by point, or when both read the same
 * large tensor. No path through a third unit may lead from one to the other, and the values alive
 * at once must fit into the L1 cache.
 */
#include "graph/passes/fuse/fuse.h"

#include <assert.h>
#include <string.h>

#include "base/integer.h"
#include "graph/ir/shape.h"

#define TILES_MAX 12         /* limit of live tiles: 12 tiles of 1024 lanes stay in the L1 cache  */
#define SMALL_SPACE 16384    /* points; below it launch overhead dominates, and any units join    */
#define OUTPUTS_MAX 24
#define READS_MAX 40

static const fuse_unit *producer_of(const fusion *f, const fuse_read *read)
{
    return fuse_unit_of(f, read->tensor);
}

/*
 * Whether 'from' depends on 'to'. With 'direct', pointwise reads of 'to' by 'from' itself do not
 * count, as joining removes them.
 */
static bool unit_depends(fusion *f, fuse_unit *from, const fuse_unit *to, bool direct)
{
    if (from->visited == f->stamp)
        return false;
    from->visited = f->stamp;
    for (int i = 0; i < from->read_count; i++) {
        fuse_unit *u = fuse_unit_of(f, from->read[i].tensor);

        if (u == NULL || u == from)
            continue;
        if (u == to) {
            if (!direct || !from->read[i].pointwise)
                return true;
            continue;
        }
        if (unit_depends(f, u, to, false))
            return true;
    }
    return false;
}

static bool units_independent(fusion *f, fuse_unit *a, fuse_unit *b)
{
    f->stamp++;
    if (unit_depends(f, b, a, true))
        return false;
    f->stamp++;
    return !unit_depends(f, a, b, true);
}

/* The common space of two units; false: there is none. */
static bool join_space(const fuse_unit *a, const fuse_unit *b, pons_shape *space, int *channels)
{
    const fuse_unit *larger = a->space.rank >= b->space.rank ? a : b;
    const fuse_unit *other = larger == a ? b : a;
    pons_shape points = larger->space;

    *space = larger->space;
    *channels = larger->channels > 0 ? larger->channels : other->channels;
    if (shape_equal(a->space, b->space))
        return a->channels == b->channels || a->channels == 0 || b->channels == 0;
    assert(points.rank > 0);
    points.extent[--points.rank] = 0;
    if (points.rank == 0)
        points.extent[points.rank++] = 1;
    *channels = larger->channels;
    return larger->channels > 0 && other->channels == 0 && !other->random &&
           shape_equal(points, other->space);
}

/*
 * Whether a read has an element for each point of the unit's space, or for each point before its
 * channels.
 */
static bool is_large(const fuse_unit *u, const fuse_read *read)
{
    pons_shape s = shape_squeeze(read->tensor->shape);

    if (s.rank >= u->space.rank)
        return read->whole;
    s.extent[s.rank++] = 1;
    return read->whole || fuse_is_per_point_beside(s, u->space);
}

static bool shares_read(const fuse_unit *a, const fuse_unit *b)
{
    for (int i = 0; i < a->read_count; i++)
        for (int k = 0; is_large(a, &a->read[i]) && k < b->read_count; k++)
            if (is_large(b, &b->read[k]) && b->read[k].tensor == a->read[i].tensor)
                return true;
    return false;
}

static bool reads_output(const fusion *f, const fuse_unit *a, const fuse_unit *b)
{
    for (int i = 0; i < a->read_count; i++)
        if (a->read[i].pointwise && producer_of(f, &a->read[i]) == b)
            return true;
    return false;
}

static void union_of(const fuse_unit *a, const fuse_unit *b, arena *arena, fuse_unit *out)
{
    const fuse_unit *part[2] = { a->first < b->first ? a : b, a->first < b->first ? b : a };

    *out = *part[0];
    out->output = arena_alloc(arena, sizeof(*out->output) * (size_t)(a->output_count
                                                                     + b->output_count));
    out->read_room = a->read_count + b->read_count;
    out->read = arena_alloc(arena, sizeof(*out->read) * (size_t)out->read_room);
    out->output_count = out->read_count = 0;
    out->last = max_int(a->last, b->last);
    out->random = a->random || b->random;
    out->again = a->again && b->again;
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < part[p]->output_count; i++)
            out->output[out->output_count++] = part[p]->output[i];
        for (int i = 0; i < part[p]->read_count; i++)
            fuse_add_read(out, part[p]->read[i].tensor, part[p]->read[i].pointwise,
                          part[p]->read[i].whole);
    }
}

/* Drop the unit's reads of its own outputs, which need no memory. */
static void drop_own_reads(const fusion *f, fuse_unit *u)
{
    int count = 0;

    for (int i = 0; i < u->read_count; i++)
        if (fuse_unit_of(f, u->read[i].tensor) != u)
            u->read[count++] = u->read[i];
    u->read_count = count;
}

static int unit_pressure(const fusion *f, const fuse_unit *u, arena *scratch)
{
    pons_node **node = arena_alloc(scratch, sizeof(*node) * (size_t)(u->read_count + 1 +
                                                                     2 * u->output_count));
    int inputs, outputs;
    lowering l;

    fuse_lower(f, u, scratch, &l, node, &inputs, node + u->read_count + 1, &outputs);
    return lowering_pressure(&l);
}

/* Whether joining saves memory traffic and no third unit stands between the two. */
static bool should_join(fusion *f, fuse_unit *a, fuse_unit *b, pons_shape *space, int *channels)
{
    if (a->begin || b->begin || a->backward != b->backward ||
        a->output_count + b->output_count > OUTPUTS_MAX || !join_space(a, b, space, channels))
        return false;
    if (!reads_output(f, a, b) && !reads_output(f, b, a) && !shares_read(a, b) &&
        (shape_count(*space) > SMALL_SPACE || a->again || b->again))
        return false;
    return units_independent(f, a, b);
}

static void *copy_list(arena *a, const void *list, size_t size)
{
    void *own = arena_alloc(a, size);

    memcpy(own, list, size);
    return own;
}

/* Join 'b' into 'a' if the result is one good kernel. A failed trial leaves no memory behind. */
static bool join_units(fusion *f, fuse_unit *a, fuse_unit *b)
{
    fuse_unit both, old = *a;
    pons_shape space;
    int channels;
    arena *scratch;
    bool good;

    if (!should_join(f, a, b, &space, &channels))
        return false;
    scratch = arena_new();
    union_of(a, b, scratch, &both);
    both.space = space;
    both.channels = channels;
    b->into = a;
    *a = both;
    drop_own_reads(f, a);
    good = a->read_count <= READS_MAX && unit_pressure(f, a, scratch) <= TILES_MAX;
    if (good) {
        a->output = copy_list(f->arena, a->output, sizeof(*a->output) * (size_t)a->output_count);
        a->read = copy_list(f->arena, a->read, sizeof(*a->read) * (size_t)a->read_count);
        a->read_room = a->read_count;
    } else {
        b->into = NULL;
        *a = old;
    }
    arena_free(scratch);
    return good;
}

void fuse_join(fusion *f)
{
    int count = 0;

    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        bool joined = false;

        for (int k = count - 1; u->map && !joined && k >= 0; k--)
            joined = f->unit[k]->map && join_units(f, f->unit[k], u);
        if (!joined)
            f->unit[count++] = u;
    }
    f->unit_count = count;
}
