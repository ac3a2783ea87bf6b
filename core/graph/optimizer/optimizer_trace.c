/*
 * optimizer_trace.c - call an optimizer for one parameter on a scratch graph, and record its
 * operations.
 *
 * The core adds what every optimizer needs. The gradient becomes the clipped mean, a new value is
 * kept only if all numbers of the step are finite (R9), and the average follows the new value.
 */
#include "graph/optimizer/optimizer_trace.h"

#include <string.h>

#include "base/arena.h"
#include "base/integer.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "plugin/plugin_status.h"

typedef struct reader {
    struct arena *arena;
    const pons_slot *slots;
    const char *name;          /* the parameter's name, for messages                              */
    optimizer_trace *trace;
    int *known;                /* by node number: op + 1                                          */
    pons_error *err;
} reader;

static int add_op(reader *r, trace_op t)
{
    optimizer_trace *c = r->trace;

    if (c->count == c->room) {
        trace_op *larger;

        c->room = c->room > 0 ? 2 * c->room : 32;
        larger = arena_alloc(r->arena, (size_t)c->room * sizeof *larger);
        if (c->count > 0)
            memcpy(larger, c->op, (size_t)c->count * sizeof *larger);
        c->op = larger;
    }
    c->op[c->count] = t;
    return c->count++;
}

static int add_leaf(reader *r, int operation, span s, int detail)
{
    return add_op(r, (trace_op){ .operation = operation, .span = s, .detail = detail });
}

static int add_constant(reader *r, double number)
{
    return add_op(r, (trace_op){ .operation = TRACE_CONSTANT, .number = number });
}

static int add_map(reader *r, int operation, int count, const int *argument)
{
    trace_op t = { .operation = operation };

    for (int i = 0; i < count; i++) {
        const trace_op *a = r->trace->op + argument[i];

        t.argument[i] = argument[i];
        t.span = a->span > t.span ? a->span : t.span;
        t.depth = max_int(a->depth, t.depth);
    }
    return add_op(r, t);
}

static int add_two(reader *r, int operation, int a, int b)
{
    return add_map(r, operation, 2, (int[]){ a, b });
}

/* ---- nodes to ops ---------------------------------------------------------------------------- */

static int read_node(reader *r, const pons_node *x);

static int refuse_node(reader *r, const pons_node *x, const char *why)
{
    pons_fail(r->err, PONS_PLUGIN, "the optimizer's expression for '%s' has a '%s', %s", r->name,
              node_kinds[x->kind].name, why);
    return -1;
}

static int read_map(reader *r, const pons_node *x)
{
    int argument[3];

    for (int i = 0; i < x->input_count; i++)
        if ((argument[i] = read_node(r, x->input[i])) < 0)
            return -1;
    return add_map(r, x->kind, x->input_count, argument);
}

static int read_same(reader *r, const pons_node *x)
{
    return read_node(r, x->input[0]);
}

static int read_cast(reader *r, const pons_node *x)
{
    if (x->type != PONS_F32)
        return refuse_node(r, x, "expected real numbers throughout");
    return read_same(r, x);
}

static bool reduces_all(const pons_node *x)
{
    pons_shape s = x->input[0]->shape;

    for (int i = 0; i < s.rank; i++)
        if (s.extent[i] > 1 && !(x->attribute.axes & PONS_AXIS(i)))
            return false;
    return true;
}

static int read_reduction(reader *r, const pons_node *x)
{
    int operation = x->kind == NODE_SUM ? TRACE_SUM
                  : x->kind == NODE_MAXIMUM ? TRACE_MAXIMUM : TRACE_MINIMUM;
    int argument = read_node(r, x->input[0]);
    const trace_op *a;

    if (argument < 0)
        return -1;
    a = r->trace->op + argument;
    if (!reduces_all(x))
        return refuse_node(r, x, "expected a reduction over the whole tensor");
    if (a->span == SPAN_ELEMENT)
        return add_op(r, (trace_op){ .operation = operation, .span = SPAN_TENSOR,
                                     .depth = a->depth + 1, .argument = { argument } });
    if (shape_count(x->input[0]->shape) > 1)
        return refuse_node(r, x, "expected one that depends on an element");
    return argument;
}

static int read_leaf(reader *r, const pons_node *x)
{
    int raw;

    if (x->kind == NODE_PARAMETER)
        return add_leaf(r, TRACE_PARAMETER, SPAN_ELEMENT, 0);
    if (x->kind == NODE_CONSTANT)
        return add_constant(r, x->attribute.number);
    if (x->kind == NODE_SCALAR)
        return add_leaf(r, TRACE_NUMBER, SPAN_ALL, strcmp(x->name, "lr") ? STEP_COUNT : STEP_LR);
    if (x->kind == NODE_SLOT)
        return add_leaf(r, TRACE_SLOT,
                        x->attribute.slot.kind == PONS_SLOT_ELEMENT ? SPAN_ELEMENT : SPAN_TENSOR,
                        x->attribute.slot.index);
    raw = add_leaf(r, TRACE_GRADIENT, SPAN_ELEMENT, 0);
    return add_two(r, PONS_MAP_MUL, raw, add_leaf(r, TRACE_NUMBER, SPAN_ALL, STEP_FACTOR));
}

static int read_node(reader *r, const pons_node *x)
{
    static int (*const readers[NODE_KIND_COUNT])(reader *, const pons_node *) = {
        [PONS_MAP_STOP_GRADIENT] = read_same, [NODE_CAST] = read_cast,
        [NODE_RESHAPE] = read_same, [NODE_BROADCAST] = read_same,
        [NODE_SUM] = read_reduction, [NODE_MAXIMUM] = read_reduction,
        [NODE_MINIMUM] = read_reduction,
        [NODE_PARAMETER] = read_leaf, [NODE_SLOT] = read_leaf, [NODE_GRADIENT] = read_leaf,
        [NODE_SCALAR] = read_leaf, [NODE_CONSTANT] = read_leaf,
    };

    if (r->known[x->number] == 0) {
        int t = readers[x->kind] != NULL ? readers[x->kind](r, x)
              : x->kind < PONS_MAP_OPERATION_COUNT ? read_map(r, x)
              : refuse_node(r, x,
                            "expected pointwise operations and reductions over the whole tensor");

        if (t < 0)
            return -1;
        r->known[x->number] = t + 1;
    }
    return r->known[x->number] - 1;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* select(ok, value, old) */
static int keep_if_finite(reader *r, int value, int old)
{
    int ok = add_leaf(r, TRACE_NUMBER, SPAN_ALL, STEP_OK);

    return add_map(r, PONS_MAP_SELECT, 3, (int[]){ ok, value, old });
}

static pons_status read_assign(reader *r, const node_assign *a, const pons_parameter *p)
{
    bool slot = a->leaf->kind == NODE_SLOT;
    int target = slot ? a->leaf->attribute.slot.index : TRACE_TARGET_PARAMETER;
    int old, value;

    if (!slot && a->leaf != p->value)
        return pons_fail(r->err, PONS_PLUGIN, "the optimizer assigns to '%s' while it updates '%s'",
                         a->leaf->name, r->name);
    old = read_node(r, a->leaf);
    value = read_node(r, a->value);
    if (old < 0 || value < 0)
        return PONS_PLUGIN;
    if (r->trace->op[value].span > r->trace->op[old].span)
        return pons_fail(r->err, PONS_PLUGIN, "the optimizer assigns one number per element to a "
                         "slot of '%s' that has one per tensor", r->name);
    r->trace->target[target] = keep_if_finite(r, value, old);
    return PONS_OK;
}

/* The average e becomes d e + (1 - d) p, where p is the parameter after the step. */
static void add_average(reader *r, double decay)
{
    int p = r->trace->target[TRACE_TARGET_PARAMETER], e = add_leaf(r, TRACE_EMA, SPAN_ELEMENT, 0);
    int kept, added;

    if (p < 0)
        p = add_leaf(r, TRACE_PARAMETER, SPAN_ELEMENT, 0);
    kept = add_two(r, PONS_MAP_MUL, e, add_constant(r, decay));
    added = add_two(r, PONS_MAP_MUL, p, add_constant(r, 1 - decay));
    r->trace->target[TRACE_TARGET_EMA] = keep_if_finite(r, add_two(r, PONS_MAP_ADD, kept, added),
                                                        e);
}

static void make_parameter(pons_graph *g, const storage_entry *e, const pons_slot *slots,
                           pons_parameter *p)
{
    const storage_tensor *t = &e->tensor;

    *p = (pons_parameter){ .size = sizeof *p, .name = t->name, .role = t->role, .shape = t->shape };
    p->value = pons_parameter_leaf(g, t->name, t->role, t->shape, e->init);
    p->gradient = node_accumulated_gradient(g, p->value);
    p->lr = node_scalar(g, "lr");
    p->step = node_scalar(g, "step");
    for (int i = 0; slots[i].name != NULL && i < PONS_SLOTS_MAX; i++)
        p->slot[i] = node_slot(g, p->value, i, slots[i].kind);
}

pons_status optimizer_trace_make(struct arena *a, const storage_entry *e, const update_settings *u,
                                 optimizer_trace *out, pons_error *err)
{
    pons_graph *g = graph_new(true);
    reader r = { a, u->optimizer->slots, e->tensor.name, out, NULL, err };
    pons_parameter p;
    pons_status status;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the graph of the update");
    *out = (optimizer_trace){ .count = 0 };
    for (int i = 0; i < TRACE_TARGET_COUNT; i++)
        out->target[i] = -1;
    g->section = SECTION_UPDATE;
    g->scope = SCOPE_OPTIMIZER;
    make_parameter(g, e, u->optimizer->slots, &p);
    status = plugin_status(u->optimizer->update(g, u->config, &p, err), "the optimizer", "update",
                           err);
    if (status == PONS_OK)
        status = pons_graph_status(g, err);
    r.known = arena_alloc(g->arena, (size_t)g->node_count * sizeof *r.known);
    for (int i = 0; i < g->assign_count && status == PONS_OK; i++)
        status = read_assign(&r, g->assign + i, &p);
    if (status == PONS_OK && u->ema_decay > 0)
        add_average(&r, u->ema_decay);
    graph_free(g);
    return status;
}

bool optimizer_trace_equal(const optimizer_trace *a, const optimizer_trace *b)
{
    if (a->count != b->count || memcmp(a->target, b->target, sizeof a->target) != 0)
        return false;
    for (int i = 0; i < a->count; i++) {
        const trace_op *x = a->op + i, *y = b->op + i;

        if (x->operation != y->operation || x->span != y->span || x->depth != y->depth
            || x->detail != y->detail || memcmp(x->argument, y->argument, sizeof x->argument) != 0)
            return false;
    }
    return true;
}
