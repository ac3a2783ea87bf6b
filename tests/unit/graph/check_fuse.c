/*
 * check_fuse.c - the number of kernels of common compositions, and the tensors that they read and
 * write.
 */
#include "support/suite.h"

#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/passes/fuse/fuse.h"
#include "graph/passes/recompute.h"
#include "graph/passes/simplify.h"
#include "graph/reference/reference.h"
#include "graph/reference/reference_internal.h"
#include "support/graph/graphs.h"

#include <math.h>
#include <string.h>

static device reference_of(bool fused)
{
    device d;

    device_reference(&d, false);
    d.reference = !fused;
    return d;
}

typedef struct net {
    pons_graph *g;
    pons_node *root[64];
    int root_count;
    bool fused, low, blocks;
} net;

/* The gradients of all parameters become roots after the loss. */
static void net_differentiate(net *n, pons_node *loss)
{
    pons_error err = PONS_ERROR_INIT;
    pons_node *of[64] = { NULL }, *gradient[64] = { NULL };
    int count = 0;

    for (leaf *p = n->g->parameter; p; p = p->next)
        of[count++] = p->node;
    ck_assert_msg(graph_gradient(n->g, loss, count, of, gradient, &err) == PONS_OK, "%s", err.text);
    n->root[n->root_count++] = loss;
    for (int i = 0; i < count; i++)
        if (gradient[i])
            n->root[n->root_count++] = gradient[i];
    pass_simplify(n->g);
    if (n->low)
        ck_assert(pass_precision(n->g, n->root_count, n->root, PRECISION_BF16, &err) == PONS_OK);
    if (n->fused)
        ck_assert(pass_recompute(n->g, n->root_count, n->root, n->blocks, &err) == PONS_OK);
}

static plan net_plan(net *n, bool fused)
{
    pons_error err = PONS_ERROR_INIT;
    device d = reference_of(fused);
    program_settings settings = { .testing.no_fuse = !fused };
    plan p;

    ck_assert_msg(plan_make(n->g, n->root_count, n->root, &d, &settings, &p, &err) == PONS_OK, "%s",
                  err.text);
    if (getenv("PONS_TEST_PRINT"))
        plan_print(&p, stderr);
    return p;
}

/* ---- running a plan -------------------------------------------------------------------------- */

/* Memory of every tensor, by the number of its node; the values of a leaf depend on its name. */
typedef struct tensors {
    void **memory;
    int count;
} tensors;

static void fill_leaf(const pons_node *x, void *memory)
{
    uint32_t state = 1;

    for (const char *c = x->name ? x->name : ""; *c; c++)
        state = state * 31 + (uint32_t)*c;
    for (int64_t i = 0; i < shape_count(x->shape); i++) {
        double value = (double)((state = state * 1664525 + 1013904223) >> 8) / (1 << 24);

        if (x->type == PONS_U8 || x->type == PONS_I32)
            value = floor(3 * value);
        else if (x->leaf && x->leaf->role == PONS_ROLE_WEIGHT)
            value = (value - 0.5) / 4;
        number_store(x->type, memory, i, value);
    }
}

static void run_kernel(tensors *t, const device *d, const plan_kernel *k)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { 0 };
    pons_step_key step_key = { .seed = 1, .step = 2, .micro_batch = 3 };
    void *input[PONS_KERNEL_INPUTS_MAX], *output[PONS_KERNEL_INPUTS_MAX];
    bool supported = false;
    pons_call call = { input, output, NULL, &step_key };

    for (int i = 0; i < k->request.input_count; i++) {
        input[i] = t->memory[k->input[i]->number];
        ck_assert_msg(input[i] != NULL, "kernel '%s' reads node %d before it is computed",
                      k->request.name, k->input[i]->number);
    }
    for (int i = 0; i < k->request.output_count; i++) {
        pons_node *x = k->output[i];

        if (t->memory[x->number] == NULL)
            t->memory[x->number] = calloc((size_t)shape_count(x->shape), sizeof(double));
        output[i] = t->memory[x->number];
    }
    ck_assert(d->operations->prepare(d->handle, &k->request, &kernel, &supported, &err) == PONS_OK);
    ck_assert(supported);
    call.scratch = aligned_alloc(64, (kernel.scratch_size + 127) / 64 * 64);
    ck_assert_msg(kernel.run(&kernel, &call, &err) == PONS_OK, "%s", err.text);
    free(call.scratch);
    kernel.free(&kernel);
}

static tensors run_plan(const net *n, const plan *p)
{
    device d = reference_of(true);
    tensors t = { calloc((size_t)n->g->node_count, sizeof(void *)), n->g->node_count };

    for (int i = 0; i < t.count; i++) {
        const pons_node *x = n->g->node[i];

        if (x->kind < NODE_INPUT || x->kind > NODE_SCALAR)
            continue;
        t.memory[i] = calloc((size_t)shape_count(x->shape), sizeof(double));
        fill_leaf(x, t.memory[i]);
    }
    for (int i = 0; i < p->kernel_count; i++)
        run_kernel(&t, &d, &p->kernel[i]);
    return t;
}

static void tensors_free(tensors *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->memory[i]);
    free(t->memory);
}

/* The largest difference of a root, relative to the root's largest element. */
static double root_difference(const net *a, const tensors *ta, const net *b, const tensors *tb,
                              int root)
{
    pons_node *x = node_owner(a->root[root]), *y = node_owner(b->root[root]);
    double most = 0, largest = 1e-30;

    for (int64_t i = 0; i < shape_count(x->shape); i++) {
        double p = number_load(x->type, ta->memory[x->number], i);
        double q = number_load(y->type, tb->memory[y->number], i);

        ck_assert_msg(isfinite(p) && isfinite(q), "root %d element %d is %g and %g", root, (int)i,
                      p, q);
        most = fmax(most, fabs(p - q));
        largest = fmax(largest, fabs(p));
    }
    return most / largest;
}

/* Build the same net twice: the fused and recomputed plan gives the results of the single nodes. */
static void check_same(void (*build)(net *n, int variant), int variant, double tolerance)
{
    net n[2] = { { .g = graph_new(true) }, { .g = graph_new(true) } };
    tensors t[2];

    for (int fused = 0; fused < 2; fused++) {
        plan p;

        n[fused].fused = fused;
        build(&n[fused], variant);
        p = net_plan(&n[fused], fused);
        t[fused] = run_plan(&n[fused], &p);
    }
    ck_assert_int_eq(n[0].root_count, n[1].root_count);
    for (int i = 0; i < n[0].root_count; i++) {
        double difference = root_difference(&n[0], &t[0], &n[1], &t[1], i);

        ck_assert_msg(difference <= tolerance, "variant %d root %d (%s): %g", variant, i,
                      node_owner(n[0].root[i])->name ? n[0].root[i]->name : "", difference);
    }
    for (int fused = 0; fused < 2; fused++) {
        tensors_free(&t[fused]);
        graph_free(n[fused].g);
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

static int count_kind(const plan *p, pons_kernel_kind kind)
{
    int count = 0;

    for (int i = 0; i < p->kernel_count; i++)
        count += p->kernel[i].request.kind == kind;
    return count;
}

START_TEST(a_fused_chain_is_one_kernel)
{
    for (int fused = 0; fused < 2; fused++) {
        net n = { .g = graph_new(true), .fused = true };
        pons_node *x = node_input(n.g, "x", PONS_F32, image_shape_of(2, 4, 4, 4, 3));
        pons_node *y = pons_exp(n.g, pons_scale(n.g, x, 2));
        plan p;

        n.root[n.root_count++] = pons_add(n.g, y, pons_tanh(n.g, y));
        p = net_plan(&n, fused);
        ck_assert_int_eq(p.kernel_count, fused ? 1 : 4);
        graph_free(n.g);
    }
}
END_TEST

/* ---- nets ------------------------------------------------------------------------------------ */

static void three_layers(net *n, int batch)
{
    pons_node *x = node_input(n->g, "image", PONS_F32, image_shape_of(2, 4, 5, 6, 3));

    x = graph_layer(n->g, x, "0", 5, 1, batch);
    x = graph_layer(n->g, x, "1", 4, 1, batch);
    x = graph_layer(n->g, x, "2", 3, 1, batch);
    net_differentiate(n, pons_mean_all(n->g, pons_mul(n->g, x, pons_square(n->g, x))));
}

static void three_layers_low(net *n, int batch)
{
    n->low = true;
    three_layers(n, batch);
}

static void three_layers_blocks(net *n, int batch)
{
    n->blocks = true;
    three_layers(n, batch);
}

/*
 * A U-Net with one level down, a skip, residual units and dropout; its loss is Dice and
 * cross-entropy.
 */
static void small_unet(net *n, int classes)
{
    pons_graph *g = n->g;
    pons_node *x = node_input(g, "image", PONS_F32, image_shape_of(2, 4, 6, 6, 2));
    pons_node *label = node_input(g, "label", PONS_U8, image_shape_of(2, 4, 6, 6, 1));
    pons_convolution c = PONS_CONVOLUTION_INIT, up = PONS_CONVOLUTION_INIT;
    pons_node *skip, *low, *part[2];
    int none[3] = { 1, 1, 1 };

    skip = pons_dropout(g, graph_layer(g, x, "0", 4, 1, true), 0.2, "drop");
    low = graph_layer(g, skip, "1", 8, 2, false);
    low = pons_add(g, low, graph_layer(g, low, "2", 8, 1, false));
    low = pons_add(g, low, graph_layer(g, low, "3", 8, 1, true));
    for (int i = 0; i < 3; i++) {
        up.stride[i] = 2;
        up.pad_low[i] = up.pad_high[i] = 1;
    }
    low = pons_convolve_transposed(g, low, graph_weight(g, "up", 8, 3, 4), &up, none);
    low = pons_relu(g, pons_instance_norm(g, low, NULL, NULL, 1e-5));
    part[0] = skip;
    part[1] = low;
    x = pons_concatenate(g, 2, part, 4);
    x = pons_add(g, pons_convolve(g, x, graph_weight(g, "out", classes, 1, 8), &c),
                 graph_vector(g, "out.bias", PONS_ROLE_BIAS, classes, 0));
    if (classes > 1)
        net_differentiate(n, dice_ce(g, x, label));
    else
        net_differentiate(n, pons_mean_all(g, pons_neg(g, pons_log_sigmoid(g, x))));
}

/*
 * Roots of many shapes: constants, counters, per-point and per-channel values, random nodes in
 * both, integers.
 */
static void odds_and_ends(net *n, int variant)
{
    pons_graph *g = n->g;
    pons_node *x = node_input(g, "x", PONS_F32, image_shape_of(2, 3, 1, 4, 5));
    pons_node *s = node_input(g, "s", PONS_F32, image_shape_of(2, 3, 1, 4, 1));
    pons_node *r = pons_random_uniform(g, "r", image_shape_of(2, 3, 1, 4, 5));
    pons_node *q = pons_random_normal(g, "q", image_shape_of(2, 3, 1, 4, 1));
    pons_node *best = pons_arg_max(g, x, 4), *mean, *variance, *flat, *share;

    n->root[n->root_count++] = pons_add(g, pons_mul(g, x, s), pons_iota(g, 5, 1, 3));
    n->root[n->root_count++] = pons_add(g, pons_mul(g, s, pons_iota(g, 5, 3, 4)), q);
    n->root[n->root_count++] = pons_select(g, pons_less(g, r, s), pons_softmax(g, x, 4), q);
    n->root[n->root_count++] = best;
    n->root[n->root_count++] = pons_sum(g, pons_cast(g, pons_equal(g, pons_cast(g, best, PONS_F32),
                                        pons_iota(g, 5, 4, 5)), PONS_F32), PONS_SPATIAL);
    n->root[n->root_count++] = pons_cast(g, pons_scale(g, x, 7.5), PONS_I32);
    n->root[n->root_count++] = pons_broadcast(g, pons_scalar(g, 3), (pons_shape){ 2, { 3, 2 } });
    n->root[n->root_count++] = pons_sum(g, pons_reduce_max(g, x, PONS_CHANNEL), PONS_BATCH);
    n->root[n->root_count++] = pons_reshape(g, pons_exp(g, x), (pons_shape){ 2, { 6, 20 } });
    flat = pons_reshape(g, x, (pons_shape){ 2, { 24, 5 } });
    n->root[n->root_count++] = pons_sum(g, pons_mul(g, flat, pons_iota(g, 2, 0, 24)), PONS_AXIS(0));
    pons_moments(g, pons_mul(g, x, pons_softmax(g, x, 4)), PONS_SPATIAL, variant, &mean, &variance);
    n->root[n->root_count++] = pons_div(g, pons_sub(g, x, mean), pons_add_scalar(g, variance, 1));
    share = pons_div(g, x, pons_sum(g, x, PONS_CHANNEL));
    n->root[n->root_count++] = pons_sub(g, pons_sum(g, share, PONS_AXIS(3)),
                                        pons_reduce_min(g, s, PONS_AXIS(1)));
}

/* ---- random nets ----------------------------------------------------------------------------- */

static uint32_t draw_below(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % below;
}

/* A shape that broadcasts with s: some axes have extent 1, and leading axes may be missing. */
static pons_shape smaller_shape(uint32_t *state, pons_shape s)
{
    int drop = draw_below(state, 4) == 0 ? (int)draw_below(state, (uint32_t)s.rank) : 0;
    pons_shape out = { .rank = s.rank - drop };

    for (int i = 0; i < out.rank; i++)
        out.extent[i] = draw_below(state, 3) == 0 ? 1 : s.extent[i + drop];
    return out;
}

static pons_node *random_pair(pons_graph *g, uint32_t *state, pons_node *a, pons_node *b)
{
    switch (draw_below(state, 5)) {
    case 0: return pons_add(g, a, b);
    case 1: return pons_sub(g, a, pons_scale(g, b, 0.5));
    case 2: return pons_tanh(g, pons_mul(g, a, b));
    case 3: return pons_select(g, pons_less(g, a, b), pons_scale(g, a, 1.5), b);
    default: return pons_div(g, a, pons_add_scalar(g, pons_square(g, b), 1));
    }
}

static pons_node *random_moved(pons_graph *g, uint32_t *state, pons_node *x)
{
    pons_shape s = pons_shape_of(x);
    int64_t start[PONS_RANK_MAX] = { 0 }, extent[PONS_RANK_MAX], none[PONS_RANK_MAX] = { 0 };
    int axis = (int)draw_below(state, (uint32_t)s.rank);
    pons_node *part[2];

    memcpy(extent, s.extent, sizeof(extent));
    if (extent[axis] == 1)
        return pons_flip(g, x, PONS_AXIS(axis));
    extent[axis] = 1 + draw_below(state, (uint32_t)extent[axis] - 1);
    part[0] = pons_crop(g, x, start, extent, NULL);
    start[axis] = extent[axis];
    extent[axis] = s.extent[axis] - extent[axis];
    part[1] = draw_below(state, 2) ? pons_crop(g, x, start, extent, NULL)
                             : pons_crop(g, pons_exp(g, pons_neg(g, x)), start, extent, NULL);
    if (draw_below(state, 2))
        part[0] = pons_scale(g, part[0], 1.25);
    if (draw_below(state, 3) == 0)
        return pons_crop(g, pons_pad(g, x, PONS_PAD_ZERO, start, none), none, s.extent, NULL);
    return pons_concatenate(g, 2, part, axis);
}

static pons_node *random_step(pons_graph *g, uint32_t *state, pons_node *x, pons_node *other,
                              int step)
{
    pons_shape s = pons_shape_of(x);
    pons_node *mean, *variance;
    int axis;

    switch (draw_below(state, 12)) {
    case 0: return pons_softmax(g, x, s.rank - 1);
    case 1: return pons_sub(g, x, pons_mean(g, x, 1 + draw_below(state, (1u << s.rank) - 1)));
    case 2:
        pons_moments(g, x, 1 + draw_below(state, (1u << s.rank) - 1), 0, &mean, &variance);
        return pons_div(g, pons_sub(g, x, mean), pons_sqrt(g, pons_add_scalar(g, variance, 1)));
    case 3: return random_moved(g, state, x);
    case 4: return pons_dropout(g, x, 0.3, pons_name(g, "drop%d", step));
    case 5: return pons_mul(g, x, pons_random_uniform(g, pons_name(g, "uniform%d", step),
                                                      smaller_shape(state, s)));
    case 6: return pons_add(g, x, pons_reduce_max(g, x, PONS_AXIS(s.rank - 1)));
    case 7:
        axis = (int)draw_below(state, (uint32_t)s.rank);
        return pons_mul(g, x, pons_scale(g, pons_iota(g, s.rank, axis, s.extent[0]), 0.1));
    case 8:
        x = pons_tanh(g, pons_reshape(g, x, (pons_shape){ 1, { shape_count(s) } }));
        return pons_reshape(g, x, s);
    case 9: return pons_mul(g, x, pons_sum(g, pons_softmax(g, pons_mul(g, x, other), s.rank - 1),
                                           draw_below(state, 1u << s.rank)));
    default: return random_pair(g, state, x, other);
    }
}

static void random_net(net *n, int seed)
{
    uint32_t state = (uint32_t)seed * 2654435761u + 7;
    pons_graph *g = n->g;
    int64_t side = 2 + draw_below(&state, 3);
    pons_shape s = { 5, { side, draw_below(&state, 2) ? side : 1, 1, side, side } };
    pons_node *node[40], *loss;
    const pons_init zero = { PONS_INIT_CONSTANT, 0 };
    int count = 0;

    node[count++] = node_input(g, "x", PONS_F32, s);
    node[count++] = pons_parameter_leaf(g, "p", PONS_ROLE_BIAS, s, zero);
    for (int i = 0; i < 3; i++)
        node[count++] = pons_parameter_leaf(g, pons_name(g, "q%d", i), PONS_ROLE_BIAS,
                                            smaller_shape(&state, s), zero);
    for (int i = 2; i < 5; i++)
        node[i] = pons_broadcast(g, node[i], s);
    while (count < 16) {
        pons_node *x = node[draw_below(&state, (uint32_t)count)];
        pons_node *y = node[draw_below(&state, (uint32_t)count)];

        x = random_step(g, &state, x, y, count);
        node[count++] = draw_below(&state, 3) ? x : pons_tanh(g, x);
    }
    loss = pons_mean_all(g, node[count - 1]);
    for (int i = 5; i < count - 1; i += 3)
        loss = pons_add(g, loss, pons_mean_all(g, pons_square(g, node[i])));
    net_differentiate(n, loss);
    n->root[n->root_count++] = node[count - 2];
}

START_TEST(fused_random_nets_equal_single_nodes)
{
    const char *seeds = getenv("PONS_TEST_SEEDS");

    for (int seed = 0; seed < (seeds ? atoi(seeds) : 200); seed++)
        check_same(random_net, seed, 2e-4);
}
END_TEST

START_TEST(fused_layers_equal_single_nodes)
{
    check_same(three_layers, false, 1e-4);
    check_same(three_layers, true, 1e-4);
}
END_TEST

START_TEST(recomputed_convolutions_change_no_result)
{
    net n = { .g = graph_new(true), .fused = true };
    plan p;

    check_same(three_layers_blocks, false, 1e-4);
    three_layers_blocks(&n, true);
    p = net_plan(&n, true);
    ck_assert_int_eq(count_kind(&p, PONS_KERNEL_CONVOLUTION), 3 + 2);
    graph_free(n.g);
}
END_TEST

START_TEST(fused_networks_equal_single_nodes)
{
    for (int classes = 1; classes < 4; classes++)
        check_same(small_unet, classes, 1e-4);
}
END_TEST

START_TEST(unusual_shapes_and_leaves_are_fused_correctly)
{
    check_same(odds_and_ends, 0, 1e-5);
    check_same(odds_and_ends, 1, 1e-5);
    check_same(odds_and_ends, 5, 1e-5);
}
END_TEST

/* Volumes that map kernels read and write, and the number of those kernels. */
typedef struct traffic {
    int passes, reads, writes;
} traffic;

static traffic traffic_of(const plan *p, int64_t volume)
{
    traffic t = { 0 };

    for (int i = 0; i < p->kernel_count; i++) {
        const pons_request *r = &p->kernel[i].request;
        const pons_map *m = r->attributes;
        int64_t points = 1;

        if (r->kind != PONS_KERNEL_MAP)
            continue;
        for (int k = 0; k < m->axis_count; k++)
            points *= m->extent[k];
        t.passes += points == volume;
        for (int k = 0; k < r->input_count; k++)
            t.reads += shape_count(r->input[k].shape) == volume;
        for (int k = 0; k < r->output_count; k++)
            t.writes += shape_count(r->output[k].shape) == volume;
    }
    return t;
}

/*
 * Each of three layers has two forward passes: the moments read the convolution's result, and a
 * map reads it again and writes the activated volume. It has two backward passes: the sums read
 * result and gradient, and a map reads both again and writes the result's gradient. The sums of
 * the first two layers also write the activated volume again. The last layer's forward map is part
 * of the loss, and its gradient comes from its own result alone.
 */
START_TEST(convolution_norm_prelu_takes_two_passes_forward_and_two_backward)
{
    for (int batch = 0; batch < 2; batch++) {
        net n = { .g = graph_new(true), .fused = true };
        pons_node *y = node_input(n.g, "image", PONS_F32, image_shape_of(2, 8, 8, 8, 4));
        traffic t;
        plan p;

        for (int i = 0; i < 3; i++)
            y = graph_layer(n.g, y, pons_name(n.g, "%d", i), 16, 1, batch);
        net_differentiate(&n, pons_mean_all(n.g, pons_square(n.g, y)));
        p = net_plan(&n, true);
        t = traffic_of(&p, 2 * 8 * 8 * 8 * 16);
        ck_assert_int_eq(t.passes, 3 * 4);
        ck_assert_int_eq(t.reads, 3 * 2 + 2 * 4 + 2);
        ck_assert_int_eq(t.writes, 2 + 2 + 3);
        graph_free(n.g);
    }
}
END_TEST

START_TEST(dice_ce_reads_the_logits_once_forward_and_once_backward)
{
    net n = { .g = graph_new(true), .fused = true };
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_node *x = node_input(n.g, "image", PONS_F32, image_shape_of(2, 8, 8, 8, 4));
    pons_node *t = node_input(n.g, "label", PONS_U8, image_shape_of(2, 8, 8, 8, 1));
    pons_node *logits = pons_add(n.g, pons_convolve(n.g, x, graph_weight(n.g, "w", 3, 1, 4), &c),
                                 graph_vector(n.g, "b", PONS_ROLE_BIAS, 3, 0));
    traffic all;
    plan p;

    net_differentiate(&n, dice_ce(n.g, logits, t));
    p = net_plan(&n, true);
    all = traffic_of(&p, 2 * 8 * 8 * 8 * 3);
    ck_assert_int_eq(all.passes, 2);
    ck_assert_int_eq(all.reads, 2);
    ck_assert_int_eq(all.writes, 1);
    graph_free(n.g);
}
END_TEST

/*
 * Two maps write their parts of a concatenation, and the parts of its gradient are read in place.
 */
START_TEST(concatenations_of_maps_and_their_gradients_are_not_copied)
{
    net n = { .g = graph_new(true), .fused = true };
    pons_node *x = node_input(n.g, "image", PONS_F32, image_shape_of(1, 4, 4, 4, 3));
    pons_node *part[] = { graph_layer(n.g, x, "a", 5, 1, true), graph_layer(n.g, x, "b", 3, 1,
                                                                            true) };
    plan p;

    x = graph_layer(n.g, pons_concatenate(n.g, 2, part, 4), "c", 2, 1, true);
    net_differentiate(&n, pons_mean_all(n.g, pons_square(n.g, x)));
    p = net_plan(&n, true);
    ck_assert_int_eq(count_kind(&p, PONS_KERNEL_CONCATENATE), 0);
    ck_assert_int_eq(count_kind(&p, PONS_KERNEL_CROP), 0);
    ck_assert_int_eq(traffic_of(&p, 4 * 4 * 4 * 8).writes, 2);
    graph_free(n.g);
}
END_TEST

START_TEST(bf16_activations_take_16_bits_and_weights_one_cast)
{
    net n = { .g = graph_new(true), .fused = true };
    int begin = 0;
    plan p;

    three_layers_low(&n, true);
    p = net_plan(&n, true);
    for (int i = 0; i < p.kernel_count; i++) {
        const pons_request *r = &p.kernel[i].request;
        bool weights = p.kernel[i].section == SECTION_BEGIN;

        begin += weights;
        for (int k = 0; k < r->input_count && r->kind != PONS_KERNEL_MAP; k++)
            ck_assert_int_eq(r->input[k].type, PONS_BF16);
        if (r->kind == PONS_KERNEL_CONVOLUTION)
            ck_assert_uint_eq(r->packable, 2);
        for (int k = 0; k < r->output_count; k++) {
            bool volume = r->kind != PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT &&
                          shape_count(r->output[k].shape) > 2 * 5;

            ck_assert_int_eq(r->output[k].type, volume || weights ? PONS_BF16 : PONS_F32);
        }
    }
    ck_assert_int_eq(begin, 3);
    for (int i = 0; i < n.root_count; i++)
        ck_assert_int_eq(node_owner(n.root[i])->type, PONS_F32);
    graph_free(n.g);
}
END_TEST

/*
 * Fusion moves the rounding of stored values, which changes a few units in the last place of bf16.
 */
START_TEST(fused_bf16_nearly_equals_single_nodes)
{
    check_same(three_layers_low, true, 3e-2);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("fuse");
    tcase_add_test(c, a_fused_chain_is_one_kernel);
    tcase_add_test(c, fused_layers_equal_single_nodes);
    tcase_add_test(c, recomputed_convolutions_change_no_result);
    tcase_add_test(c, fused_networks_equal_single_nodes);
    tcase_add_test(c, unusual_shapes_and_leaves_are_fused_correctly);
    tcase_add_test(c, fused_random_nets_equal_single_nodes);
    tcase_add_test(c, convolution_norm_prelu_takes_two_passes_forward_and_two_backward);
    tcase_add_test(c, dice_ce_reads_the_logits_once_forward_and_once_backward);
    tcase_add_test(c, concatenations_of_maps_and_their_gradients_are_not_copied);
    tcase_add_test(c, bf16_activations_take_16_bits_and_weights_one_cast);
    tcase_add_test(c, fused_bf16_nearly_equals_single_nodes);
    return suite_run();
}
