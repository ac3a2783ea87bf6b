/*
 * fuse.c - which nodes share a kernel, and which of them reach memory.
 *
 * Sinks are the nodes that must be in memory (outputs, arguments of convolutions and of other
 * kinds of kernels, operands that are repeated along an axis) and the reductions. A unit computes
 * sinks of one index space from tensors in memory; what lies between is computed in passing, again
 * in every unit that needs it, which costs arithmetic and saves the bytes of storing it. Units
 * join when one reads the other's sinks point by point or when both read the same large tensor, as
 * long as no path leads from one to the other through a third. An expression that many units would
 * compute from many tensors becomes a sink after all.
 *
 * In channel form (at most 64 channels) reductions over the channels are part of the expression.
 */
#include "graph/fuse.h"

#include <string.h>

#define CHANNELS_MAX 64
#define TILES_MAX 12         /* joining stops there: 12 tiles of 1024 lanes stay in the L1 cache  */
#define SMALL_SPACE 16384    /* points of a unit that is all overhead: join whatever fits         */
#define SINKS_MAX 24
#define READS_MAX 40

/* ---- what nodes are -------------------------------------------------------------------------- */

bool fuse_is_expression(const pons_node *x)
{
    return node_is_map(x) || x->kind == NODE_BROADCAST || x->kind == NODE_UNIFORM ||
           x->kind == NODE_NORMAL || x->kind == NODE_IOTA || x->kind == NODE_CONSTANT;
}

bool fuse_is_reduction(const pons_node *x)
{
    return x->kind == NODE_SUM || x->kind == NODE_MAXIMUM || x->kind == NODE_MINIMUM ||
           x->kind == NODE_MOMENTS;
}

static bool is_leaf(const pons_node *x)
{
    return x->kind >= NODE_INPUT && x->kind <= NODE_SCALAR;
}

pons_node *plan_owner(pons_node *x)
{
    while (x->kind == NODE_RESHAPE || x->kind == PONS_MAP_STOP_GRADIENT)
        x = x->input[0];
    return x;
}

static bool same_space(pons_shape a, pons_shape b)
{
    return shape_equal(shape_squeeze(a), shape_squeeze(b));
}

/* A reduction over the last axis alone, few enough channels for the channel form. */
static bool is_channel_reduction(const pons_node *x)
{
    pons_shape s = x->input_count > 0 ? x->input[0]->shape : x->shape;
    int64_t channels = s.rank > 0 ? s.extent[s.rank - 1] : 1;

    if (s.rank == 0 || channels < 2 || channels > CHANNELS_MAX)
        return false;
    if (x->kind == NODE_ARG_MAX)
        return x->attribute.axis == s.rank - 1;
    return (x->kind == NODE_SUM || x->kind == NODE_MAXIMUM || x->kind == NODE_MINIMUM) &&
           x->attribute.axes == PONS_AXIS(s.rank - 1);
}

/* A reduction that is computed as part of an expression. */
static bool is_inner_reduction(const fusion *f, const pons_node *x)
{
    return !f->off && is_channel_reduction(x);
}

static bool is_expression(const fusion *f, const pons_node *x)
{
    return fuse_is_expression(x) || is_inner_reduction(f, x);
}

static bool in_memory(const fusion *f, const pons_node *owner)
{
    return !is_expression(f, owner) || f->sink[owner->number];
}

/* x [..., 1] beside 'at' [..., C]: x is computed once for each point before the channels. */
static bool is_narrow_beside(pons_shape x, pons_shape at)
{
    int64_t channels = at.rank > 0 ? at.extent[at.rank - 1] : 1;

    if (channels < 2 || channels > CHANNELS_MAX || x.rank > at.rank || x.rank == 0 ||
        x.extent[x.rank - 1] != 1)
        return false;
    for (int i = 0; i < at.rank - 1; i++) {
        int own = i - (at.rank - x.rank);
        if ((own >= 0 ? x.extent[own] : 1) != at.extent[i])
            return false;
    }
    return true;
}

/* ---- liveness -------------------------------------------------------------------------------- */

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

/* ---- sinks ----------------------------------------------------------------------------------- */

static void need_memory(fusion *f, pons_node *x)
{
    pons_node *owner = plan_owner(x);

    if (is_expression(f, owner))
        f->sink[owner->number] = true;
}

/*
 * The channel form that the expression 'x', seen as 'shape', asks of its reader of shape 'at';
 * -1: it cannot be inside.
 */
static int channels_for(const fusion *f, const pons_node *x, pons_shape shape, pons_shape at,
                        bool *narrow)
{
    int own = f->channels[x->number];
    int64_t last = at.rank > 0 ? at.extent[at.rank - 1] : 1;

    if (same_space(shape, at)) {
        *narrow = own > 0 && f->narrow[x->number];
        return own;
    }
    *narrow = false;
    if (!is_narrow_beside(shape, at) || f->random[x->number])
        return -1;
    if (own > 0 && (!f->narrow[x->number] || own != (int)last))
        return -1;
    return (int)last;
}

/* Make the expression 'input', seen as 'shape', part of x; false: it has to come from memory. */
static bool read_inside(fusion *f, const pons_node *x, const pons_node *input, pons_shape shape)
{
    bool narrow;
    int channels = channels_for(f, input, shape, x->shape, &narrow);
    int own = f->channels[x->number];
    bool random = f->random[x->number] || f->random[input->number];

    if (channels < 0)
        return false;
    if (own > 0 && channels > 0 && (own != channels || f->narrow[x->number] != narrow))
        return false;
    narrow = channels > 0 ? narrow : f->narrow[x->number];
    if (random && narrow)
        return false;
    f->random[x->number] = random;
    if (channels == 0)
        return true;
    f->channels[x->number] = channels;
    f->narrow[x->number] = narrow;
    return true;
}

/* The channel reduction x reads its argument wide. */
static bool reduce_inside(fusion *f, const pons_node *x, const pons_node *input)
{
    int own = f->channels[input->number];
    int channels = (int)input->shape.extent[input->shape.rank - 1];

    return own == 0 || (own == channels && !f->narrow[input->number]);
}

static void place_expression(fusion *f, pons_node *x)
{
    f->channels[x->number] = 0;
    f->narrow[x->number] = false;
    f->random[x->number] = x->kind == NODE_UNIFORM || x->kind == NODE_NORMAL;
    if (is_inner_reduction(f, x)) {
        pons_node *owner = plan_owner(x->input[0]);

        if (!in_memory(f, owner) &&
            (!same_space(owner->shape, x->input[0]->shape) || !reduce_inside(f, x, owner)))
            need_memory(f, owner);
        f->channels[x->number] = (int)x->input[0]->shape.extent[x->input[0]->shape.rank - 1];
        f->narrow[x->number] = true;
        return;
    }
    for (int i = 0; i < x->input_count; i++) {
        pons_node *owner = plan_owner(x->input[i]);

        if (in_memory(f, owner) || f->uniform[owner->number] ||
            (owner->kind == NODE_IOTA && owner == x->input[i]))
            continue;
        if (!same_space(owner->shape, x->input[i]->shape) ||
            !read_inside(f, x, owner, x->input[i]->shape))
            need_memory(f, owner);
    }
}

static void place_other(fusion *f, pons_node *x)
{
    if (x->kind == NODE_SECOND || x->kind == NODE_RESHAPE)
        return;
    if (fuse_is_reduction(x)) {
        pons_node *owner = plan_owner(x->input[0]);

        if (!same_space(owner->shape, x->input[0]->shape))
            need_memory(f, owner);
        return;
    }
    for (int i = 0; i < x->input_count; i++)
        need_memory(f, x->input[i]);
}

/* Sinks that follow from the graph alone; 'f->sink' may hold more already. */
static void mark_sinks(fusion *f)
{
    for (int i = 0; i < f->root_count; i++)
        need_memory(f, f->root[i]);
    for (int i = 0; i < f->g->node_count; i++) {
        pons_node *x = f->g->node[i];

        if (!f->live[i] || x->kind == PONS_MAP_STOP_GRADIENT)
            continue;
        if (f->off && is_expression(f, x) && x->kind != NODE_CONSTANT && x->kind != NODE_IOTA)
            f->sink[i] = true;
        if (is_expression(f, x))
            place_expression(f, x);
        else
            place_other(f, x);
    }
}

/* A crop that only expressions and reductions read is read in place. */
static void mark_views(fusion *f)
{
    for (int i = 0; i < f->g->node_count; i++)
        f->view[i] = f->live[i] && f->g->node[i]->kind == NODE_CROP;
    for (int i = 0; i < f->root_count; i++)
        f->view[plan_owner(f->root[i])->number] = false;
    for (int i = 0; i < f->g->node_count; i++) {
        const pons_node *x = f->g->node[i];

        for (int k = 0; f->live[i] && k < x->input_count; k++)
            if (!is_expression(f, x) && !fuse_is_reduction(x))
                f->view[plan_owner(x->input[k])->number] = false;
    }
}

/* ---- units ----------------------------------------------------------------------------------- */

fuse_unit *fuse_unit_of(const fusion *f, const pons_node *tensor)
{
    fuse_unit *u = f->unit_of[tensor->number];

    while (u && u->into)
        u = u->into;
    return u;
}

static void add_read(fuse_unit *u, pons_node *tensor, bool pointwise, bool whole)
{
    for (int i = 0; i < u->read_count; i++)
        if (u->read[i].tensor == tensor) {
            u->read[i].pointwise = u->read[i].pointwise && pointwise;
            u->read[i].whole = u->read[i].whole || whole;
            return;
        }
    u->read[u->read_count++] = (fuse_read){ tensor, pointwise, whole };
}

/* What has to be written before 'tensor' can be read: itself, what is cropped, or the parts. */
static void add_memory(const fusion *f, fuse_unit *u, pons_node *tensor, bool pointwise, bool whole)
{
    if (f->view[tensor->number]) {
        add_memory(f, u, plan_owner(tensor->input[0]), false, whole);
    } else if (fuse_in_parts(f, tensor)) {
        for (int i = 0; i < tensor->input_count; i++)
            add_read(u, tensor->input[i], false, whole);
    } else {
        add_read(u, tensor, pointwise, whole);
    }
}

static int memory_count(const fusion *f, const pons_node *tensor)
{
    if (f->view[tensor->number])
        return memory_count(f, plan_owner(tensor->input[0]));
    return fuse_in_parts(f, tensor) ? tensor->input_count : 1;
}

/* Count (or, with 'u', collect) what the expression below x reads. */
typedef struct walk {
    fusion *f;
    fuse_unit *u;
    int count;
    int *seen;
    int stamp;
} walk;

static void walk_expression(walk *w, pons_node *x);

static void walk_read(walk *w, pons_node *x, pons_shape at)
{
    pons_node *owner = plan_owner(x);
    bool same = same_space(owner->shape, at);

    if (w->f->uniform[owner->number])
        return;
    if (!in_memory(w->f, owner)) {
        if (owner->kind != NODE_IOTA)
            walk_expression(w, owner);
        return;
    }
    w->count += memory_count(w->f, owner);
    if (w->u)
        add_memory(w->f, w->u, owner,
                   is_expression(w->f, owner) && same_space(owner->shape, x->shape) &&
                       (same || (is_narrow_beside(x->shape, at) &&
                                 w->u->channels == at.extent[at.rank - 1] &&
                                 !w->f->random[owner->number])),
                   same);
}

static void walk_expression(walk *w, pons_node *x)
{
    if (w->seen[x->number] == w->stamp)
        return;
    w->seen[x->number] = w->stamp;
    if (w->u)
        w->u->random = w->u->random || w->f->random[x->number];
    for (int i = 0; i < x->input_count; i++)
        walk_read(w, x->input[i], is_inner_reduction(w->f, x) ? x->input[i]->shape : x->shape);
}

static void set_space(const fusion *f, fuse_unit *u, const pons_node *x)
{
    u->space = shape_squeeze(x->shape);
    u->channels = f->channels[x->number];
    if (u->channels > 0 && f->narrow[x->number]) {
        if (shape_count(u->space) == 1)
            u->space.rank = 0;
        u->space.extent[u->space.rank++] = u->channels;
    }
}

static bool is_begin(pons_node *x)
{
    return x->kind == NODE_CAST && plan_owner(x->input[0])->kind == NODE_PARAMETER;
}

static fuse_unit *unit_new(fusion *f, pons_node *x)
{
    fuse_unit *u = arena_alloc(f->arena, sizeof(*u));

    u->sink = arena_alloc(f->arena, sizeof(*u->sink));
    u->sink[u->sink_count++] = x;
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

/* The unit of one sink: its space and what it reads. */
static void unit_make(fusion *f, pons_node *x, int *seen)
{
    fuse_unit *u = unit_new(f, x);
    walk w = { .f = f, .seen = seen };

    u->map = is_expression(f, x) || fuse_is_reduction(x);
    if (!u->map) {
        for (int i = 0; i < x->input_count; i++)
            w.count += memory_count(f, plan_owner(x->input[i]));
        u->read = arena_alloc(f->arena, sizeof(*u->read) * (size_t)(w.count + 1));
        for (int i = 0; i < x->input_count; i++)
            add_memory(f, u, plan_owner(x->input[i]), false, false);
        return;
    }
    if (is_expression(f, x)) {
        set_space(f, u, x);
    } else if (in_memory(f, plan_owner(x->input[0]))) {
        u->space = shape_squeeze(x->input[0]->shape);
    } else {
        set_space(f, u, plan_owner(x->input[0]));
    }
    for (int pass = 0; pass < 2; pass++) {
        w.stamp = ++f->stamp;
        w.u = pass ? u : NULL;
        if (pass)
            u->read = arena_alloc(f->arena, sizeof(*u->read) * (size_t)(w.count + 1));
        if (is_expression(f, x))
            walk_expression(&w, x);
        else
            walk_read(&w, x->input[0], x->input[0]->shape);
    }
}

/* ---- joining units --------------------------------------------------------------------------- */

static const fuse_unit *producer_of(const fusion *f, const fuse_read *read)
{
    return fuse_unit_of(f, read->tensor);
}

/* Whether a path leads from 'to' up to 'from', reads that can become part of the unit left out. */
static bool depends(fusion *f, fuse_unit *from, const fuse_unit *to, bool direct)
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
        if (depends(f, u, to, false))
            return true;
    }
    return false;
}

static bool independent(fusion *f, fuse_unit *a, fuse_unit *b)
{
    f->stamp++;
    if (depends(f, b, a, true))
        return false;
    f->stamp++;
    return !depends(f, a, b, true);
}

/* The space of both units together; false when they have none. */
static bool join_space(const fuse_unit *a, const fuse_unit *b, pons_shape *space, int *channels)
{
    const fuse_unit *wide = a->space.rank >= b->space.rank ? a : b;
    const fuse_unit *other = wide == a ? b : a;
    pons_shape narrow = wide->space;

    *space = wide->space;
    *channels = wide->channels > 0 ? wide->channels : other->channels;
    if (shape_equal(a->space, b->space))
        return a->channels == b->channels || a->channels == 0 || b->channels == 0;
    narrow.extent[--narrow.rank] = 0;
    if (narrow.rank == 0)
        narrow.extent[narrow.rank++] = 1;
    *channels = wide->channels;
    return wide->channels > 0 && other->channels == 0 && !other->random &&
           shape_equal(narrow, other->space);
}

static bool shares_read(const fuse_unit *a, const fuse_unit *b)
{
    for (int i = 0; i < a->read_count; i++)
        for (int k = 0; a->read[i].whole && k < b->read_count; k++)
            if (b->read[k].whole && b->read[k].tensor == a->read[i].tensor)
                return true;
    return false;
}

static bool reads_sink(const fusion *f, const fuse_unit *a, const fuse_unit *b)
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
    out->sink = arena_alloc(arena, sizeof(*out->sink) * (size_t)(a->sink_count + b->sink_count));
    out->read = arena_alloc(arena,
                            sizeof(*out->read) * (size_t)(a->read_count + b->read_count + 1));
    out->sink_count = out->read_count = 0;
    out->last = a->last > b->last ? a->last : b->last;
    out->random = a->random || b->random;
    out->again = a->again && b->again;
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < part[p]->sink_count; i++)
            out->sink[out->sink_count++] = part[p]->sink[i];
        for (int i = 0; i < part[p]->read_count; i++)
            add_read(out, part[p]->read[i].tensor, part[p]->read[i].pointwise,
                     part[p]->read[i].whole);
    }
}

/* Reads of sinks of the unit itself are no reads of memory any more. */
static void drop_own_reads(const fusion *f, fuse_unit *u)
{
    int count = 0;

    for (int i = 0; i < u->read_count; i++)
        if (fuse_unit_of(f, u->read[i].tensor) != u)
            u->read[count++] = u->read[i];
    u->read_count = count;
}

static int unit_pressure(fusion *f, const fuse_unit *u)
{
    arena *scratch = arena_new();
    pons_node **node = arena_alloc(scratch, sizeof(*node) * (size_t)(u->read_count + 1 +
                                                                     2 * u->sink_count));
    int inputs, outputs, pressure;
    lowering l;

    fuse_lower(f, u, scratch, &l, node, &inputs, node + u->read_count + 1, &outputs);
    pressure = lowering_pressure(&l);
    arena_free(scratch);
    return pressure;
}

/* Join b into a when the result is one good kernel. */
static bool join(fusion *f, fuse_unit *a, fuse_unit *b)
{
    fuse_unit both;
    fuse_unit old = *a;
    pons_shape space;
    int channels;

    if (a->begin || b->begin || a->backward != b->backward ||
        a->sink_count + b->sink_count > SINKS_MAX || !join_space(a, b, &space, &channels))
        return false;
    if (!reads_sink(f, a, b) && !reads_sink(f, b, a) && !shares_read(a, b) &&
        (shape_count(space) > SMALL_SPACE || a->again || b->again))
        return false;
    if (!independent(f, a, b))
        return false;
    union_of(a, b, f->arena, &both);
    both.space = space;
    both.channels = channels;
    b->into = a;
    *a = both;
    drop_own_reads(f, a);
    if (a->read_count <= READS_MAX && unit_pressure(f, a) <= TILES_MAX)
        return true;
    b->into = NULL;
    *a = old;
    return false;
}

static void join_units(fusion *f)
{
    int count = 0;

    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        bool joined = false;

        for (int k = count - 1; u->map && !joined && k >= 0; k--)
            joined = f->unit[k]->map && join(f, f->unit[k], u);
        if (!joined)
            f->unit[count++] = u;
    }
    f->unit_count = count;
}

/* ---- expressions worth storing --------------------------------------------------------------- */

/* users[n]: units that compute expression n. */
static void count_users(fusion *f, int *users, int *seen)
{
    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        walk w = { .f = f, .seen = seen, .stamp = ++f->stamp };

        for (int k = 0; u->map && k < u->sink_count; k++)
            if (is_expression(f, u->sink[k]))
                walk_expression(&w, u->sink[k]);
            else
                walk_read(&w, u->sink[k]->input[0], u->sink[k]->input[0]->shape);
        for (int n = 0; u->map && n <= u->last; n++)
            users[n] += seen[n] == w.stamp;
    }
}

/* Tensors as large as the space that the expression x is computed from; marks what lies between. */
static int large_reads(fusion *f, pons_node *x, arena *scratch, int *seen)
{
    fuse_unit reads = { 0 };
    walk w = { .f = f, .seen = seen, .stamp = ++f->stamp };
    int large = 0;

    walk_expression(&w, x);
    reads.read = arena_alloc(scratch, sizeof(*reads.read) * (size_t)(w.count + 1));
    w.u = &reads;
    w.stamp = ++f->stamp;
    walk_expression(&w, x);
    for (int k = 0; k < reads.read_count; k++)
        large += reads.read[k].whole;
    return large;
}

/*
 * Where several units compute x from several large tensors: beyond (units - 1) (tensors - 1) = 2
 * storing it moves fewer bytes. Later nodes first: what lies below a stored one is computed less
 * often then, and is looked at in the next round.
 */
static bool store_costly(fusion *f)
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

        if (users[i] < 2 || in_memory(f, x) || below[i])
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

/* ---- the pass -------------------------------------------------------------------------------- */

static void make_units(fusion *f, int *seen)
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
        else if (!is_expression(f, x) || f->sink[i])
            unit_make(f, x, seen);
    }
}

void fuse_graph(fusion *f)
{
    size_t size = (size_t)f->g->node_count + 1;
    int *seen = arena_alloc(f->arena, sizeof(int) * size);

    f->live = arena_alloc(f->arena, size);
    f->sink = arena_alloc(f->arena, size);
    f->uniform = arena_alloc(f->arena, size);
    f->view = arena_alloc(f->arena, size);
    f->narrow = arena_alloc(f->arena, size);
    f->random = arena_alloc(f->arena, size);
    f->channels = arena_alloc(f->arena, sizeof(int) * size);
    f->unit_of = arena_alloc(f->arena, sizeof(*f->unit_of) * size);
    f->part_of = arena_alloc(f->arena, sizeof(*f->part_of) * size);
    mark_live(f);
    mark_uniform(f);
    if (!f->off) {
        mark_views(f);
        fuse_mark_parts(f);
    }
    do {
        mark_sinks(f);
        make_units(f, seen);
        if (f->off)
            return;
        join_units(f);
    } while (store_costly(f));
}

/* ---- lowering a unit ------------------------------------------------------------------------- */

typedef struct unit_lowering {
    const fusion *f;
    const fuse_unit *u;
    pons_node **input;
    int *input_count;
} unit_lowering;

static int place_of(pons_node **list, int *count, pons_node *x)
{
    for (int i = 0; i < *count; i++)
        if (list[i] == x)
            return i;
    list[*count] = x;
    return (*count)++;
}

/* The crop 'x' as an operand in the cropped tensor. */
static void view_operand(unit_lowering *c, const pons_node *x, pons_shape at, pons_operand *load)
{
    const pons_crop_attributes *crop = &x->attribute.crop;
    pons_shape from = x->input[0]->shape;
    pons_node *owner = plan_owner(x->input[0]);
    int axis = 0;

    load->tensor = place_of(c->input, c->input_count, owner);
    load->type = owner->type;
    for (int i = 0; i < from.rank; i++)
        load->offset += crop->start[i] * shape_stride(from, i);
    for (int i = 0; i < at.rank; i++) {
        int own = i - (at.rank - from.rank);

        if (at.extent[i] == 1)
            continue;
        if (own >= 0 && x->shape.extent[own] > 1)
            load->stride[axis] = crop->step[own] * shape_stride(from, own);
        axis++;
    }
}

static bool unit_leaf(void *context, const pons_node *x, pons_shape at, pons_operand *load)
{
    unit_lowering *c = context;
    pons_node *owner = plan_owner((pons_node *)x);

    if (!in_memory(c->f, owner) || c->f->uniform[owner->number] ||
        fuse_unit_of(c->f, owner) == c->u)
        return false;
    if (x->kind == NODE_IOTA)
        return false;
    if (c->f->view[owner->number]) {
        view_operand(c, owner, at, load);
        return true;
    }
    load->tensor = place_of(c->input, c->input_count, owner);
    load->type = owner->type;
    operand_strides(x->shape, at, load->stride);
    return true;
}

static pons_operand output_operand(pons_node **output, int *output_count, pons_node *x)
{
    pons_operand to = { .type = x->type };

    to.tensor = place_of(output, output_count, x);
    return to;
}

static void lower_store(const fusion *f, lowering *l, pons_node *x, pons_node **output,
                        int *output_count)
{
    const pons_node *whole = f->part_of[x->number];
    pons_operand to = output_operand(output, output_count, whole ? (pons_node *)whole : x);
    int value = lowering_value(l, x, x->shape);

    operand_strides(whole ? whole->shape : x->shape, x->shape, to.stride);
    if (whole)
        to.offset = fuse_part_offset(whole, x);
    if (l->map.channels > 0 && shape_squeeze(x->shape).rank == l->map.axis_count &&
        shape_count(x->shape) > 1)
        value = lowering_wide(l, value);
    lowering_store(l, value, &to);
}

static pons_node *second_of(const fusion *f, const pons_node *moments)
{
    for (int i = moments->number + 1; i < f->g->node_count; i++)
        if (f->g->node[i]->kind == NODE_SECOND && f->g->node[i]->input[0] == moments)
            return f->g->node[i];
    return NULL;
}

static void lower_reduction(const fusion *f, lowering *l, pons_node *x, pons_node **output,
                            int *output_count)
{
    static const pons_reduction_kind kind[NODE_KIND_COUNT] = {
        [NODE_SUM] = PONS_REDUCE_SUM, [NODE_MAXIMUM] = PONS_REDUCE_MAX,
        [NODE_MINIMUM] = PONS_REDUCE_MIN, [NODE_MOMENTS] = PONS_REDUCE_MOMENTS
    };
    pons_shape s = x->input[0]->shape;
    int value = lowering_value(l, x->input[0], s);
    pons_operand to = output_operand(output, output_count, x), second = { 0 };
    int groups = x->kind == NODE_MOMENTS ? x->attribute.moments.groups : 0;

    if (l->map.channels > 0 && shape_squeeze(s).rank == l->map.axis_count && shape_count(s) > 1)
        value = lowering_wide(l, value);
    operand_strides(x->shape, s, to.stride);
    if (x->kind == NODE_MOMENTS) {
        second = to;
        second.tensor = place_of(output, output_count, second_of(f, x));
    }
    lowering_reduce(l, kind[x->kind], value, groups, &to, x->kind == NODE_MOMENTS ? &second : NULL);
}

void fuse_lower(const fusion *f, const fuse_unit *u, arena *a, lowering *l, pons_node **input,
                int *input_count, pons_node **output, int *output_count)
{
    unit_lowering context = { f, u, input, input_count };

    *input_count = *output_count = 0;
    lowering_init(l, a, f->g->node_count, unit_leaf, arena_alloc(a, sizeof(context)));
    *(unit_lowering *)l->context = context;
    l->map.axis_count = u->space.rank;
    memcpy(l->map.extent, u->space.extent, sizeof(l->map.extent));
    l->map.channels = u->channels;
    for (int i = 0; i < u->sink_count; i++)
        if (is_expression(f, u->sink[i]))
            lower_store(f, l, u->sink[i], output, output_count);
        else
            lower_reduction(f, l, u->sink[i], output, output_count);
}
