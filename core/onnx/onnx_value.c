/*
 * onnx_value.c - names of values in both layouts, and leaves.
 */
#include "onnx/onnx_internal.h"

#include <string.h>

#include "graph/ir/shape.h"

/* Positions of N, D, H, W, C in LAYOUT_FIRST, by 'flat'. */
static const int first_position[2][5] = { { 0, 2, 3, 4, 1 }, { 0, -1, 2, 3, 1 } };

int onnx_axis(const onnx_graph *x, const pons_node *n, onnx_layout layout, int axis)
{
    return layout == LAYOUT_FIRST && n->shape.rank == 5 ? first_position[x->flat][axis] : axis;
}

int onnx_axes(const onnx_graph *x, const pons_node *n, onnx_layout layout, int axis[PONS_RANK_MAX])
{
    int count = 0;

    for (int i = 0; i < n->shape.rank; i++) {
        int at = onnx_axis(x, n, layout, i);
        if (at < 0)
            continue;
        axis[at] = i;
        count++;
    }
    return count;
}

int onnx_axes_of(const onnx_graph *x, const pons_node *n, onnx_layout layout, unsigned axes,
                 int64_t out[PONS_RANK_MAX])
{
    int count = 0;

    for (int i = 0; i < n->shape.rank; i++)
        if ((axes & PONS_AXIS(i)) != 0 && onnx_axis(x, n, layout, i) >= 0)
            out[count++] = onnx_axis(x, n, layout, i);
    return count;
}

int onnx_spatial(const onnx_graph *x)
{
    return x->flat ? 2 : 3;
}

int onnx_type(pons_type type)
{
    switch (type) {
    case PONS_U8: return ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    case PONS_I32: return ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
    default: return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    }
}

static const char *transposed(onnx_graph *x, const char *name, int count, const int64_t *order)
{
    onnx_node *n = onnx_add(x->model, "Transpose", 1, &name);

    onnx_set_ints(x->model, n, "perm", count, order);
    return n->output[0];
}

/* A value of five axes in the other layout. */
static const char *converted(onnx_graph *x, const char *name, onnx_layout to)
{
    static const int64_t first[] = { 0, 4, 1, 2, 3 }, last[] = { 0, 2, 3, 4, 1 },
                         flat_last[] = { 0, 2, 3, 1 }, depth = 1, flat_depth = 2;
    onnx_model *m = x->model;

    if (to == LAYOUT_FIRST) {
        name = transposed(x, name, 5, first);
        return x->flat ? onnx_apply2(m, "Squeeze", name, onnx_int64s(m, 1, &flat_depth)) : name;
    }
    if (!x->flat)
        return transposed(x, name, 5, last);
    return onnx_apply2(m, "Unsqueeze", transposed(x, name, 4, flat_last),
                       onnx_int64s(m, 1, &depth));
}

static onnx_value *made(onnx_graph *x, pons_node *n)
{
    onnx_value *v = &x->value[n->number];

    if (!v->made) {
        v->made = true;
        onnx_node_rule(x, n);
        if (v->name[LAYOUT_LAST] == NULL && v->name[LAYOUT_FIRST] == NULL)
            v->name[v->native] = "";
    }
    return v;
}

const char *onnx_value_of(onnx_graph *x, pons_node *n, onnx_layout layout)
{
    onnx_value *v = made(x, n);

    if (n->shape.rank != 5)
        layout = LAYOUT_LAST;
    if (v->name[layout] == NULL)
        v->name[layout] = converted(x, v->name[!layout], layout);
    return v->name[layout];
}

onnx_layout onnx_native(onnx_graph *x, pons_node *n)
{
    return made(x, n)->native;
}

void onnx_set(onnx_graph *x, const pons_node *n, onnx_layout layout, const char *name)
{
    onnx_value *v = &x->value[n->number];

    v->native = n->shape.rank == 5 ? layout : LAYOUT_LAST;
    v->name[v->native] = name;
}

/* ---- operands of maps ------------------------------------------------------------------------ */

/* Less than five axes as an operand of LAYOUT_FIRST. */
static const char *spread(onnx_graph *x, pons_node *n)
{
    onnx_value *v = &x->value[n->number];
    int64_t axes[] = { 0, 1, 2, 3 };
    int missing = 5 - n->shape.rank;

    if (v->spread != NULL)
        return v->spread;
    if (n->leaf != NULL && n->shape.rank == 1)
        return v->spread = onnx_leaf(x, n, true);
    const char *full = onnx_apply2(x->model, "Unsqueeze", onnx_value_of(x, n, LAYOUT_LAST),
                                   onnx_int64s(x->model, missing, axes));
    return v->spread = converted(x, full, LAYOUT_FIRST);
}

static const char *as_floats(onnx_graph *x, const pons_node *n, const char *name)
{
    onnx_node *cast;

    if (n->type == PONS_F32)
        return name;
    cast = onnx_add(x->model, "Cast", 1, &name);
    onnx_set_int(x->model, cast, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    return cast->output[0];
}

const char *onnx_operand(onnx_graph *x, pons_node *n, int rank, onnx_layout layout)
{
    bool spreads = rank == 5 && layout == LAYOUT_FIRST && n->shape.rank > 0 && n->shape.rank < 5;

    return as_floats(x, n, spreads ? spread(x, n) : onnx_value_of(x, n, layout));
}

/* ---- leaves ---------------------------------------------------------------------------------- */

size_t onnx_tensor_size(const safetensor *t)
{
    return (size_t)t->count * safetensors_type_size(t->type);
}

static const float *weights_of(const onnx_graph *x, const pons_node *n)
{
    const char *at = x->memory;

    for (int i = 0; i < x->weights->count; i++) {
        const safetensor *t = &x->weights->item[i];
        if (strcmp(t->name, n->name) == 0 && t->count == shape_count(n->shape))
            return (const float *)at;
        at += onnx_tensor_size(&x->weights->item[i]);
    }
    return NULL;
}

const char *onnx_leaf(onnx_graph *x, const pons_node *n, bool spreads)
{
    onnx_value *v = &x->value[n->number];
    const float *data = weights_of(x, n);
    int64_t extent[5] = { 1, 1, 1, 1, 1 };
    const int *position = first_position[x->flat];
    int count = 0, axis[PONS_RANK_MAX];
    bool kernel = n->shape.rank == 5 && n->leaf->role <= PONS_ROLE_WEIGHT;
    const char *name = n->name;

    if (data == NULL) {
        onnx_refuse(x, n, "the weights have no such tensor of that shape");
        return "";
    }
    if (spreads) {
        count = onnx_spatial(x) + 1;
        extent[0] = n->shape.extent[0];
    } else if (kernel) {
        count = onnx_axes(x, n, LAYOUT_FIRST, axis);
        for (int i = 0; i < 5; i++)
            if (position[i] >= 0)
                extent[position[i]] = n->shape.extent[i];
    } else {
        count = n->shape.rank;
        memcpy(extent, n->shape.extent, (size_t)count * sizeof *extent);
    }
    if (spreads ? v->made : v->spread != NULL)
        name = arena_format(x->model->memory, "%s.%s", n->name, spreads ? "channels" : "vector");
    onnx_floats(x->model, name, count, extent, data);
    if (!spreads)
        onnx_set(x, n, kernel ? LAYOUT_FIRST : LAYOUT_LAST, name);
    return name;
}
