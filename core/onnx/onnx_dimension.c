/*
 * onnx_dimension.c - numbers that depend on the extents of the image.
 *
 * Each number is read in several variants of the graph. Its ratio between two variants tells how
 * it depends on the axis that differs.
 */
#include "onnx/onnx_internal.h"

#include <math.h>

onnx_quantity onnx_read(const onnx_graph *x, const pons_node *n, onnx_reading *reading, int index)
{
    onnx_quantity q;

    for (int v = 0; v < VARIANT_COUNT; v++) {
        const pons_graph *g = x->variant[v] != NULL ? x->variant[v] : x->variant[VARIANT_BASE];
        q.at[v] = reading(g->node[n->number], index);
    }
    return q;
}

double onnx_read_extent(const pons_node *n, int axis)
{
    return (double)n->shape.extent[axis];
}

bool onnx_is_constant(const onnx_quantity *q)
{
    for (int v = 1; v < VARIANT_COUNT; v++)
        if (q->at[v] != q->at[VARIANT_BASE])
            return false;
    return true;
}

/* The exponents of the free axes, whose product the value is a multiple of. */
typedef struct exponents {
    int of[FREE_AXES];
} exponents;

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

unsigned onnx_spatial_doubt(const onnx_graph *x)
{
    unsigned spatial = 0xe & ~x->fixed;

    return spatial != 0 ? spatial : 1;
}

static double growth(const onnx_graph *x, int variant, int axis)
{
    return (double)x->extent[variant][axis] / (double)x->extent[VARIANT_BASE][axis];
}

/* Whether the exponents give the value in every variant. */
static bool explains(const onnx_graph *x, const exponents *e, const onnx_quantity *q)
{
    for (int v = 1; v < VARIANT_COUNT; v++) {
        double expected = q->at[VARIANT_BASE];
        for (int a = 0; x->variant[v] != NULL && a < FREE_AXES; a++)
            expected *= pow(growth(x, v, a), e->of[a]);
        if (q->at[v] != expected && !is_close(q->at[v], expected))
            return false;
    }
    return true;
}

/*
 * Find the exponents. If there are none, the axes that the value depends on are doubtful; all free
 * ones if only variants with several larger axes show that it depends on any.
 */
static exponents find_exponents(onnx_graph *x, const onnx_quantity *q)
{
    exponents e = { { 0 } };
    unsigned depends = 0;

    for (int a = 0; a < FREE_AXES; a++) {
        double ratio = q->at[1 + a] / q->at[VARIANT_BASE], by = growth(x, 1 + a, a);

        if (x->variant[1 + a] == NULL || q->at[1 + a] == q->at[VARIANT_BASE])
            continue;
        depends |= 1u << a;
        e.of[a] = is_close(ratio, by) ? 1 : is_close(ratio, 1 / by) ? -1 : 0;
    }
    if (explains(x, &e, q))
        return e;
    x->doubtful |= depends != 0 ? depends : onnx_spatial_doubt(x);
    return (exponents){ { 0 } };
}

void onnx_expect_constant(onnx_graph *x, const pons_node *n, onnx_reading *reading, int index)
{
    onnx_quantity q = onnx_read(x, n, reading, index);

    if (!onnx_is_constant(&q))
        x->doubtful |= onnx_spatial_doubt(x);
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A free extent as a vector of one int64. */
static const char *extent_name(onnx_graph *x, int axis)
{
    static const int position[FREE_AXES] = { 0, 2, 3, 4 };
    onnx_model *m = x->model;

    if (x->shape == NULL)
        x->shape = onnx_apply1(m, "Shape", "image");
    if (x->extent_name[axis] == NULL) {
        int64_t at = position[axis] - (x->experiment->task.flat && axis > 0);
        x->extent_name[axis] = onnx_apply2(m, "Gather", x->shape, onnx_int64s(m, 1, &at));
    }
    return x->extent_name[axis];
}

/* The product of free extents with this exponent, and of the base's; NULL: there are none. */
static const char *product(onnx_graph *x, const exponents *e, int exponent, int64_t *base)
{
    const char *name = NULL;

    *base = 1;
    for (int a = 0; a < FREE_AXES; a++) {
        if (e->of[a] != exponent)
            continue;
        *base *= x->extent[VARIANT_BASE][a];
        name = name == NULL ? extent_name(x, a)
             : onnx_apply2(x->model, "Mul", name, extent_name(x, a));
    }
    return name;
}

const char *onnx_dimension(onnx_graph *x, const onnx_quantity *q)
{
    exponents e = find_exponents(x, q);
    onnx_model *m = x->model;
    int64_t base, value = (int64_t)q->at[VARIANT_BASE], common;
    const char *name = product(x, &e, 1, &base);

    for (int a = 0; a < FREE_AXES; a++)
        if (e.of[a] < 0)
            x->doubtful |= 1u << a;
    if (name == NULL)
        return onnx_int64s(m, 1, &value);
    common = greatest_divisor(value, base);
    value /= common;
    base /= common;
    if (value != 1)
        name = onnx_apply2(m, "Mul", name, onnx_int64s(m, 1, &value));
    if (base != 1)
        name = onnx_apply2(m, "Div", name, onnx_int64s(m, 1, &base));
    return name;
}

/* A vector of one int64 as a float scalar. */
static const char *as_float(onnx_graph *x, const char *name)
{
    onnx_node *n = onnx_add(x->model, "Cast", 1, &name);

    onnx_set_int(x->model, n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    return onnx_apply2(x->model, "Reshape", n->output[0], onnx_int64s(x->model, 0, NULL));
}

const char *onnx_number(onnx_graph *x, const onnx_quantity *q)
{
    exponents e = find_exponents(x, q);
    onnx_model *m = x->model;
    int64_t above, below;
    const char *over = product(x, &e, 1, &above), *under = product(x, &e, -1, &below);
    double factor = q->at[VARIANT_BASE] / (double)above * (double)below;
    const char *name = onnx_float(m, factor);

    if (over != NULL)
        name = onnx_apply2(m, "Mul", as_float(x, over), name);
    if (under != NULL)
        name = onnx_apply2(m, "Div", name, as_float(x, under));
    return name;
}

const char *onnx_dimensions(onnx_graph *x, int count, const onnx_quantity *q)
{
    const char *part[2 * PONS_RANK_MAX];
    int64_t value[2 * PONS_RANK_MAX];
    bool constant = true;
    onnx_node *n;

    for (int i = 0; i < count; i++) {
        constant = constant && onnx_is_constant(&q[i]);
        value[i] = (int64_t)q[i].at[VARIANT_BASE];
    }
    if (constant || count == 0)
        return onnx_int64s(x->model, count, value);
    for (int i = 0; i < count; i++)
        part[i] = onnx_dimension(x, &q[i]);
    n = onnx_add(x->model, "Concat", count, part);
    onnx_set_int(x->model, n, "axis", 0);
    return n->output[0];
}
