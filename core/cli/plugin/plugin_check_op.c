/*
 * plugin_check_op.c - check the rules of an op (op.h) on small tensors with odd extents.
 *
 * Float and double agree. Rows may be computed in parts. All elements of a row are written, and
 * none outside. A second run has the same result. The gradient agrees with finite differences.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pons/op.h>

#include "base/integer.h"
#include "base/random.h"
#include "cli/plugin/plugin_check.h"
#include "config/config.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/op.h"

enum { BASES = 6, EXAMPLES_MAX = 16, GUARD = 64 };

/* The tolerance of float sums of a few hundred terms, relative to the largest element. */
static const double agreement = 1e-4;

/* ---- shapes ---------------------------------------------------------------------------------- */

static const pons_shape bases[BASES] = {
    { 5, { 2, 3, 1, 5, 3 } }, { 5, { 1, 5, 3, 3, 2 } }, { 5, { 3, 1, 1, 1, 4 } },
    { 5, { 1, 1, 1, 1, 1 } }, { 2, { 3, 5 } }, { 1, { 7 } }
};

/* The shape of a further input: an image, a number per channel, a scalar, or one channel. */
static pons_shape companion(pons_shape base, int form)
{
    switch (form) {
    case 1: return (pons_shape){ 1, { base.extent[base.rank - 1] } };
    case 2: return (pons_shape){ .rank = 0 };
    case 3: base.extent[base.rank - 1] = 1; return base;
    default: return base;
    }
}

static bool accepts(const pons_op_attributes *op, const pons_tensor *input)
{
    pons_error ignored = PONS_ERROR_INIT;
    pons_shape shape = { .rank = -1 };

    return op->operations->shape(op->config, input, &shape, &ignored) == PONS_OK;
}

/* Find the first companions of a base that the op accepts. */
static bool find_companions(const pons_op_attributes *op, pons_shape base, pons_tensor *input)
{
    int count = op->operations->input_count, forms = 1;

    for (int i = 1; i < count && i < 5; i++)
        forms *= 4;
    for (int form = 0; form < forms; form++) {
        for (int i = 0, digits = form; i < count; i++) {
            input[i] = (pons_tensor){ PONS_F32, companion(base, i == 0 ? 0 : digits % 4) };
            digits /= i == 0 ? 1 : 4;
        }
        if (accepts(op, input))
            return true;
    }
    return false;
}

static bool next_example(const pons_op_attributes *op, int *number, pons_tensor *input)
{
    if (op->operations->example != NULL)
        return *number < EXAMPLES_MAX && op->operations->example(op->config, (*number)++, input);
    while (*number < BASES)
        if (find_companions(op, bases[(*number)++], input))
            return true;
    return false;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* An output between two guards, in double if 'wide'. */
typedef struct result {
    char *memory;
    size_t size;
    bool wide;
} result;

typedef struct op_trial {
    const pons_op_attributes *op;
    const pons_tensor *input;
    pons_shape shape;
    int64_t count, rows;
    void *from[2][PONS_OP_INPUTS_MAX]; /* float, double                                           */
    pons_error *err;
} op_trial;

static void *fill(pons_tensor t, bool wide, uint64_t seed)
{
    int64_t count = shape_count(t.shape);
    void *memory = malloc((size_t)count * sizeof(double) + 1);

    for (int64_t i = 0; i < count && memory != NULL; i++) {
        uint32_t word[4];
        float value;

        random_voxels(seed, (uint64_t)i, word);
        value = (float)(random_uniform(word[0]) * 2 - 1);
        if (t.type == PONS_U8)
            ((uint8_t *)memory)[i] = (uint8_t)(word[0] % 3);
        else if (t.type == PONS_I32)
            ((int32_t *)memory)[i] = (int32_t)(word[0] % 3);
        else if (wide)
            ((double *)memory)[i] = value;
        else
            ((float *)memory)[i] = value;
    }
    return memory;
}

static double element(const result *r, int64_t i)
{
    const void *to = r->memory + GUARD;

    return r->wide ? ((const double *)to)[i] : (double)((const float *)to)[i];
}

/* Set all bits, so that an unwritten element is NaN. */
static bool result_open(const op_trial *t, bool wide, result *out)
{
    out->wide = wide;
    out->size = (size_t)t->count * (wide ? sizeof(double) : sizeof(float));
    out->memory = malloc(out->size + 2 * GUARD);
    if (out->memory != NULL)
        memset(out->memory, 0xff, out->size + 2 * GUARD);
    else
        pons_fail(t->err, PONS_DEVICE, "out of memory");
    return out->memory != NULL;
}

static void run_rows(const op_trial *t, bool wide, int64_t begin, int64_t end, const result *to)
{
    pons_tensor input[PONS_OP_INPUTS_MAX];
    pons_op_call call = { .config = t->op->config, .input = input,
                          .from = (const void *const *)t->from[wide], .shape = t->shape,
                          .to = to->memory + GUARD, .begin = begin, .end = end };

    for (int i = 0; i < t->op->operations->input_count; i++) {
        input[i] = t->input[i];
        if (wide && input[i].type == PONS_F32)
            input[i].type = PONS_F64;
    }
    (wide ? t->op->operations->run_double : t->op->operations->run_float)(&call);
}

/* Run the rows in pieces of 'part', the last piece first. */
static bool run_parts(const op_trial *t, bool wide, int64_t part, result *out)
{
    if (!result_open(t, wide, out))
        return false;
    for (int64_t begin = (t->rows - 1) / part * part; begin >= 0; begin -= part)
        run_rows(t, wide, begin, min_i64(begin + part, t->rows), out);
    return true;
}

static const char *function_name(bool wide)
{
    return wide ? "run_double" : "run_float";
}

/* ---- checks ---------------------------------------------------------------------------------- */

static pons_status check_written(const op_trial *t, const result *r)
{
    for (size_t i = 0; i < GUARD; i++)
        if (r->memory[i] != (char)0xff || r->memory[GUARD + r->size + i] != (char)0xff)
            return pons_fail(t->err, PONS_PLUGIN, "%s writes %s its output",
                             function_name(r->wide),
                             r->memory[i] != (char)0xff ? "before" : "behind");
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(element(r, i)))
            return pons_fail(t->err, PONS_PLUGIN, "%s leaves element %lld of %lld unwritten, or "
                             "makes it infinite", function_name(r->wide), (long long)i,
                             (long long)t->count);
    return PONS_OK;
}

static pons_status check_equal(const op_trial *t, const result *r, const result *again,
                               const char *what)
{
    for (int64_t i = 0; i < t->count; i++)
        if (element(r, i) != element(again, i))
            return pons_fail(t->err, PONS_PLUGIN, "%s gives %.17g for element %lld, and %s %.17g",
                             function_name(r->wide), element(r, i), (long long)i, what,
                             element(again, i));
    return PONS_OK;
}

static pons_status check_close(const op_trial *t, const result *narrow, const result *wide)
{
    double most = 0;

    for (int64_t i = 0; i < t->count; i++)
        most = fmax(most, fabs(element(wide, i)));
    for (int64_t i = 0; i < t->count; i++)
        if (fabs(element(narrow, i) - element(wide, i)) > agreement * most)
            return pons_fail(t->err, PONS_PLUGIN, "run_float gives %.9g for element %lld, "
                             "run_double %.9g", element(narrow, i), (long long)i, element(wide, i));
    return PONS_OK;
}

/* Check that a function writes all elements, repeats its result, and runs in parts if declared. */
static pons_status check_function(const op_trial *t, bool wide, result *whole)
{
    result again = { .memory = NULL }, parts = { .memory = NULL };

    if (run_parts(t, wide, t->rows, whole) && run_parts(t, wide, t->rows, &again)
        && check_written(t, whole) == PONS_OK)
        check_equal(t, whole, &again, "a second time");
    if (t->err->status == PONS_OK && t->op->operations->sliced && run_parts(t, wide, 2, &parts)
        && check_written(t, &parts) == PONS_OK)
        check_equal(t, whole, &parts, "in parts");
    free(again.memory);
    free(parts.memory);
    return t->err->status;
}

static pons_status check_functions(op_trial *t)
{
    result narrow = { .memory = NULL }, wide = { .memory = NULL };
    int inputs = t->op->operations->input_count;
    bool filled = true;

    for (int i = 0; i < 2 * inputs; i++) {
        t->from[i / inputs][i % inputs] = fill(t->input[i % inputs], i / inputs == 1,
                                               (uint64_t)(i % inputs));
        filled = filled && t->from[i / inputs][i % inputs] != NULL;
    }
    if (!filled)
        pons_fail(t->err, PONS_DEVICE, "out of memory");
    else if (check_function(t, false, &narrow) == PONS_OK
             && check_function(t, true, &wide) == PONS_OK)
        check_close(t, &narrow, &wide);
    for (int i = 0; i < 2 * inputs; i++)
        free(t->from[i / inputs][i % inputs]);
    free(narrow.memory);
    free(wide.memory);
    return t->err->status;
}

/* ---- gradient -------------------------------------------------------------------------------- */

static pons_node *leaf_for(pons_graph *g, pons_tensor t, int i)
{
    const char *name = pons_name(g, "input%d", i + 1);

    if (t.type != PONS_F32)
        return node_input(g, name, t.type, t.shape);
    return pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, t.shape,
                               (pons_init){ PONS_INIT_UNIFORM, 1 });
}

/* The sum of the output with a different weight for each element. */
static pons_node *weighted_sum(pons_graph *g, pons_node *y)
{
    int64_t count = shape_count(pons_shape_of(y));
    pons_node *place = pons_iota(g, 1, 0, count);
    pons_node *weight = pons_sin(g, pons_add_scalar(g, pons_scale(g, place, 1.7), 0.3));

    return pons_sum_all(g, pons_mul(g, pons_reshape(g, y, (pons_shape){ 1, { count } }), weight));
}

static pons_status check_gradient(const op_trial *t)
{
    pons_node *input[PONS_OP_INPUTS_MAX], *loss;
    pons_graph *g = graph_new(true);

    if (g == NULL)
        return pons_fail(t->err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < t->op->operations->input_count; i++)
        input[i] = leaf_for(g, t->input[i], i);
    loss = weighted_sum(g, node_op(g, t->op, t->op->operations->input_count, input));
    if (pons_graph_status(g, t->err) == PONS_OK)
        return plugin_check_differences(g, loss, t->err);
    graph_free(g);
    return t->err->status;
}

/* ---- the whole check ------------------------------------------------------------------------- */

/* Find the output shape as the node's builder does. */
static pons_status find_shape(op_trial *t)
{
    pons_graph *g = graph_new(true);
    pons_node *input[PONS_OP_INPUTS_MAX], *y;

    if (g == NULL)
        return pons_fail(t->err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < t->op->operations->input_count; i++)
        input[i] = leaf_for(g, t->input[i], i);
    y = node_op(g, t->op, t->op->operations->input_count, input);
    t->shape = pons_shape_of(y);
    if (pons_graph_status(g, t->err) == PONS_OK) {
        t->count = shape_count(t->shape);
        t->rows = t->shape.rank > 0 ? t->count / t->shape.extent[t->shape.rank - 1] : 1;
    }
    graph_free(g);
    return t->err->status;
}

static pons_status check_example(const pons_op_attributes *op, const pons_tensor *input,
                                 pons_error *err)
{
    op_trial t = { .op = op, .input = input, .err = err };

    if (find_shape(&t) != PONS_OK || check_functions(&t) != PONS_OK)
        return err->status;
    return op->operations->gradient != NULL ? check_gradient(&t) : PONS_OK;
}

static pons_status check_examples(const pons_op_attributes *op, pons_error *err)
{
    pons_tensor input[PONS_OP_INPUTS_MAX];
    int number = 0, seen = 0;

    if (op_check(op, err) != PONS_OK)
        return err->status;
    while (err->status == PONS_OK && next_example(op, &number, input)) {
        check_example(op, input, err);
        seen++;
    }
    if (seen == 0)
        return pons_fail(err, PONS_PLUGIN, "its shape rule accepts nothing that the check knows\n"
                         "hint: the operation 'example' names types and shapes");
    return err->status;
}

pons_status plugin_check_op(const plugin *p, const invocation *call, pons_error *err)
{
    pons_op_attributes op = { p->descriptor->name, p->operations, NULL };
    config *values;
    void *options;

    if (plugin_check_options(p, call, &options, &values, err) != PONS_OK)
        return err->status;
    op.config = options;
    check_examples(&op, err);
    if (err->status == PONS_OK && op.operations->gradient == NULL)
        printf("op %s: it has no gradient, so nothing can be trained through it\n", op.name);
    config_close(values);
    free(options);
    return err->status;
}
