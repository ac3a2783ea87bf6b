/*
 * check_reference.c - the reference kernels in double against values of PyTorch
 * (golden/operations.py), and random numbers against R5.
 */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "golden/operations.h"
#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/reference/reference.h"
#include "support/graph/evaluate_nodes.h"
#include "support/suite.h"
#include "support/tolerance.h"

static const pons_step_key step_key = { 7, 3, 2 };

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))
#define SHAPE(...) shape_of((const int64_t[]){ __VA_ARGS__, 0 })
#define GOLDEN(g, name, ...) leaf_of(g, SHAPE(__VA_ARGS__), golden_##name, COUNT(golden_##name))
#define AGREES(g, y, name) assert_agrees(g, y, golden_##name, COUNT(golden_##name), #name)

/* A shape of the extents before the first 0. */
static pons_shape shape_of(const int64_t *extent)
{
    pons_shape s = { .rank = 0 };

    while (extent[s.rank] != 0) {
        s.extent[s.rank] = extent[s.rank];
        s.rank++;
    }
    return s;
}

/* An input; its name points to its values. */
static pons_node *leaf_of(pons_graph *g, pons_shape s, const double *value, int64_t count)
{
    pons_node *x = node_input(g, "golden", PONS_F32, s);

    ck_assert_int_eq(shape_count(s), count);
    x->name = (const char *)value;
    return x;
}

static evaluation *run(pons_graph *g)
{
    pons_error err = PONS_ERROR_INIT;
    evaluation *e;
    device d;

    ck_assert_msg(pons_graph_status(g, &err) == PONS_OK, "%s", err.text);
    device_reference(&d, true);
    e = evaluation_new(g, &d, PONS_F32, &err);
    ck_assert_msg(e != NULL, "%s", err.text);
    for (int n = 0; n < g->node_count; n++)
        for (int64_t i = 0; g->node[n]->kind == NODE_INPUT && i < shape_count(g->node[n]->shape);
             i++)
            evaluation_set(e, g->node[n], i, ((const double *)g->node[n]->name)[i]);
    ck_assert_msg(evaluation_run(e, &step_key, &err) == PONS_OK, "%s", err.text);
    return e;
}

static void assert_agrees(pons_graph *g, pons_node *y, const double *expected, int64_t count,
                          const char *name)
{
    evaluation *e = run(g);

    ck_assert_msg(shape_count(y->shape) == count, "%s: %lld elements, expected %lld", name,
                  (long long)shape_count(y->shape), (long long)count);
    for (int64_t i = 0; i < count; i++) {
        double found = evaluation_get(e, y, i);

        ck_assert_msg(fabs(found - expected[i]) <= DOUBLE_ABSOLUTE * fmax(1, fabs(expected[i])),
                      "%s element %lld: %.15g, expected %.15g", name, (long long)i, found,
                      expected[i]);
    }
    evaluation_free(e);
}

static const pons_convolution grouped = { { 2, 1, 2 }, { 1, 2, 1 }, { 1, 2, 0 }, { 0, 1, 1 }, 2 };

START_TEST(convolution_and_its_gradients_equal_pytorch)
{
    pons_graph *g = graph_new(true);
    pons_node *x = GOLDEN(g, convolution_x, 2, 4, 5, 4, 4);
    pons_node *w = GOLDEN(g, convolution_w, 6, 2, 3, 3, 2);
    pons_node *dy = GOLDEN(g, convolution_dy, 2, 2, 4, 2, 6);
    pons_node *y = pons_convolve(g, x, w, &grouped);
    pons_node *dx = pons_convolve_input_gradient(g, dy, w, &grouped, (const int64_t[]){ 4, 5, 4 });
    pons_node *dw = pons_convolve_weight_gradient(g, x, dy, &grouped, (const int64_t[]){ 2, 3, 3 });

    AGREES(g, y, convolution_y);
    AGREES(g, dx, convolution_dx);
    AGREES(g, dw, convolution_dw);
    graph_free(g);
}
END_TEST

START_TEST(transposed_convolution_equals_pytorch)
{
    const pons_convolution c = { { 2, 3, 1 }, { 1, 1, 2 }, { 1, 0, 1 }, { 1, 0, 1 }, 2 };
    pons_graph *g = graph_new(true);
    pons_node *x = GOLDEN(g, transposed_x, 1, 2, 3, 3, 4);
    pons_node *w = GOLDEN(g, transposed_w, 4, 3, 2, 2, 3);

    AGREES(g, pons_convolve_transposed(g, x, w, &c, (const int[]){ 1, 2, 0 }), transposed_y);
    graph_free(g);
}
END_TEST

START_TEST(pooling_equals_pytorch)
{
    pons_pool p = { PONS_POOL_MAX, { 3, 2, 2 }, { 2, 2, 2 }, { 1, 1, 0 }, { 1, 1, 0 }, true };
    pons_graph *g = graph_new(true);
    pons_node *x = GOLDEN(g, pool_x, 1, 5, 4, 3, 2);

    AGREES(g, pons_pooling(g, x, &p), pool_max);
    p.mode = PONS_POOL_MEAN;
    AGREES(g, pons_pooling(g, x, &p), pool_mean);
    graph_free(g);
}
END_TEST

START_TEST(resizing_equals_pytorch)
{
    const int64_t extent[] = { 5, 2, 3 };
    pons_graph *g = graph_new(true);
    pons_node *x = GOLDEN(g, resize_x, 1, 3, 4, 2, 2);

    AGREES(g, pons_resize(g, x, PONS_RESIZE_NEAREST, extent), resize_nearest);
    AGREES(g, pons_resize(g, x, PONS_RESIZE_NEAREST_EXACT, extent), resize_exact);
    AGREES(g, pons_resize(g, x, PONS_RESIZE_LINEAR, extent), resize_linear);
    AGREES(g, pons_resize(g, x, PONS_RESIZE_LINEAR_ALIGNED, extent), resize_aligned);
    graph_free(g);
}
END_TEST

START_TEST(norms_and_softmax_equal_pytorch)
{
    pons_graph *g = graph_new(true);
    pons_node *x = GOLDEN(g, norm_x, 2, 3, 2, 2, 6);
    pons_node *scale = GOLDEN(g, norm_scale, 6), *shift = GOLDEN(g, norm_shift, 6);
    pons_node *mean = pons_state_leaf(g, "mean", SHAPE(6), 0);
    pons_node *variance = pons_state_leaf(g, "variance", SHAPE(6), 1);

    AGREES(g, pons_instance_norm(g, x, scale, shift, 1e-5), norm_instance);
    AGREES(g, pons_group_norm(g, x, 3, scale, shift, 1e-5), norm_group);
    AGREES(g, pons_channel_norm(g, x, scale, shift, 1e-5), norm_layer);
    AGREES(g, pons_batch_norm(g, x, scale, shift, mean, variance, 0.1, 1e-5), norm_batch);
    AGREES(g, pons_softmax(g, x, 4), norm_softmax);
    AGREES(g, pons_log_softmax(g, x, 4), norm_log_softmax);
    graph_free(g);
}
END_TEST

START_TEST(padding_equals_pytorch)
{
    const int64_t low[] = { 0, 1, 2, 0, 0 }, high[] = { 0, 0, 1, 3, 0 };
    pons_graph *g = graph_new(true);
    pons_node *x = GOLDEN(g, pad_x, 1, 2, 3, 4, 1);

    AGREES(g, pons_pad(g, x, PONS_PAD_REFLECT, low, high), pad_reflect);
    AGREES(g, pons_pad(g, x, PONS_PAD_EDGE, low, high), pad_edge);
    graph_free(g);
}
END_TEST

START_TEST(pointwise_operations_equal_pytorch)
{
    pons_graph *g = graph_new(true);
    pons_node *a = GOLDEN(g, map_a, 8), *b = GOLDEN(g, map_b, 8), *a3 = pons_add_scalar(g, a, 3);

#define TWO(name) AGREES(g, pons_##name(g, a, b), map_##name);
    TWO(add) TWO(sub) TWO(mul) TWO(min) TWO(max) TWO(equal) TWO(not_equal) TWO(less)
    TWO(less_equal) TWO(greater) TWO(greater_equal) TWO(and) TWO(or)
#define ONE(name) AGREES(g, pons_##name(g, a), map_##name);
    ONE(neg) ONE(abs) ONE(sign) ONE(floor) ONE(round) ONE(exp) ONE(expm1) ONE(sin) ONE(cos)
    ONE(tanh) ONE(erf) ONE(sigmoid) ONE(log_sigmoid) ONE(relu) ONE(gelu) ONE(not)
    AGREES(g, pons_div(g, a, pons_add_scalar(g, b, 4)), map_div);
    AGREES(g, pons_pow(g, pons_abs(g, a), pons_abs(g, b)), map_pow);
    AGREES(g, pons_sqrt(g, a3), map_sqrt);
    AGREES(g, pons_log(g, a3), map_log);
    AGREES(g, pons_log1p(g, a3), map_log1p);
    AGREES(g, pons_select(g, a, b, a3), map_select);
    graph_free(g);
}
END_TEST

START_TEST(casts_round_like_pytorch_and_truncate_to_integers)
{
    static const double x[] = { 1.0 / 3, -2.7182818, 1e-3, 65504.0 };
    static const double y[] = { 1.0 / 3, -2.7182818, 1e-6, 65504.0 };
    static const double z[] = { -3.9, 2.9, 300, NAN, -3e9, 3e9 };
    static const double bytes[] = { 0, 2, 255, 0, 0, 255 };
    static const double whole[] = { -3, 2, 300, 0, INT32_MIN, INT32_MAX };
    pons_graph *g = graph_new(true);
    pons_node *w = leaf_of(g, SHAPE(6), z, 6);

    AGREES(g, pons_cast(g, leaf_of(g, SHAPE(4), x, 4), PONS_BF16), bf16);
    AGREES(g, pons_cast(g, leaf_of(g, SHAPE(4), y, 4), PONS_F16), f16);
    assert_agrees(g, pons_cast(g, w, PONS_U8), bytes, 6, "u8");
    assert_agrees(g, pons_cast(g, w, PONS_I32), whole, 6, "i32");
    graph_free(g);
}
END_TEST

START_TEST(minmax_takes_the_first_of_equal_values)
{
    static const double x[] = { 1, 3, 3, -2, -2, 0 };
    static const double one[] = { 1 }, second[] = { 0, 1, 0, 0, 0, 0 },
                        fourth[] = { 0, 0, 0, 1, 0, 0 };
    pons_graph *g = graph_new(true);
    pons_node *a = leaf_of(g, SHAPE(6), x, 6), *b = leaf_of(g, SHAPE(6), x, 6), *of[] = { a, b };
    pons_node *most = pons_reduce_max(g, a, 1), *least = pons_reduce_min(g, b, 1), *gradient[2];
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(graph_gradient(g, pons_add(g, most, least), 2, of, gradient, &err), PONS_OK);
    assert_agrees(g, pons_arg_max(g, a, 0), one, 1, "arg_max");
    assert_agrees(g, gradient[0], second, 6, "maximum");
    assert_agrees(g, gradient[1], fourth, 6, "minimum");
    graph_free(g);
}
END_TEST

START_TEST(random_numbers_depend_on_stream_step_and_element)
{
    pons_graph *g = graph_new(true);
    pons_node *u = pons_random_uniform(g, "model.0.D", SHAPE(3, 7));
    pons_node *n = pons_random_normal(g, "noise", SHAPE(3, 7));
    evaluation *e = run(g);

    for (uint64_t i = 0; i < 21; i++) {
        uint32_t out[4];
        float normal[2];

        random_graph(7, random_stream_hash("model.0.D"), 3, 2, i / 4, out);
        ck_assert(evaluation_get(e, u, (int64_t)i) == random_uniform(out[i % 4]));
        random_graph(7, random_stream_hash("noise"), 3, 2, i / 4, out);
        random_normal(out[i % 4 / 2 * 2], out[i % 4 / 2 * 2 + 1], normal);
        ck_assert(evaluation_get(e, n, (int64_t)i) == normal[i % 2]);
    }
    evaluation_free(e);
    graph_free(g);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("reference");

    tcase_add_test(c, convolution_and_its_gradients_equal_pytorch);
    tcase_add_test(c, transposed_convolution_equals_pytorch);
    tcase_add_test(c, pooling_equals_pytorch);
    tcase_add_test(c, resizing_equals_pytorch);
    tcase_add_test(c, norms_and_softmax_equal_pytorch);
    tcase_add_test(c, padding_equals_pytorch);
    tcase_add_test(c, pointwise_operations_equal_pytorch);
    tcase_add_test(c, casts_round_like_pytorch_and_truncate_to_integers);
    tcase_add_test(c, minmax_takes_the_first_of_equal_values);
    tcase_add_test(c, random_numbers_depend_on_stream_step_and_element);
    return suite_run();
}
