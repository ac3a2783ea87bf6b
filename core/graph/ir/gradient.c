/*
 * gradient.c - reverse-mode differentiation over the node array, as new nodes.
 *
 * The pass visits nodes from the last to the first. The contributions of several consumers are
 * added in the order of the consumers' numbers (R12). New nodes take the scope of the node they
 * differentiate. An addend that a normalisation cancels gets an exact zero (R32).
 */
#include "graph/ir/gradient.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "graph/ir/ir_internal.h"

/* The gradients that the consumers of one node contribute, in the order of their numbers. */
typedef struct contribution {
    pons_node *node;
    struct contribution *next;
} contribution;

typedef struct differentiation {
    pons_graph *g;
    int count;               /* Forward nodes.                                                    */
    bool *active;            /* True, by number, on a path from a wanted node to the value.       */
    contribution **received;
    arena *memory;
} differentiation;

/* ---- active nodes ---------------------------------------------------------------------------- */

static void mark_active(differentiation *d, const pons_node *value, int count, pons_node *const *of)
{
    bool *reaches = arena_alloc(d->memory, (size_t)d->count);

    for (int i = 0; i < count; i++)
        d->active[of[i]->number] = true;
    for (int n = 0; n < d->count; n++) {
        const pons_node *x = d->g->node[n];

        for (int i = 0; i < x->input_count && !node_kinds[x->kind].constant; i++)
            d->active[n] = d->active[n] || d->active[x->input[i]->number];
    }
    reaches[value->number] = true;
    for (int n = d->count - 1; n >= 0; n--) {
        const pons_node *x = d->g->node[n];

        for (int i = 0; i < x->input_count && reaches[n] && !node_kinds[x->kind].constant; i++)
            reaches[x->input[i]->number] = true;
        d->active[n] = d->active[n] && reaches[n];
    }
}

/* ---- sums over repetitions ------------------------------------------------------------------- */

/* Axes of 'x' along which it repeats 'shape', aligned at the last axis. */
static unsigned repeated_axes(const pons_node *x, pons_shape shape)
{
    unsigned axes = 0;

    for (int i = 0; i < x->shape.rank; i++) {
        int j = shape.rank - x->shape.rank + i;

        if (x->shape.extent[i] > 1 && (j < 0 || shape.extent[j] == 1))
            axes |= PONS_AXIS(i);
    }
    return axes;
}

/*
 * A tensor of extent 1 along 'axes' (of a tensor of rank 'rank') whose broadcast is 'x', or NULL.
 */
static pons_node *strip_along(pons_node *x, int rank, unsigned axes)
{
    if (x->kind == NODE_BROADCAST)
        x = x->input[0];
    for (int i = 0; i < x->shape.rank; i++)
        if ((axes & PONS_AXIS(rank - x->shape.rank + i)) != 0 && x->shape.extent[i] > 1)
            return NULL;
    return x;
}

static pons_node *sum_once(pons_graph *g, pons_node *x, unsigned axes)
{
    for (int n = g->node_count - 1; n > x->number; n--) {
        pons_node *y = g->node[n];

        if (y->kind == NODE_SUM && y->input[0] == x && y->attribute.axes == axes)
            return y;
    }
    return pons_sum(g, x, axes);
}

/* The sum of 'x' over 'axes'. Factors that are constant along them are taken out of the sum. */
static pons_node *sum_over(pons_graph *g, pons_node *x, unsigned axes)
{
    int rank = x->shape.rank;
    pons_node *factor;

    if ((factor = strip_along(x, rank, axes)) != NULL) {
        pons_shape shape = x->shape;
        double times = 1;

        for (int i = 0; i < rank; i++) {
            if ((axes & PONS_AXIS(i)) != 0) {
                times *= (double)shape.extent[i];
                shape.extent[i] = 1;
            }
        }
        return node_repeat(g, pons_scale(g, factor, times), shape);
    }
    if (x->kind == PONS_MAP_NEG)
        return pons_neg(g, sum_over(g, x->input[0], axes));
    for (int i = 0; i < 2 && (x->kind == PONS_MAP_MUL || (x->kind == PONS_MAP_DIV && i == 0));
         i++) {
        pons_node *summand = x->input[i];

        factor = strip_along(x->input[1 - i], rank, axes);
        if (factor == NULL || !shape_equal(summand->shape, x->shape))
            continue;
        summand = sum_over(g, summand, axes);
        return x->kind == PONS_MAP_MUL ? pons_mul(g, summand, factor)
            : pons_div(g, summand, factor);
    }
    return sum_once(g, x, axes);
}

/* The sum of 'x' over the axes along which it repeats 'shape', in that shape. */
static pons_node *node_sum_to(pons_graph *g, pons_node *x, pons_shape shape)
{
    unsigned axes;

    if (node_failed(x) || shape_equal(x->shape, shape))
        return x;
    axes = repeated_axes(x, shape);
    if (axes != 0)
        x = sum_over(g, x, axes);
    return shape_count(x->shape) == shape_count(shape) ? pons_reshape(g, x, shape)
                                                       : node_repeat(g, x, shape);
}

/* ---- R32: an addend that is lost in a normalisation ------------------------------------------ */

/* The tensor whose mean over replicas is 'x', in the form that norms build (layers.c); else 'x'. */
static const pons_node *before_replicas(const pons_node *x)
{
    double number;

    if (x->kind == PONS_MAP_STOP_GRADIENT)
        x = x->input[0];
    if (x->kind != PONS_MAP_DIV || x->input[0]->kind != NODE_ALL_REDUCE
        || x->input[1]->kind != NODE_ALL_REDUCE
        || !node_constant(x->input[1]->input[0], &number) || number != 1)
        return x;
    return x->input[0]->input[0];
}

/* Whether 'm' is the mean of 'x', of this replica or of all. */
static bool is_mean_of(const pons_node *m, const pons_node *x)
{
    m = before_replicas(m);
    return m->kind == NODE_MOMENTS && m->input[0] == x;
}

static bool only_averaged(const differentiation *d, const pons_node *sum, const pons_node *x);

/*
 * Whether every active reader of the mean 'm' only centres with it. It subtracts 'm' from 'x', or
 * subtracts the mean of all replicas from that of one.
 */
static bool only_centres(const differentiation *d, const pons_node *m, const pons_node *x)
{
    const pons_node *one = before_replicas(m);

    for (int n = m->number + 1; n < d->count; n++) {
        const pons_node *r = d->g->node[n];

        for (int i = 0; i < r->input_count && d->active[n]; i++) {
            if (r->input[i] != m || r->kind == NODE_SECOND)
                continue;
            if (r->kind == PONS_MAP_SUB && i == 1 && (r->input[0] == x || r->input[0] == one))
                continue;
            if (r->kind == PONS_MAP_SUB && i == 0 && m == one && is_mean_of(r->input[1], x))
                continue;
            if (r->kind == NODE_ALL_REDUCE && m == one && only_averaged(d, r, x))
                continue;
            return false;
        }
    }
    return true;
}

/*
 * Whether every reader of 'sum', a sum of means, makes the mean of all replicas of it and centres
 * with that mean.
 */
static bool only_averaged(const differentiation *d, const pons_node *sum, const pons_node *x)
{
    for (int n = sum->number + 1; n < d->count; n++) {
        const pons_node *r = d->g->node[n];

        for (int i = 0; i < r->input_count && d->active[n]; i++)
            if (r->input[i] == sum && !(is_mean_of(r, x) && only_centres(d, r, x)))
                return false;
    }
    return true;
}

/* Whether the moments 'm' are taken over several replicas. */
static bool is_joined(const differentiation *d, const pons_node *m)
{
    for (int n = m->number + 1; n < d->count; n++) {
        const pons_node *r = d->g->node[n];

        if (r->kind == NODE_ALL_REDUCE && r->input[0] == m)
            return true;
    }
    return false;
}

/* Whether 'b' is a parameter, and so equal on all replicas. */
static bool is_parameter(const pons_node *b)
{
    while (b->kind == NODE_RESHAPE || b->kind == NODE_BROADCAST)
        b = b->input[0];
    return b->kind == NODE_PARAMETER;
}

/* Whether 'b' is constant over each set of elements that the moments 'm' are taken over. */
static bool lost_in(const differentiation *d, const pons_node *m, pons_node *b)
{
    const pons_node *x = m->input[0];
    unsigned axes = m->attribute.moments.axes;

    if (m->attribute.moments.groups > 0)
        axes |= PONS_AXIS(x->shape.rank - 1);
    return strip_along(b, x->shape.rank, axes) != NULL && only_centres(d, m, x)
        && (!is_joined(d, m) || is_parameter(b));
}

/*
 * Whether a constant addend 'b' of 'x' has no effect on the value: each active reader of 'x'
 * cancels it.
 */
static bool addend_is_lost(const differentiation *d, const pons_node *x, pons_node *b)
{
    bool read = false;

    for (int n = x->number + 1; n < d->count; n++) {
        const pons_node *r = d->g->node[n];

        for (int i = 0; i < r->input_count && d->active[n]; i++) {
            if (r->input[i] != x)
                continue;
            read = true;
            if (r->kind == NODE_MOMENTS && lost_in(d, r, b))
                continue;
            if (r->kind == PONS_MAP_SUB && i == 0 && is_mean_of(r->input[1], x))
                continue;
            if (r->kind == PONS_MAP_ADD && shape_equal(r->shape, x->shape) &&
                addend_is_lost(d, r, b))
                continue;
            return false;
        }
    }
    return read;
}

/* ---- one node -------------------------------------------------------------------------------- */

static void add_contribution(differentiation *d, pons_node *to, pons_node *gradient)
{
    contribution *c;

    if (gradient == NULL)
        return;
    c = arena_alloc(d->memory, sizeof *c);
    c->node = node_sum_to(d->g, gradient, to->shape);
    c->next = d->received[to->number];
    d->received[to->number] = c;
}

static pons_node *sum_contributions(differentiation *d, const pons_node *x)
{
    const contribution *c = d->received[x->number];
    pons_node *sum = c != NULL ? c->node : NULL;

    while (sum != NULL && (c = c->next) != NULL)
        sum = pons_add(d->g, sum, c->node);
    return sum;
}

static pons_node *zero_of(pons_graph *g, pons_shape shape)
{
    return node_repeat(g, pons_scalar(g, 0), shape);
}

static void through_rule(differentiation *d, pons_node *x, pons_node *dx)
{
    const node_kind_facts *kind = &node_kinds[x->kind];
    pons_node **gradient = arena_alloc(d->memory, sizeof *gradient * (size_t)x->input_count);
    bool *wanted = arena_alloc(d->memory, (size_t)x->input_count);
    char text[160];

    if (kind->gradient == NULL) {
        node_refuse(d->g, x->kind, "node %d %s%s%s has no gradient", x->number,
                    shape_text(x->shape, text, sizeof text), x->name != NULL ? " " : "",
                    x->name != NULL ? x->name : "");
        return;
    }
    for (int i = 0; i < x->input_count; i++)
        wanted[i] = d->active[x->input[i]->number];
    for (int i = 0; i < 2 && x->kind == PONS_MAP_ADD; i++) {
        if (wanted[i] && repeated_axes(x, x->input[i]->shape) != 0 &&
            addend_is_lost(d, x, x->input[i])) {
            add_contribution(d, x->input[i], zero_of(d->g, x->input[i]->shape));
            wanted[i] = false;
        }
    }
    kind->gradient(d->g, x, dx, wanted, gradient);
    for (int i = x->input_count - 1; i >= 0; i--)
        if (wanted[i])
            add_contribution(d, x->input[i], gradient[i]);
}

/*
 * The gradient of the variance of 'moments'. Its node has a larger number, so its contributions are
 * complete.
 */
static pons_node *variance_gradient(differentiation *d, const pons_node *moments)
{
    for (int n = moments->number + 1; n < d->count; n++) {
        const pons_node *x = d->g->node[n];

        if (x->kind == NODE_SECOND && x->input[0] == moments)
            return sum_contributions(d, x);
    }
    return NULL;
}

static void visit_node(differentiation *d, pons_node *x)
{
    pons_node *dx, *dvariance = NULL;

    if (x->input_count == 0 || node_kinds[x->kind].constant || x->kind == NODE_SECOND)
        return;
    d->g->scope = x->scope;
    d->g->origin = x->origin;
    dx = sum_contributions(d, x);
    if (x->kind == NODE_MOMENTS)
        dvariance = variance_gradient(d, x);
    if (dx == NULL && dvariance == NULL)
        return;
    if (x->kind == NODE_MOMENTS)
        add_contribution(d, x->input[0], moments_gradient(d->g, x, dx, dvariance));
    else
        through_rule(d, x, dx);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static pons_status differentiate_graph(differentiation *d, pons_node *value, int count,
                                       pons_node *const *of, pons_node **gradient, pons_error *err)
{
    pons_graph *g = d->g;

    mark_active(d, value, count, of);
    g->scope = value->scope;
    g->origin = value->origin;
    add_contribution(d, value, node_repeat(g, pons_scalar(g, 1), value->shape));
    for (int n = value->number; n >= 0 && g->error.status == PONS_OK; n--)
        if (d->active[n])
            visit_node(d, g->node[n]);
    for (int i = 0; i < count; i++) {
        g->scope = of[i]->scope;
        g->origin = of[i]->origin;
        gradient[i] = sum_contributions(d, of[i]);
    }
    for (int n = d->count; n < g->node_count; n++)
        g->node[n]->backward = true;
    return pons_graph_status(g, err);
}

pons_status graph_gradient(pons_graph *g, pons_node *value, int count, pons_node *const *of,
                           pons_node **gradient, pons_error *err)
{
    node_section section = g->section;
    node_scope scope = g->scope;
    const node_origin *origin = g->origin;
    differentiation d = { .g = g, .count = g->node_count };
    char text[160];
    pons_status status;

    if (pons_graph_status(g, err) != PONS_OK)
        return g->error.status;
    if (shape_count(value->shape) != 1)
        return pons_fail(err, PONS_PLUGIN, "the loss has shape %s, expected one element",
                         shape_text(value->shape, text, sizeof text));
    if (g->differentiated)
        return pons_fail(err, PONS_PLUGIN, "gradients of gradients are not offered");
    if ((d.memory = arena_new()) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    g->differentiated = true;
    d.active = arena_alloc(d.memory, (size_t)d.count);
    d.received = arena_alloc(d.memory, sizeof *d.received * (size_t)d.count);
    g->section = SECTION_MICRO;
    status = differentiate_graph(&d, value, count, of, gradient, err);
    g->section = section;
    g->scope = scope;
    g->origin = origin;
    arena_free(d.memory);
    return status;
}
