/*
 * onnx_map.c - pointwise nodes. Comparisons and logic of pons give 1 or 0 as floats, those of ONNX
 * give booleans: a node has both, each made where it is read.
 */
#include "onnx/onnx_internal.h"

/* The operator of a map with the same meaning; NULL: none. */
static const char *const same_operator[PONS_MAP_OPERATION_COUNT] = {
    [PONS_MAP_ADD] = "Add", [PONS_MAP_SUB] = "Sub", [PONS_MAP_MUL] = "Mul",
    [PONS_MAP_DIV] = "Div", [PONS_MAP_MIN] = "Min", [PONS_MAP_MAX] = "Max",
    [PONS_MAP_POW] = "Pow", [PONS_MAP_NEG] = "Neg", [PONS_MAP_ABS] = "Abs",
    [PONS_MAP_SIGN] = "Sign", [PONS_MAP_FLOOR] = "Floor", [PONS_MAP_ROUND] = "Round",
    [PONS_MAP_SQRT] = "Sqrt", [PONS_MAP_EXP] = "Exp", [PONS_MAP_LOG] = "Log",
    [PONS_MAP_SIN] = "Sin", [PONS_MAP_COS] = "Cos", [PONS_MAP_TANH] = "Tanh",
    [PONS_MAP_ERF] = "Erf", [PONS_MAP_STOP_GRADIENT] = "Identity"
};

/* Those whose result is boolean in ONNX. */
static const char *const boolean_operator[PONS_MAP_OPERATION_COUNT] = {
    [PONS_MAP_EQUAL] = "Equal", [PONS_MAP_NOT_EQUAL] = "Equal", [PONS_MAP_LESS] = "Less",
    [PONS_MAP_LESS_EQUAL] = "LessOrEqual", [PONS_MAP_GREATER] = "Greater",
    [PONS_MAP_GREATER_EQUAL] = "GreaterOrEqual", [PONS_MAP_AND] = "And", [PONS_MAP_OR] = "Or",
    [PONS_MAP_NOT] = "Not", [PONS_MAP_ISFINITE] = "Less"
};

/* The layout of a map: that of its first operand with five axes. */
static onnx_layout layout_of(onnx_graph *x, pons_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->input[i]->shape.rank == 5)
            return onnx_native(x, n->input[i]);
    return LAYOUT_LAST;
}

/* An operand as booleans: not 0. */
static const char *truth_of(onnx_graph *x, pons_node *n, int rank, onnx_layout layout)
{
    onnx_value *v = &x->value[n->number];
    const char *name = onnx_operand(x, n, rank, layout);

    if (v->truth != NULL && (n->shape.rank == rank ? v->native == layout || rank != 5
                             : n->shape.rank == 0))
        return v->truth;
    return onnx_apply1(x->model, "Not",
                       onnx_apply2(x->model, "Equal", name, onnx_float(x->model, 0)));
}

static const char *boolean(onnx_graph *x, pons_node *n, onnx_layout layout)
{
    bool logic = n->kind == PONS_MAP_AND || n->kind == PONS_MAP_OR || n->kind == PONS_MAP_NOT;
    const char *type = boolean_operator[n->kind], *in[2], *name;

    for (int i = 0; i < n->input_count; i++)
        in[i] = logic ? truth_of(x, n->input[i], n->shape.rank, layout)
                : onnx_operand(x, n->input[i], n->shape.rank, layout);
    if (n->kind == PONS_MAP_ISFINITE) {
        in[0] = onnx_apply1(x->model, "Abs", in[0]);
        in[1] = onnx_float(x->model, (double)__builtin_inff());
        return onnx_apply2(x->model, type, in[0], in[1]);
    }
    name = onnx_add(x->model, type, n->input_count, in)->output[0];
    return n->kind == PONS_MAP_NOT_EQUAL ? onnx_apply1(x->model, "Not", name) : name;
}

static const char *cast(onnx_graph *x, const char *name, int type)
{
    onnx_node *n = onnx_add(x->model, "Cast", 1, &name);

    onnx_set_int(x->model, n, "to", type);
    return n->output[0];
}

static const char *composed(onnx_graph *x, pons_node *n, onnx_layout layout)
{
    onnx_model *m = x->model;
    const char *a = onnx_operand(x, n->input[0], n->shape.rank, layout), *one;

    if (n->kind == NODE_CAST)
        return n->type == PONS_F32 ? a : cast(x, a, onnx_type(n->type));
    one = onnx_float(m, 1);
    if (n->kind == PONS_MAP_EXPM1)
        return onnx_apply2(m, "Sub", onnx_apply1(m, "Exp", a), one);
    if (n->kind == PONS_MAP_LOG1P)
        return onnx_apply1(m, "Log", onnx_apply2(m, "Add", a, one));
    onnx_refuse(x, n, NULL);
    return a;
}

void onnx_map_rule(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = layout_of(x, n);
    int rank = n->shape.rank;
    const char *in[3];

    if (n->kind == PONS_MAP_SELECT) {
        in[0] = truth_of(x, n->input[0], rank, layout);
        in[1] = onnx_operand(x, n->input[1], rank, layout);
        in[2] = onnx_operand(x, n->input[2], rank, layout);
        onnx_set(x, n, layout, onnx_add(x->model, "Where", 3, in)->output[0]);
    } else if (n->kind != NODE_CAST && boolean_operator[n->kind] != NULL) {
        x->value[n->number].truth = boolean(x, n, layout);
        onnx_set(x, n, layout, cast(x, x->value[n->number].truth, onnx_type(PONS_F32)));
    } else if (n->kind != NODE_CAST && same_operator[n->kind] != NULL) {
        for (int i = 0; i < n->input_count; i++)
            in[i] = onnx_operand(x, n->input[i], rank, layout);
        onnx_set(x, n, layout,
                 onnx_add(x->model, same_operator[n->kind], n->input_count, in)->output[0]);
    } else {
        onnx_set(x, n, layout, composed(x, n, layout));
    }
}
