/*
 * op_breaks_rule - an op for tests: y = x x w, where w has one value per channel. Its option breaks
 * one rule of op.h. Built as op_no_gradient the op has no gradient, as op_no_double no function in
 * double, as op_nine_inputs nine inputs.
 */
#include <pons/op.h>

enum {
    NONE, RANK, EMPTY, REFUSED, SILENT, GRADIENT_SHAPE, GRADIENT_WRONG, GRADIENT_FAILS, BEHIND,
    BEFORE, UNWRITTEN, CHANGING, PARTS, FAR
};

typedef struct op_breaks_rule {
    int fault;
} op_breaks_rule;
typedef op_breaks_rule op_no_gradient, op_no_double, op_nine_inputs;

static const char *const faults[] = {
    "none", "rank", "empty", "refused", "silent", "gradient_shape", "gradient_wrong",
    "gradient_fails", "behind", "before", "unwritten", "changing", "parts", "far", NULL
};

static const pons_option options[] = {
    PONS_CHOICE(op_breaks_rule, fault, "none", faults, "What is wrong with it."),
    PONS_OPTIONS_END
};

static pons_status shape(const void *config, const pons_tensor *input, pons_shape *output,
                         pons_error *err)
{
    int fault = ((const op_breaks_rule *)config)->fault, last = input[0].shape.rank - 1;

    if (last < 0 || input[1].shape.rank != 1
        || input[1].shape.extent[0] != input[0].shape.extent[last])
        return pons_fail(err, PONS_PLUGIN, "the second input must have a number per channel");
    if (fault == REFUSED)
        return pons_fail(err, PONS_PLUGIN, "not today");
    if (fault == SILENT)
        return PONS_PLUGIN;
    *output = input[0].shape;
    if (fault == RANK)
        output->rank = 9;
    if (fault == EMPTY)
        output->extent[last] = 0;
    return PONS_OK;
}

static double number(const void *memory, bool wide, int64_t i)
{
    return wide ? ((const double *)memory)[i] : (double)((const float *)memory)[i];
}

static void put(void *memory, bool wide, int64_t i, double value)
{
    if (wide)
        ((double *)memory)[i] = value;
    else
        ((float *)memory)[i] = (float)value;
}

static double value(const pons_op_call *call, bool wide, int64_t i)
{
    static double calls;
    int64_t last = call->shape.extent[call->shape.rank - 1];
    int fault = ((const op_breaks_rule *)call->config)->fault;
    double x = number(call->from[0], wide, i), y = x * x * number(call->from[1], wide, i % last);

    if (fault == CHANGING)
        y += ++calls;
    if (fault == PARTS)
        y += (double)call->begin;
    return fault == FAR && !wide ? y * 1.01 : y;
}

static void run(const pons_op_call *call, bool wide)
{
    int64_t last = call->shape.extent[call->shape.rank - 1];
    int64_t begin = call->begin * last, end = call->end * last;
    int fault = ((const op_breaks_rule *)call->config)->fault;

    for (int64_t i = begin; i < end - (fault == UNWRITTEN); i++)
        put(call->to, wide, i, value(call, wide, i));
    if (fault == BEHIND)
        put(call->to, wide, end, 0);
    if (fault == BEFORE)
        put(call->to, wide, begin - 1, 0);
}

static void run_float(const pons_op_call *call)
{
    run(call, false);
}

__attribute__((unused)) static void run_double(const pons_op_call *call)
{
    run(call, true);
}

__attribute__((unused)) static pons_status gradient(pons_graph *g, const void *config,
                                                    pons_node *const *input, pons_node *output,
                                                    pons_node *dy, const bool *wanted,
                                                    pons_node **gradient, pons_error *err)
{
    int fault = ((const op_breaks_rule *)config)->fault;
    pons_node *xdy = pons_mul(g, input[0], dy);

    if (fault == GRADIENT_FAILS)
        return pons_fail(err, PONS_PLUGIN, "no way back");
    gradient[0] = pons_mul(g, pons_scale(g, xdy, fault == GRADIENT_WRONG ? 2.1 : 2), input[1]);
    gradient[1] = pons_mul(g, input[0], xdy);
    if (fault == GRADIENT_SHAPE)
        gradient[1] = pons_iota(g, 1, 0, pons_shape_of(input[1]).extent[0] + 1);
    return pons_graph_status(g, err);
}

static const pons_op_operations operations = {
#ifdef NINE
    .input_count = 9,
#else
    .input_count = 2,
#endif
    .sliced = true, .shape = shape, .run_float = run_float,
#ifndef HALF
    .run_double = run_double,
#endif
#ifndef MUTE
    .gradient = gradient,
#endif
};

#if defined MUTE
PONS_OP(op_no_gradient, "1.0", "an op without a gradient", options, operations);
#elif defined HALF
PONS_OP(op_no_double, "1.0", "an op without a function in double", options, operations);
#elif defined NINE
PONS_OP(op_nine_inputs, "1.0", "an op with too many inputs", options, operations);
#else
PONS_OP(op_breaks_rule, "1.0", "an op that breaks rules", options, operations);
#endif
