/*
 * op.c - nodes of op plugins. The plugin's table parses the options, its rule gives the shape, and
 * its function builds the gradient. Nodes with equal options share one configuration, so that
 * simplify can merge them.
 */
#include "graph/ir/op.h"

#include <ctype.h>
#include <string.h>

#include <pons/op.h>

#include "base/arena.h"
#include "base/text/text.h"
#include "config/config.h"
#include "graph/ir/ir_internal.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_options.h"

/* ---- options --------------------------------------------------------------------------------- */

typedef struct reading {
    arena *arena;
    const plugin *plugin;
    config *values;
    void *target;
    pons_error *err;
} reading;

static pons_status refuse_key(const reading *r, const char *key)
{
    text_guess guess = text_guess_for(key);

    for (const pons_option *o = r->plugin->descriptor->options; o != NULL && o->name != NULL; o++)
        text_guess_try(&guess, o->name);
    if (guess.best != NULL)
        return pons_fail(r->err, PONS_PLUGIN, "op '%s' has no option '%s'; did you mean '%s'?",
                         r->plugin->descriptor->name, key, guess.best);
    return pons_fail(r->err, PONS_PLUGIN, "op '%s' has no option '%s'", r->plugin->descriptor->name,
                     key);
}

static pons_status read_value(const reading *r, const pons_option *row, const char *value)
{
    const char *where = arena_format(r->arena, "op '%s': %s", r->plugin->descriptor->name,
                                     row->name);

    if (option_parse(r->values, row, value, where, r->target, r->err) != PONS_OK)
        return r->err->status = PONS_PLUGIN;
    return PONS_OK;
}

/* The text without blanks at both ends. */
static char *trimmed_text(char *text)
{
    char *end = text + strlen(text);

    while (isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

/* Parse one "key = value". */
static pons_status read_pair(const reading *r, char *pair, bool *given)
{
    const pons_option *row, *first = r->plugin->descriptor->options;
    char *value = strchr(pair, '=');

    if (value == NULL)
        return pons_fail(r->err, PONS_PLUGIN, "op '%s': '%s' is not of the form key = value",
                         r->plugin->descriptor->name, pair);
    *value++ = '\0';
    pair = trimmed_text(pair);
    row = option_find(r->plugin->descriptor->options, pair);
    if (row == NULL)
        return refuse_key(r, pair);
    if (given[row - first])
        return pons_fail(r->err, PONS_PLUGIN, "op '%s': option '%s' is given twice",
                         r->plugin->descriptor->name, pair);
    given[row - first] = true;
    return read_value(r, row, trimmed_text(value));
}

static pons_status read_defaults(const reading *r, const bool *given)
{
    const pons_option *first = r->plugin->descriptor->options;

    for (const pons_option *o = first; o != NULL && o->name != NULL; o++) {
        if (given[o - first])
            continue;
        if (o->fallback == NULL)
            return pons_fail(r->err, PONS_PLUGIN, "op '%s' needs the option '%s': %s",
                             r->plugin->descriptor->name, o->name, o->help);
        if (read_value(r, o, o->fallback) != PONS_OK)
            return r->err->status;
    }
    return PONS_OK;
}

static pons_status check_options(const reading *r)
{
    pons_error found = PONS_ERROR_INIT;

    if (plugin_options_check(r->plugin, r->target, &found) == PONS_OK)
        return PONS_OK;
    return pons_fail(r->err, PONS_PLUGIN, "op '%s': %s", r->plugin->descriptor->name, found.text);
}

static pons_status read_options(const reading *r, const char *text)
{
    char *rest = NULL, *copy = arena_string(r->arena, text);
    int rows = 0;
    bool *given;

    for (const pons_option *o = r->plugin->descriptor->options; o != NULL && o->name != NULL; o++)
        rows++;
    given = arena_alloc(r->arena, (size_t)rows + 1);
    for (char *pair = strtok_r(copy, ";", &rest); pair != NULL; pair = strtok_r(NULL, ";", &rest))
        if (*trimmed_text(pair) != '\0' && read_pair(r, trimmed_text(pair), given) != PONS_OK)
            return r->err->status;
    if (read_defaults(r, given) != PONS_OK)
        return r->err->status;
    return check_options(r);
}

/* ---- the ops of a graph ---------------------------------------------------------------------- */

static graph_op *op_add(pons_graph *g, const plugin *p, const char *text, pons_error *err)
{
    graph_op *op = arena_alloc(g->arena, sizeof *op);
    void *target = arena_alloc(g->arena, p->descriptor->config_size + 1);
    reading r = { g->arena, p, NULL, target, err };

    if (config_open(NULL, 0, NULL, &r.values, err) != PONS_OK)
        return NULL;
    *op = (graph_op){ .plugin = p, .text = arena_string(g->arena, text), .values = r.values,
                      .attribute = { p->descriptor->name, p->operations, target } };
    *g->op_end = op; /* graph_ops_free releases the values, also after a failure.                 */
    g->op_end = &op->next;
    return read_options(&r, text) == PONS_OK ? op : NULL;
}

static graph_op *op_find(pons_graph *g, const char *name, const char *text, pons_error *err)
{
    const plugin *p;

    for (graph_op *op = g->op; op != NULL; op = op->next)
        if (strcmp(op->attribute.name, name) == 0 && strcmp(op->text, text) == 0)
            return op;
    if (plugin_load(PONS_KIND_OP, name, sizeof(pons_op_operations), NULL, &p, err) != PONS_OK)
        return NULL;
    return op_add(g, p, text, err);
}

void graph_ops_free(pons_graph *g)
{
    for (graph_op *op = g->op; op != NULL; op = op->next)
        config_close(op->values);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

pons_status op_check(const pons_op_attributes *op, pons_error *err)
{
    const pons_op_operations *o = op->operations;
    const char *missing = o->shape == NULL ? "shape" : o->run_float == NULL ? "run_float"
                        : o->run_double == NULL ? "run_double" : NULL;

    if (missing != NULL)
        return pons_fail(err, PONS_PLUGIN, "op '%s' has no operation '%s'", op->name, missing);
    if (o->input_count < 1 || o->input_count > PONS_OP_INPUTS_MAX)
        return pons_fail(err, PONS_PLUGIN, "op '%s' has %d inputs, expected 1 to %d", op->name,
                         o->input_count, PONS_OP_INPUTS_MAX);
    return PONS_OK;
}

static pons_node *refuse_op(pons_graph *g, const char *name, const pons_error *err)
{
    return pons_graph_fail(g, err->status != PONS_OK ? err->status : PONS_PLUGIN, "op '%s': %s",
                           name, err->status != PONS_OK ? err->text : "it is refused");
}

static bool types_fit(pons_graph *g, const pons_op_attributes *op, pons_node *const *input,
                      pons_tensor *tensor)
{
    for (int i = 0; i < op->operations->input_count; i++) {
        pons_type type = input[i]->type;

        tensor[i] = (pons_tensor){ type, input[i]->shape };
        if (type == PONS_F32 || type == PONS_U8 || type == PONS_I32)
            continue;
        pons_graph_fail(g, PONS_PLUGIN, "op '%s': input %d is of 16 bits, expected f32, u8 or i32",
                        op->name, i + 1);
        return false;
    }
    return true;
}

pons_node *node_op(pons_graph *g, const pons_op_attributes *op, int count, pons_node *const *input)
{
    node_attribute a = { .op = *op };
    pons_tensor tensor[PONS_OP_INPUTS_MAX];
    pons_error problem = PONS_ERROR_INIT;
    pons_shape shape = { .rank = -1 };

    if (op_check(op, &problem) != PONS_OK)
        return pons_graph_fail(g, problem.status, "%s", problem.text);
    if (count != op->operations->input_count)
        return pons_graph_fail(g, PONS_PLUGIN, "op '%s' has %d inputs, found %d", op->name,
                               op->operations->input_count, count);
    if (!inputs_given(g, NODE_OP, count, input) || !types_fit(g, op, input, tensor))
        return g->failed;
    if (op->operations->shape(op->config, tensor, &shape, &problem) != PONS_OK)
        return refuse_op(g, op->name, &problem);
    if (!shape_valid(g, NODE_OP, shape))
        return g->failed;
    return node_new(g, NODE_OP, PONS_F32, shape, count, input, &a);
}

pons_node *pons_op(pons_graph *g, const char *name, const char *options, int count,
                   pons_node *const *input)
{
    pons_error problem = PONS_ERROR_INIT;
    const graph_op *op;

    if (g->error.status != PONS_OK)
        return g->failed;
    op = op_find(g, name, options != NULL ? options : "", &problem);
    if (op == NULL)
        return pons_graph_fail(g, problem.status, "%s", problem.text);
    return node_op(g, &op->attribute, count, input);
}

pons_node *pons_op_again(pons_graph *g, const pons_node *like, pons_node *const *input)
{
    if (node_failed(like))
        return g->failed;
    if (like->kind != NODE_OP)
        return node_refuse(g, NODE_OP, "a '%s' is no op of a plugin", node_kinds[like->kind].name);
    return node_op(g, &like->attribute.op, like->input_count, input);
}

/* ---- gradient -------------------------------------------------------------------------------- */

/* Whether a gradient has the shape of the input, or broadcasts from it. */
static bool gradient_fits(pons_graph *g, const pons_node *x, int i, const pons_node *gradient)
{
    char found[160], expected[160];
    pons_shape both;

    if (node_failed(gradient))
        return false;
    if (gradient->graph == g && gradient->type == PONS_F32 &&
        shape_broadcast(gradient->shape, x->input[i]->shape, &both) &&
        (shape_equal(both, gradient->shape) || shape_equal(both, x->input[i]->shape)))
        return true;
    pons_graph_fail(g, PONS_PLUGIN, "op '%s': its gradient of input %d has shape %s, expected %s",
                    x->attribute.op.name, i + 1,
                    shape_text(gradient->shape, found, sizeof found),
                    shape_text(x->input[i]->shape, expected, sizeof expected));
    return false;
}

void gradient_op(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                 pons_node **gradient)
{
    const pons_op_attributes *op = &x->attribute.op;
    pons_error problem = PONS_ERROR_INIT;

    if (op->operations->gradient == NULL) {
        pons_graph_fail(g, PONS_PLUGIN, "op '%s' has no gradient, and parameters are trained "
                        "through it\nhint: pons_stop_gradient before it", op->name);
        return;
    }
    if (op->operations->gradient(g, op->config, x->input, x, dx, wanted, gradient, &problem)
        != PONS_OK) {
        refuse_op(g, op->name, &problem);
        return;
    }
    for (int i = 0; i < x->input_count; i++)
        if (wanted[i] && gradient[i] != NULL && !gradient_fits(g, x, i, gradient[i]))
            gradient[i] = NULL;
}
