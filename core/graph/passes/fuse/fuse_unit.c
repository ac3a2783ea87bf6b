/*
 * fuse_unit.c - the unit of one output: its index space and its reads.
 *
 * A walk follows the expression below the output down to tensors in memory. Each read tells whether
 * its producer may join the unit and whether it is as large as the unit's space.
 */
#include "graph/passes/fuse/fuse.h"

#include <assert.h>
#include <string.h>

#include "graph/ir/shape.h"

fuse_unit *fuse_unit_of(const fusion *f, const pons_node *tensor)
{
    fuse_unit *u = f->unit_of[tensor->number];

    while (u && u->into)
        u = u->into;
    return u;
}

void fuse_add_read(fuse_unit *u, pons_node *tensor, bool pointwise, bool whole)
{
    for (int i = 0; i < u->read_count; i++)
        if (u->read[i].tensor == tensor) {
            u->read[i].pointwise = u->read[i].pointwise && pointwise;
            u->read[i].whole = u->read[i].whole || whole;
            return;
        }
    assert(u->read_count < u->read_room);
    u->read[u->read_count++] = (fuse_read){ tensor, pointwise, whole };
}

static void walk_tensor(fuse_walk *w, pons_node *tensor, bool pointwise, bool whole)
{
    w->count++;
    if (w->u)
        fuse_add_read(w->u, tensor, pointwise, whole);
}

/*
 * Walk the tensors that a reader of 'owner' needs in memory: the owner, the cropped tensor, or the
 * parts.
 */
static void walk_memory(fuse_walk *w, pons_node *owner, bool pointwise, bool whole)
{
    switch (fuse_form_of(w->f, owner)) {
    case FUSE_VIEW:
        walk_memory(w, node_owner(owner->input[0]), false, whole);
        break;
    case FUSE_PARTS:
        for (int i = 0; i < owner->input_count; i++)
            walk_tensor(w, owner->input[i], false, whole);
        break;
    default:
        walk_tensor(w, owner, pointwise, whole);
    }
}

/* Whether each point of 'at' reads its own element of the expression 'x'. */
static bool is_pointwise(const fuse_walk *w, const pons_node *x, const pons_node *owner,
                         pons_shape at)
{
    if (w->u == NULL || !fuse_is_value(w->f, owner) || !fuse_same_space(owner->shape, x->shape))
        return false;
    return fuse_same_space(owner->shape, at) ||
           (fuse_is_per_point_beside(x->shape, at) && w->u->channels == at.extent[at.rank - 1] &&
            !w->f->random[owner->number]);
}

static void walk_expression(fuse_walk *w, pons_node *x);

static void walk_read(fuse_walk *w, pons_node *x, pons_shape at)
{
    pons_node *owner = node_owner(x);
    fuse_source source = fuse_source_of(w->f, x);

    if (source == FUSE_INSIDE)
        walk_expression(w, owner);
    else if (source != FUSE_COMPUTED)
        walk_memory(w, owner, is_pointwise(w, x, owner, at), fuse_same_space(owner->shape, at));
}

static void walk_expression(fuse_walk *w, pons_node *x)
{
    if (w->f->seen[x->number] == w->stamp)
        return;
    w->f->seen[x->number] = w->stamp;
    if (w->visits)
        w->visits[x->number]++;
    if (w->u)
        w->u->random = w->u->random || w->f->random[x->number];
    for (int i = 0; i < x->input_count; i++)
        walk_read(w, x->input[i], fuse_is_inner(w->f, x) ? x->input[i]->shape : x->shape);
}

void fuse_walk_output(fuse_walk *w, pons_node *output)
{
    if (fuse_is_value(w->f, output))
        walk_expression(w, output);
    else
        walk_read(w, output->input[0], output->input[0]->shape);
}

static void set_space(const fusion *f, fuse_unit *u, const pons_node *x)
{
    u->space = shape_squeeze(x->shape);
    u->channels = f->channels[x->number];
    if (u->channels > 0 && f->per_point[x->number]) {
        if (shape_count(u->space) == 1)
            u->space.rank = 0;
        assert(u->space.rank < PONS_RANK_MAX);
        u->space.extent[u->space.rank++] = u->channels;
    }
}

static bool is_begin(pons_node *x)
{
    return x->kind == NODE_CAST && node_owner(x->input[0])->kind == NODE_PARAMETER;
}

static fuse_unit *unit_new(fusion *f, pons_node *x)
{
    fuse_unit *u = arena_alloc(f->arena, sizeof(*u));

    u->output = arena_alloc(f->arena, sizeof(*u->output));
    u->output[u->output_count++] = x;
    u->first = u->last = x->number;
    u->backward = x->backward;
    u->again = x->copy_of != NULL;
    u->begin = is_begin(x);
    f->unit_of[x->number] = u;
    if (f->unit_count == f->unit_room) {
        fuse_unit **old = f->unit;

        f->unit_room = f->unit_room ? 2 * f->unit_room : 64;
        f->unit = arena_alloc(f->arena, sizeof(*f->unit) * (size_t)f->unit_room);
        if (f->unit_count > 0)
            memcpy(f->unit, old, sizeof(*f->unit) * (size_t)f->unit_count);
    }
    f->unit[f->unit_count++] = u;
    return u;
}

static void choose_space(const fusion *f, fuse_unit *u, const pons_node *x)
{
    if (fuse_is_value(f, x))
        set_space(f, u, x);
    else if (fuse_source_of(f, x->input[0]) == FUSE_INSIDE)
        set_space(f, u, node_owner(x->input[0]));
    else
        u->space = shape_squeeze(x->input[0]->shape);
}

void fuse_unit_make(fusion *f, pons_node *x)
{
    fuse_unit *u = unit_new(f, x);
    fuse_walk w = { .f = f };

    u->map = fuse_is_value(f, x) || fuse_is_reduction(x);
    if (u->map)
        choose_space(f, u, x);
    for (int pass = 0; pass < 2; pass++) {
        w.stamp = ++f->stamp;
        w.u = pass ? u : NULL;
        if (pass) {
            u->read_room = w.count;
            u->read = arena_alloc(f->arena, sizeof(*u->read) * (size_t)u->read_room);
        }
        if (u->map)
            fuse_walk_output(&w, x);
        for (int i = 0; !u->map && i < x->input_count; i++)
            walk_memory(&w, node_owner(x->input[i]), false, false);
    }
}
