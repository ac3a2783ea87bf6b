/*
 * onnx_node.c - rules of nodes that are no maps: a row for each kind.
 */
#include "onnx/onnx_internal.h"

#include "base/text/text.h"
#include "graph/ir/shape.h"

enum { PAD_COUNT = 2 * PONS_RANK_MAX };

void onnx_refuse(onnx_graph *x, const pons_node *n, const char *what)
{
    char shape[160];

    if (x->err->status != PONS_OK)
        return;
    pons_fail(x->err, PONS_CONFIG, "node '%s'%s%s%s of shape %s cannot be exported: %s",
              n->kind == NODE_OP ? n->attribute.op.name : node_kinds[n->kind].name,
              n->name != NULL ? " '" : "", n->name != NULL ? n->name : "",
              n->name != NULL ? "'" : "", shape_text(n->shape, shape, sizeof shape),
              what != NULL ? what : "ONNX has no operator for it");
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static double read_number(const pons_node *n, int index)
{
    return n->attribute.number;
}

static void constant(onnx_graph *x, pons_node *n)
{
    onnx_quantity q = onnx_read(x, n, read_number, 0);

    onnx_set(x, n, LAYOUT_LAST, onnx_number(x, &q));
}

static void leaf_value(onnx_graph *x, pons_node *n)
{
    onnx_leaf(x, n, false);
}

/* 0 .. n - 1 along one axis of the shape. */
static void iota(onnx_graph *x, pons_node *n)
{
    onnx_model *m = x->model;
    onnx_quantity extent[PONS_RANK_MAX];
    const char *ends[3], *none = onnx_int64s(m, 0, NULL), *range;
    int64_t zero = 0, one = 1;

    for (int i = 0; i < n->shape.rank; i++)
        extent[i] = onnx_read(x, n, onnx_read_extent, i);
    ends[0] = onnx_apply2(m, "Reshape", onnx_int64s(m, 1, &zero), none);
    ends[1] = onnx_apply2(m, "Reshape", onnx_dimension(x, &extent[n->attribute.axis]), none);
    ends[2] = onnx_apply2(m, "Reshape", onnx_int64s(m, 1, &one), none);
    range = onnx_add(m, "Range", 3, ends)->output[0];
    range = onnx_apply2(m, "Reshape", range, onnx_dimensions(x, n->shape.rank, extent));
    onnx_node *cast = onnx_add(m, "Cast", 1, &range);
    onnx_set_int(m, cast, "to", onnx_type(n->type));
    onnx_set(x, n, LAYOUT_LAST, cast->output[0]);
}

/* ---- reductions ------------------------------------------------------------------------------ */

const char *onnx_reduced(onnx_graph *x, const char *type, const char *name, int count,
                         const int64_t *axes)
{
    onnx_node *n;

    if (count == 0)
        return name;
    n = onnx_add(x->model, type, 1, &name);
    onnx_set_ints(x->model, n, "axes", count, axes);
    onnx_set_int(x->model, n, "keepdims", 1);
    return n->output[0];
}

static void extreme(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    const char *in = onnx_operand(x, n->input[0], n->shape.rank, layout);
    int64_t axes[PONS_RANK_MAX];
    int count = onnx_axes_of(x, n, layout, n->attribute.axes, axes);

    onnx_set(x, n, layout, onnx_reduced(x, n->kind == NODE_MAXIMUM ? "ReduceMax" : "ReduceMin", in,
                                   count, axes));
}

static void sum(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    const char *in[2] = { onnx_operand(x, n->input[0], n->shape.rank, layout), NULL };
    int64_t axes[PONS_RANK_MAX];
    onnx_node *node;

    in[1] = onnx_int64s(x->model, onnx_axes_of(x, n, layout, n->attribute.axes, axes), axes);
    node = onnx_add(x->model, "ReduceSum", 2, in);
    onnx_set_int(x->model, node, "keepdims", 1);
    onnx_set_int(x->model, node, "noop_with_empty_axes", 1);
    onnx_set(x, n, layout, node->output[0]);
}

static void arg_max(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    const char *in = onnx_operand(x, n->input[0], n->shape.rank, layout), *index;
    onnx_node *node = onnx_add(x->model, "ArgMax", 1, &in), *cast;

    onnx_set_int(x->model, node, "axis", onnx_axis(x, n, layout, n->attribute.axis));
    onnx_set_int(x->model, node, "keepdims", 1);
    index = node->output[0];
    cast = onnx_add(x->model, "Cast", 1, &index);
    onnx_set_int(x->model, cast, "to", onnx_type(PONS_I32));
    onnx_set(x, n, layout, cast->output[0]);
}

/* Mean of the squared distances to the mean. */
static const char *variance_about(onnx_graph *x, const char *in, const char *mean, int count,
                                  const int64_t *axes)
{
    const char *distance = onnx_apply2(x->model, "Sub", in, mean);

    return onnx_reduced(x, "ReduceMean", onnx_apply2(x->model, "Mul", distance, distance), count, axes);
}

/* The value of each group for each of its channels: [N, G, 1] to [N, C, 1, ..]. */
static const char *of_channels(onnx_graph *x, const char *name, int64_t groups, int64_t channels)
{
    onnx_model *m = x->model;
    const int64_t wide[] = { 1, groups, channels / groups }, apart[] = { 0, channels, 1, 1, 1 };

    name = onnx_apply2(m, "Expand", name, onnx_int64s(m, 3, wide));
    return onnx_apply2(m, "Reshape", name, onnx_int64s(m, 2 + onnx_spatial(x), apart));
}

static void moments_of_groups(onnx_graph *x, pons_node *n, bool second)
{
    pons_node *from = n->input[0];
    int64_t groups = n->attribute.moments.groups, last = 2, channels = from->shape.extent[4];
    const int64_t apart[] = { 0, groups, -1 };
    const char *in = onnx_apply2(x->model, "Reshape", onnx_operand(x, from, 5, LAYOUT_FIRST),
                                 onnx_int64s(x->model, 3, apart));
    const char *value = onnx_reduced(x, "ReduceMean", in, 1, &last);

    if (second)
        value = variance_about(x, in, value, 1, &last);
    onnx_set(x, n, LAYOUT_FIRST, of_channels(x, value, groups, channels));
}

static void mean(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    int64_t axes[PONS_RANK_MAX];
    int count = onnx_axes_of(x, n, layout, n->attribute.moments.axes, axes);

    if (n->attribute.moments.groups > 0 && n->shape.rank == 5
        && n->attribute.moments.axes == PONS_SPATIAL)
        moments_of_groups(x, n, false);
    else if (n->attribute.moments.groups > 0)
        onnx_refuse(x, n, "groups over other axes than D, H and W");
    else
        onnx_set(x, n, layout, onnx_reduced(x, "ReduceMean",
                                       onnx_operand(x, n->input[0], n->shape.rank, layout), count,
                                       axes));
}

static void variance(onnx_graph *x, pons_node *n)
{
    pons_node *of = n->input[0], *from = of->input[0];
    onnx_layout layout = onnx_native(x, from);
    int64_t axes[PONS_RANK_MAX];
    int count = onnx_axes_of(x, of, layout, of->attribute.moments.axes, axes);

    if (of->attribute.moments.groups > 0) {
        pons_node like = *of;
        like.number = n->number;
        moments_of_groups(x, &like, true);
        return;
    }
    onnx_set(x, n, layout,
             variance_about(x, onnx_operand(x, from, from->shape.rank, layout),
                            onnx_operand(x, of, from->shape.rank, layout), count, axes));
}

/* ---- convolution, matrix product, pool, resize ----------------------------------------------- */

/* Numbers of D, H, W that the layout has. */
static const int *spatial_part(const onnx_graph *x, const int *dhw)
{
    return dhw + 3 - onnx_spatial(x);
}

static void set_spatial(onnx_graph *x, onnx_node *n, const char *name, const int *dhw)
{
    const int *part = spatial_part(x, dhw);
    int64_t value[3];

    for (int i = 0; i < onnx_spatial(x); i++)
        value[i] = part[i];
    onnx_set_ints(x->model, n, name, onnx_spatial(x), value);
}

/* Numbers of a convolution or a pool, which a model has as constants. */
static double read_window(const pons_node *n, int index)
{
    const pons_convolution *c = &n->attribute.convolution;
    const pons_pool *p = &n->attribute.pool;
    const int *of_convolution[] = { c->stride, c->dilation, c->pad_low, c->pad_high };
    const int *of_pool[] = { p->kernel, p->stride, p->pad_low, p->pad_high };

    return (n->kind == NODE_POOL ? of_pool : of_convolution)[index / 3][index % 3];
}

static void expect_constant_window(onnx_graph *x, const pons_node *n)
{
    for (int i = 0; i < 12; i++)
        onnx_expect_constant(x, n, read_window, i);
}

static void set_pads(onnx_graph *x, onnx_node *n, const int *low, const int *high)
{
    int spatial = onnx_spatial(x);
    int64_t value[6];

    for (int i = 0; i < spatial; i++) {
        value[i] = spatial_part(x, low)[i];
        value[spatial + i] = spatial_part(x, high)[i];
    }
    onnx_set_ints(x->model, n, "pads", 2 * spatial, value);
}

/* Voxels along an axis beyond those that the kernel reaches. */
static double read_output_padding(const pons_node *n, int axis)
{
    const pons_convolution *c = &n->attribute.convolution;
    int64_t reached = (n->input[0]->shape.extent[1 + axis] - 1) * c->stride[axis]
                      - c->pad_low[axis] - c->pad_high[axis]
                      + c->dilation[axis] * (n->input[1]->shape.extent[1 + axis] - 1) + 1;

    return (double)(n->shape.extent[1 + axis] - reached);
}

static void set_output_padding(onnx_graph *x, pons_node *n, onnx_node *node)
{
    int padding[3];

    for (int i = 0; i < 3; i++) {
        onnx_quantity q = onnx_read(x, n, read_output_padding, i);
        padding[i] = (int)q.at[VARIANT_BASE];
        onnx_expect_constant(x, n, read_output_padding, i);
    }
    set_spatial(x, node, "output_padding", padding);
}

const char *onnx_convolution(onnx_graph *x, pons_node *n, pons_node *bias)
{
    const pons_convolution *c = &n->attribute.convolution;
    bool transposed = n->kind == NODE_CONVOLUTION_INPUT_GRADIENT;
    const char *in[] = { onnx_operand(x, n->input[0], 5, LAYOUT_FIRST),
                         onnx_operand(x, n->input[1], 5, LAYOUT_FIRST),
                         bias != NULL ? onnx_value_of(x, bias, LAYOUT_LAST) : NULL };
    onnx_node *node = onnx_add(x->model, transposed ? "ConvTranspose" : "Conv",
                               bias != NULL ? 3 : 2, in);

    expect_constant_window(x, n);
    set_spatial(x, node, "strides", c->stride);
    set_spatial(x, node, "dilations", c->dilation);
    set_pads(x, node, c->pad_low, c->pad_high);
    onnx_set_int(x->model, node, "group", c->groups);
    if (transposed)
        set_output_padding(x, n, node);
    return node->output[0];
}

static void convolution(onnx_graph *x, pons_node *n)
{
    onnx_set(x, n, LAYOUT_FIRST, onnx_convolution(x, n, NULL));
}

static const char *swapped(onnx_graph *x, const char *name, int rank, bool swap)
{
    int64_t order[PONS_RANK_MAX];
    onnx_node *n;

    if (!swap)
        return name;
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    n = onnx_add(x->model, "Transpose", 1, &name);
    onnx_set_ints(x->model, n, "perm", rank, order);
    return n->output[0];
}

static void matmul(onnx_graph *x, pons_node *n)
{
    const pons_matmul_attributes *m = &n->attribute.matmul;
    int rank = n->shape.rank;
    const char *a = swapped(x, onnx_operand(x, n->input[0], rank, LAYOUT_LAST), rank,
                            m->transpose_a);
    const char *b = swapped(x, onnx_operand(x, n->input[1], rank, LAYOUT_LAST), rank,
                            m->transpose_b);

    onnx_set(x, n, LAYOUT_LAST, onnx_apply2(x->model, "MatMul", a, b));
}

static void pool(onnx_graph *x, pons_node *n)
{
    const pons_pool *p = &n->attribute.pool;
    const char *in = onnx_operand(x, n->input[0], 5, LAYOUT_FIRST);
    onnx_node *node = onnx_add(x->model, p->mode == PONS_POOL_MAX ? "MaxPool" : "AveragePool", 1,
                               &in);

    expect_constant_window(x, n);
    set_spatial(x, node, "kernel_shape", p->kernel);
    set_spatial(x, node, "strides", p->stride);
    set_pads(x, node, p->pad_low, p->pad_high);
    onnx_set_int(x->model, node, "ceil_mode", p->ceil);
    if (p->mode == PONS_POOL_MEAN)
        onnx_set_int(x->model, node, "count_include_pad", 1);
    onnx_set(x, n, LAYOUT_FIRST, node->output[0]);
}

static void resize(onnx_graph *x, pons_node *n)
{
    static const struct { const char *mode, *position, *nearest; } modes[] = {
        [PONS_RESIZE_NEAREST] = { "nearest", "asymmetric", "floor" },
        [PONS_RESIZE_NEAREST_EXACT] = { "nearest", "half_pixel", "round_prefer_ceil" },
        [PONS_RESIZE_LINEAR] = { "linear", "half_pixel", "floor" },
        [PONS_RESIZE_LINEAR_ALIGNED] = { "linear", "align_corners", "floor" }
    };
    pons_resize_mode mode = n->attribute.resize.mode;
    onnx_quantity extent[5];
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, LAYOUT_FIRST, axis);
    const char *in[4] = { onnx_operand(x, n->input[0], 5, LAYOUT_FIRST), "", "", NULL };
    onnx_node *node;

    for (int i = 0; i < count; i++)
        extent[i] = onnx_read(x, n, onnx_read_extent, axis[i]);
    in[3] = onnx_dimensions(x, count, extent);
    node = onnx_add(x->model, "Resize", 4, in);
    onnx_set_text(x->model, node, "mode", modes[mode].mode);
    onnx_set_text(x->model, node, "coordinate_transformation_mode", modes[mode].position);
    onnx_set_text(x->model, node, "nearest_mode", modes[mode].nearest);
    onnx_set(x, n, LAYOUT_FIRST, node->output[0]);
}

/* ---- data movement --------------------------------------------------------------------------- */

/* The value in its own type: no cast to float. */
static const char *as_is(onnx_graph *x, pons_node *n, onnx_layout layout)
{
    return onnx_value_of(x, n, layout);
}

static const char *shape_of(onnx_graph *x, const pons_node *n, onnx_layout layout)
{
    onnx_quantity extent[PONS_RANK_MAX];
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, layout, axis);

    for (int i = 0; i < count; i++)
        extent[i] = onnx_read(x, n, onnx_read_extent, axis[i]);
    return onnx_dimensions(x, count, extent);
}

static void reshape(onnx_graph *x, pons_node *n)
{
    onnx_set(x, n, LAYOUT_LAST, onnx_apply2(x->model, "Reshape",
                                            as_is(x, n->input[0], LAYOUT_LAST),
                                            shape_of(x, n, LAYOUT_LAST)));
}

static void transpose(onnx_graph *x, pons_node *n)
{
    const char *in = as_is(x, n->input[0], LAYOUT_LAST);
    onnx_node *node = onnx_add(x->model, "Transpose", 1, &in);
    int64_t order[PONS_RANK_MAX];

    for (int i = 0; i < n->shape.rank; i++)
        order[i] = n->attribute.transpose.order[i];
    onnx_set_ints(x->model, node, "perm", n->shape.rank, order);
    onnx_set(x, n, LAYOUT_LAST, node->output[0]);
}

static void broadcast(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = n->input[0]->shape.rank == 5 ? onnx_native(x, n->input[0]) : LAYOUT_LAST;

    onnx_set(x, n, layout, onnx_apply2(x->model, "Expand", as_is(x, n->input[0], layout),
                                       shape_of(x, n, layout)));
}

/* Slice with vectors of begins, ends and steps along all axes of a layout. */
static void slice(onnx_graph *x, pons_node *n, onnx_layout layout, const char *begins,
                  const char *ends, const char *steps)
{
    int64_t order[PONS_RANK_MAX];
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, layout, axis);
    const char *in[5] = { as_is(x, n->input[0], layout), begins, ends, NULL, steps };

    for (int i = 0; i < count; i++)
        order[i] = i;
    in[3] = onnx_int64s(x->model, count, order);
    onnx_set(x, n, layout, onnx_add(x->model, "Slice", 5, in)->output[0]);
}

static void flip(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    int64_t begin[PONS_RANK_MAX], end[PONS_RANK_MAX], step[PONS_RANK_MAX];
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, layout, axis);

    for (int i = 0; i < count; i++) {
        bool turns = (n->attribute.flip.axes & PONS_AXIS(axis[i])) != 0;
        begin[i] = turns ? -1 : 0;
        end[i] = turns ? INT64_MIN : INT64_MAX;
        step[i] = turns ? -1 : 1;
    }
    slice(x, n, layout, onnx_int64s(x->model, count, begin), onnx_int64s(x->model, count, end),
          onnx_int64s(x->model, count, step));
}

static double read_begin(const pons_node *n, int axis)
{
    return (double)n->attribute.crop.start[axis];
}

static double read_step(const pons_node *n, int axis)
{
    return (double)n->attribute.crop.step[axis];
}

/* The element behind the last one, counted from the end: 0 or negative. */
static double read_end_from_behind(const pons_node *n, int axis)
{
    const pons_crop_attributes *c = &n->attribute.crop;

    return (double)(c->start[axis] + (n->shape.extent[axis] - 1) * c->step[axis] + 1
                    - n->input[0]->shape.extent[axis]);
}

static double read_end(const pons_node *n, int axis)
{
    return read_end_from_behind(n, axis) + (double)n->input[0]->shape.extent[axis];
}

static void crop(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    onnx_quantity begin[PONS_RANK_MAX], end[PONS_RANK_MAX], step[PONS_RANK_MAX];
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, layout, axis);

    for (int i = 0; i < count; i++) {
        onnx_quantity behind = onnx_read(x, n, read_end_from_behind, axis[i]);
        begin[i] = onnx_read(x, n, read_begin, axis[i]);
        step[i] = onnx_read(x, n, read_step, axis[i]);
        end[i] = onnx_read(x, n, read_end, axis[i]);
        for (int v = 0; v < VARIANT_COUNT && onnx_is_constant(&behind); v++)
            end[i].at[v] = behind.at[v] == 0 ? (double)INT32_MAX : behind.at[v];
    }
    slice(x, n, layout, onnx_dimensions(x, count, begin), onnx_dimensions(x, count, end),
          onnx_dimensions(x, count, step));
}

static double read_pad(const pons_node *n, int index)
{
    return (double)(index < PONS_RANK_MAX ? n->attribute.pad.low[index]
                    : n->attribute.pad.high[index - PONS_RANK_MAX]);
}

static void pad(onnx_graph *x, pons_node *n)
{
    static const char *const modes[] = { [PONS_PAD_ZERO] = "constant", [PONS_PAD_EDGE] = "edge",
                                         [PONS_PAD_REFLECT] = "reflect" };
    onnx_layout layout = onnx_native(x, n->input[0]);
    onnx_quantity pads[PAD_COUNT];
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, layout, axis);
    const char *in[2] = { as_is(x, n->input[0], layout), NULL };
    onnx_node *node;

    for (int i = 0; i < count; i++) {
        pads[i] = onnx_read(x, n, read_pad, axis[i]);
        pads[count + i] = onnx_read(x, n, read_pad, PONS_RANK_MAX + axis[i]);
        if (n->attribute.pad.step[axis[i]] != 1)
            onnx_refuse(x, n, "elements of it are apart");
    }
    in[1] = onnx_dimensions(x, 2 * count, pads);
    node = onnx_add(x->model, "Pad", 2, in);
    onnx_set_text(x->model, node, "mode", modes[n->attribute.pad.mode]);
    onnx_set(x, n, layout, node->output[0]);
}

static void concatenate(onnx_graph *x, pons_node *n)
{
    onnx_layout layout = onnx_native(x, n->input[0]);
    const char **in = arena_alloc(x->model->memory, (size_t)n->input_count * sizeof *in);
    onnx_node *node;

    for (int i = 0; i < n->input_count; i++)
        in[i] = as_is(x, n->input[i], layout);
    node = onnx_add(x->model, "Concat", n->input_count, in);
    onnx_set_int(x->model, node, "axis", onnx_axis(x, n, layout, n->attribute.axis));
    onnx_set(x, n, layout, node->output[0]);
}

static void gather(onnx_graph *x, pons_node *n)
{
    const char *in[2] = { as_is(x, n->input[0], LAYOUT_LAST),
                          as_is(x, n->input[1], LAYOUT_LAST) };
    onnx_node *node = onnx_add(x->model, "Gather", 2, in);

    onnx_set_int(x->model, node, "axis", n->attribute.axis);
    onnx_set(x, n, LAYOUT_LAST, node->output[0]);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void (*const rules[NODE_KIND_COUNT])(onnx_graph *x, pons_node *n) = {
    [NODE_PARAMETER] = leaf_value, [NODE_STATE] = leaf_value, [NODE_CONSTANT] = constant,
    [NODE_IOTA] = iota, [NODE_SUM] = sum, [NODE_MAXIMUM] = extreme, [NODE_MINIMUM] = extreme,
    [NODE_ARG_MAX] = arg_max, [NODE_MOMENTS] = mean, [NODE_SECOND] = variance,
    [NODE_CONVOLUTION] = convolution, [NODE_CONVOLUTION_INPUT_GRADIENT] = convolution,
    [NODE_MATMUL] = matmul, [NODE_POOL] = pool, [NODE_RESIZE] = resize,
    [NODE_RESHAPE] = reshape, [NODE_TRANSPOSE] = transpose, [NODE_BROADCAST] = broadcast,
    [NODE_FLIP] = flip, [NODE_CROP] = crop, [NODE_PAD] = pad, [NODE_CONCATENATE] = concatenate,
    [NODE_GATHER] = gather
};

void onnx_node_rule(onnx_graph *x, pons_node *n)
{
    if (onnx_fuse_rule(x, n))
        return;
    if (node_is_map(n))
        onnx_map_rule(x, n);
    else if (rules[n->kind] != NULL)
        rules[n->kind](x, n);
    else
        onnx_refuse(x, n, NULL);
}
