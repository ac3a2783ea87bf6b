/*
 * check_graph.c - graph builders: shapes, folding and errors, and properties of gradients beyond
 * their values.
 */
#include <math.h>
#include <string.h>

#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "support/suite.h"

static pons_shape shape5(int64_t n, int64_t d, int64_t h, int64_t w, int64_t c)
{
    return (pons_shape){ 5, { n, d, h, w, c } };
}

static pons_shape vector(int64_t n)
{
    return (pons_shape){ 1, { n } };
}

static pons_node *weight(pons_graph *g, const char *name, pons_shape s)
{
    return pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, s, (pons_init){ PONS_INIT_UNIFORM, 0.1 });
}

static void fails_with(pons_graph *g, const char *phrase)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_ne(pons_graph_status(g, &err), PONS_OK);
    ck_assert_msg(strstr(err.text, phrase) != NULL, "'%s' does not say '%s'", err.text, phrase);
    graph_free(g);
}

/* ---- errors ---------------------------------------------------------------------------------- */

START_TEST(the_first_builder_error_wins_and_is_passed_on)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, shape5(1, 2, 2, 2, 3));
    pons_node *bad = pons_add(g, x, node_input(g, "y", PONS_F32, vector(4)));
    pons_node *mean, *variance;
    int count = g->node_count;

    ck_assert(node_failed(bad));
    pons_moments(g, pons_relu(g, bad), 1, 0, &mean, &variance);
    ck_assert(node_failed(mean) && node_failed(variance));
    ck_assert(node_failed(pons_softmax(g, bad, 4)));
    ck_assert(node_failed(pons_concatenate(g, 2, (pons_node *[]){ x, bad }, 4)));
    ck_assert(node_failed(pons_mean_all(g, pons_instance_norm(g, bad, NULL, NULL, 1e-5))));
    ck_assert(node_failed(pons_dropout(g, bad, 0.5, "d")));
    ck_assert(node_failed(pons_matmul(g, bad, x, false, false)));
    pons_assign(g, x, bad);
    ck_assert_int_le(g->node_count, count + 1); /* the zero of relu */
    fails_with(g, "'add': shapes [1, 2, 2, 2, 3] and [4] do not broadcast");
}
END_TEST

START_TEST(missing_operand_is_refused)
{
    pons_graph *g = graph_new(true);

    pons_exp(g, NULL);
    fails_with(g, "'exp': operand 1 is NULL");
}
END_TEST

START_TEST(convolution_names_the_shapes_that_do_not_fit)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, shape5(1, 4, 4, 4, 3));

    pons_convolve(g, x, weight(g, "w", shape5(8, 3, 3, 3, 2)), &c);
    fails_with(g, "weight [8, 3, 3, 3, 2] does not fit image [1, 4, 4, 4, 3]");
}
END_TEST

START_TEST(kernel_larger_than_the_image_is_refused)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, shape5(1, 2, 4, 4, 3));

    pons_convolve(g, x, weight(g, "w", shape5(8, 3, 3, 3, 3)), &c);
    fails_with(g, "reaches beyond image [1, 2, 4, 4, 3]");
}
END_TEST

START_TEST(a_repeated_name_gives_the_same_tensor_or_an_error)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(3));

    ck_assert_ptr_eq(w, weight(g, "w", vector(3)));
    ck_assert_int_eq(g->parameter_count, 1);
    ck_assert(node_failed(weight(g, "w", vector(4))));
    fails_with(g, "'w' has shape [3], asked for again with [4]");
}
END_TEST

START_TEST(name_of_a_parameter_is_refused_for_a_state)
{
    pons_graph *g = graph_new(true);

    weight(g, "w", vector(3));
    pons_state_leaf(g, "w", vector(3), 0);
    fails_with(g, "'w' is both a parameter and a state");
}
END_TEST

START_TEST(stream_that_is_used_twice_is_refused)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, vector(4));

    pons_dropout(g, pons_dropout(g, x, 0.5, "model.D"), 0.5, "model.D");
    fails_with(g, "random stream 'model.D' is used twice");
}
END_TEST

START_TEST(leaf_that_is_assigned_twice_is_refused)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(3));

    pons_assign(g, w, pons_scale(g, w, 2));
    pons_assign(g, w, pons_scale(g, w, 3));
    fails_with(g, "'w' is assigned twice");
}
END_TEST

START_TEST(assign_to_a_computed_node_is_refused)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(3));

    pons_assign(g, pons_exp(g, w), w);
    fails_with(g, "cannot assign to a 'exp'");
}
END_TEST

START_TEST(batch_statistics_of_one_element_are_a_configuration_error)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, shape5(1, 1, 1, 1, 3));
    pons_node *m = pons_state_leaf(g, "m", vector(3), 0),
              *v = pons_state_leaf(g, "v", vector(3), 1);

    pons_batch_norm(g, x, NULL, NULL, m, v, 0.1, 1e-5);
    ck_assert_int_eq(g->error.status, PONS_CONFIG);
    fails_with(g, "batch norm of [1, 1, 1, 1, 3] has one element per statistic");
}
END_TEST

START_TEST(impossible_shape_is_refused)
{
    pons_graph *g = graph_new(true);

    node_input(g, "x", PONS_F32, (pons_shape){ 2, { 3, 0 } });
    fails_with(g, "impossible shape [3, 0]");
}
END_TEST

/* The size comes from the INI file, so that the plugin is not at fault. */
START_TEST(more_elements_than_any_memory_holds_are_a_lack_of_memory)
{
    pons_graph *g = graph_new(true);

    node_input(g, "x", PONS_F32, (pons_shape){ 3, { 1 << 20, 1 << 19, 2 } });
    ck_assert_int_eq(g->error.status, PONS_OK);
    node_input(g, "y", PONS_F32, (pons_shape){ 4, { 1 << 20, 1 << 19, 2, 2 } });
    ck_assert_int_eq(g->error.status, PONS_DEVICE);
    fails_with(g, "out of memory for 'input': a tensor of [1048576, 524288, 2, 2] has more than "
                  "2^40 elements");
}
END_TEST

/* ---- shapes, folding ------------------------------------------------------------------------- */

START_TEST(operations_that_change_nothing_add_no_node)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, vector(4)), *y = pons_exp(g, x);

    ck_assert_ptr_eq(pons_scale(g, x, 1), x);
    ck_assert_ptr_eq(pons_add_scalar(g, x, 0), x);
    ck_assert_ptr_eq(pons_neg(g, pons_neg(g, y)), y);
    ck_assert_ptr_eq(pons_pow(g, x, pons_scalar(g, 1)), x);
    ck_assert_ptr_eq(pons_reshape(g, x, vector(4)), x);
    ck_assert_ptr_eq(pons_cast(g, x, PONS_F32), x);
    ck_assert_ptr_eq(pons_dropout(g, x, 0, "d"), x);
    ck_assert_int_eq(pons_pow(g, x, pons_scalar(g, 2))->kind, PONS_MAP_MUL);
    ck_assert(pons_add(g, pons_scalar(g, 2), pons_scalar(g, 3))->attribute.number == 5);
    graph_free(g);
}
END_TEST

START_TEST(operations_on_integers_are_not_folded_away)
{
    pons_graph *g = graph_new(true);
    pons_node *label = node_input(g, "label", PONS_U8, vector(4));

    ck_assert_int_eq(pons_type_of(pons_add_scalar(g, label, 0)), PONS_F32);
    ck_assert_int_eq(pons_type_of(pons_sum(g, label, 0)), PONS_F32);
    graph_free(g);
}
END_TEST

START_TEST(dropout_outside_training_is_the_identity)
{
    pons_graph *g = graph_new(false);
    pons_node *x = node_input(g, "x", PONS_F32, vector(4));

    ck_assert_ptr_eq(pons_dropout(g, x, 0.5, "d"), x);
    graph_free(g);
}
END_TEST

START_TEST(batch_norm_outside_training_reads_the_states)
{
    pons_graph *g = graph_new(false);
    pons_node *x = node_input(g, "x", PONS_F32, shape5(1, 1, 1, 1, 3));
    pons_node *m = pons_state_leaf(g, "m", vector(3), 0),
              *v = pons_state_leaf(g, "v", vector(3), 1);

    ck_assert(!node_failed(pons_batch_norm(g, x, NULL, NULL, m, v, 0.1, 1e-5)));
    ck_assert_int_eq(g->merge_count, 0);
    graph_free(g);
}
END_TEST

START_TEST(batch_norm_contributes_mean_and_unbiased_variance)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, shape5(2, 1, 2, 2, 3));
    pons_node *m = pons_state_leaf(g, "m", vector(3), 0),
              *v = pons_state_leaf(g, "v", vector(3), 1);

    ck_assert(!node_failed(pons_batch_norm(g, x, NULL, NULL, m, v, 0.1, 1e-5)));
    ck_assert_int_eq(g->merge_count, 2);
    ck_assert_ptr_eq(g->merge[0].state, m);
    ck_assert_int_eq(g->merge[0].value->input[0]->kind, NODE_MOMENTS);
    ck_assert_int_eq(g->merge[1].value->input[0]->kind, PONS_MAP_MUL);
    ck_assert(g->merge[1].value->input[0]->input[1]->attribute.number == 8.0 / 7);
    graph_free(g);
}
END_TEST

/* ---- gradients ------------------------------------------------------------------------------- */

/*
 * The gradient of 'bias' in sum(f(norm(convolution + bias))^2); with 'extra' a second node reads
 * the biased sum.
 */
static const pons_node *bias_gradient(pons_graph *g, bool batch, pons_shape bias_shape, bool extra)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_node *x = node_input(g, "x", PONS_F32, shape5(2, 4, 4, 4, 3)), *gradient[2], *of[2], *y;
    pons_node *m = pons_state_leaf(g, "m", vector(6), 0),
              *v = pons_state_leaf(g, "v", vector(6), 1);
    pons_error err = PONS_ERROR_INIT;

    of[0] = weight(g, "w", shape5(6, 3, 3, 3, 3));
    of[1] = weight(g, "b", bias_shape);
    x = pons_add(g, pons_convolve(g, x, of[0], &c), of[1]);
    y = batch ? pons_batch_norm(g, x, NULL, NULL, m, v, 0.1, 1e-5)
              : pons_instance_norm(g, x, NULL, NULL, 1e-5);
    y = pons_exp(g, y);
    if (extra)
        y = pons_add(g, y, x);
    ck_assert_msg(graph_gradient(g, pons_sum_all(g, y), 2, of, gradient, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert_ptr_nonnull(gradient[0]);
    ck_assert_ptr_nonnull(gradient[1]);
    ck_assert(shape_equal(gradient[1]->shape, bias_shape));
    return gradient[1];
}

static bool is_zero(const pons_node *x)
{
    while (x->kind == NODE_BROADCAST || x->kind == NODE_RESHAPE)
        x = x->input[0];
    return x->kind == NODE_CONSTANT && x->attribute.number == 0;
}

START_TEST(bias_before_a_norm_has_an_exact_zero_gradient)
{
    for (int batch = 0; batch < 2; batch++) {
        pons_graph *g = graph_new(true);

        ck_assert(is_zero(bias_gradient(g, batch, vector(6), false)));
        graph_free(g);
    }
}
END_TEST

START_TEST(a_bias_with_another_reader_keeps_its_gradient)
{
    pons_graph *g = graph_new(true);

    ck_assert(!is_zero(bias_gradient(g, true, vector(6), true)));
    graph_free(g);
}
END_TEST

/* A term of one replica alone moves the joined mean by another amount than its own. */
START_TEST(a_replicas_own_term_before_a_joined_norm_has_a_gradient)
{
    for (int joined = 0; joined < 2; joined++) {
        pons_graph *g = graph_new(true);
        pons_node *x = node_input(g, "x", PONS_F32, shape5(1, 4, 4, 4, 6)), *gradient, *own;
        pons_node *m = pons_state_leaf(g, "m", vector(6), 0),
                  *v = pons_state_leaf(g, "v", vector(6), 1);
        pons_error err = PONS_ERROR_INIT;

        g->join_norms = joined;
        own = pons_square(g, pons_mean(g, x, PONS_SPATIAL));
        x = pons_batch_norm(g, pons_add(g, x, own), NULL, NULL, m, v, 0.1, 1e-5);
        x = pons_sum_all(g, pons_exp(g, x));
        ck_assert_int_eq(graph_gradient(g, x, 1, &own, &gradient, &err), PONS_OK);
        ck_assert_int_eq(is_zero(gradient), !joined);
        graph_free(g);
    }
}
END_TEST

START_TEST(a_varying_term_before_a_norm_keeps_its_gradient)
{
    pons_graph *g = graph_new(true);

    ck_assert(!is_zero(bias_gradient(g, true, shape5(1, 1, 1, 2, 6), false)));
    graph_free(g);
    g = graph_new(true);
    ck_assert(!is_zero(bias_gradient(g, true, shape5(2, 1, 1, 1, 6), false)));
    graph_free(g);
    g = graph_new(true);
    ck_assert(is_zero(bias_gradient(g, false, shape5(2, 1, 1, 1, 6), false)));
    graph_free(g);
}
END_TEST

START_TEST(gradients_of_consumers_are_added_in_their_order)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, vector(4)), *gradient;
    pons_node *a = pons_exp(g, x), *b = pons_sin(g, x), *c = pons_tanh(g, x);
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(graph_gradient(g, pons_sum_all(g, pons_add(g, c, pons_add(g, b, a))), 1, &x,
                                    &gradient, &err), PONS_OK);
    ck_assert_int_eq(gradient->kind, PONS_MAP_ADD); /* (by a + by b) + by c */
    ck_assert_int_eq(gradient->input[0]->kind, PONS_MAP_ADD);
    ck_assert_int_eq(gradient->input[1]->kind, PONS_MAP_SUB);
    ck_assert_ptr_eq(gradient->input[0]->input[0], a);
    ck_assert_int_eq(gradient->input[0]->input[1]->kind, PONS_MAP_COS);
    graph_free(g);
}
END_TEST

START_TEST(gradient_nodes_take_the_scope_of_their_forward_node)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(4)), *y = pons_exp(g, w), *value, *gradient;
    pons_error err = PONS_ERROR_INIT;
    int first;

    g->scope = SCOPE_LOSS;
    value = pons_sum_all(g, pons_sin(g, y));
    g->scope = SCOPE_CORE;
    first = g->node_count;
    ck_assert_int_eq(graph_gradient(g, value, 1, &w, &gradient, &err), PONS_OK);
    ck_assert_int_eq(g->scope, SCOPE_CORE);
    ck_assert_int_eq(gradient->scope, SCOPE_MODEL);
    for (int n = first; n < g->node_count; n++) {
        ck_assert_int_eq(g->node[n]->section, SECTION_MICRO);
        if (g->node[n]->kind == PONS_MAP_COS)
            ck_assert_int_eq(g->node[n]->scope, SCOPE_LOSS);
    }
    graph_free(g);
}
END_TEST

START_TEST(leaf_without_a_path_has_no_gradient)
{
    pons_graph *g = graph_new(true);
    pons_node *of[] = { weight(g, "a", vector(4)), weight(g, "b", vector(4)) }, *gradient[2];
    pons_node *value = pons_sum_all(g, pons_mul(g, of[0], pons_stop_gradient(g, of[1])));
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(graph_gradient(g, value, 2, of, gradient, &err), PONS_OK);
    ck_assert_ptr_nonnull(gradient[0]);
    ck_assert_ptr_null(gradient[1]);
    graph_free(g);
}
END_TEST

START_TEST(a_kind_without_a_gradient_is_named)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(4)), *index = node_input(g, "i", PONS_I32, vector(2));
    pons_node *value = pons_sum_all(g, pons_gather(g, w, index, 0)), *gradient;
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(graph_gradient(g, value, 1, &w, &gradient, &err), PONS_PLUGIN);
    ck_assert_msg(strstr(err.text, "'gather': node") != NULL, "%s", err.text);
    graph_free(g);
}
END_TEST

START_TEST(gradients_of_gradients_are_refused)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(4)), *gradient;
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(graph_gradient(g, pons_sum_all(g, pons_exp(g, w)), 1, &w, &gradient, &err),
                     PONS_OK);
    ck_assert_int_ne(graph_gradient(g, pons_sum_all(g, gradient), 1, &w, &gradient, &err), PONS_OK);
    ck_assert_msg(strstr(err.text, "gradients of gradients") != NULL, "%s", err.text);
    graph_free(g);
}
END_TEST

START_TEST(loss_with_several_elements_is_refused)
{
    pons_graph *g = graph_new(true);
    pons_node *w = weight(g, "w", vector(4)), *gradient;
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_ne(graph_gradient(g, pons_exp(g, w), 1, &w, &gradient, &err), PONS_OK);
    ck_assert_msg(strstr(err.text, "the loss has shape [4], expected one element") != NULL, "%s",
                  err.text);
    graph_free(g);
}
END_TEST

/*
 * Count the reductions over the whole image that the backward pass of a norm with scale and shift
 * adds.
 */
START_TEST(backward_of_a_norm_sums_the_image_twice)
{
    pons_graph *g = graph_new(true);
    pons_node *x = weight(g, "x", shape5(2, 4, 4, 4, 3)), *gradient[3], *y;
    pons_node *of[] = { x, weight(g, "scale", vector(3)), weight(g, "shift", vector(3)) };
    pons_error err = PONS_ERROR_INIT;
    int first, sums = 0;

    y = pons_exp(g, pons_instance_norm(g, x, of[1], of[2], 1e-5));
    y = pons_sum_all(g, y);
    first = g->node_count;
    ck_assert_int_eq(graph_gradient(g, y, 3, of, gradient, &err), PONS_OK);
    for (int n = first; n < g->node_count; n++)
        if (g->node[n]->kind == NODE_SUM && g->node[n]->input[0]->shape.extent[1] == 4)
            sums++;
    ck_assert_int_le(sums, 3); /* dy (x - mean), dy per case, dy over all for the shift */
    graph_free(g);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("graph");

    tcase_add_test(c, the_first_builder_error_wins_and_is_passed_on);
    tcase_add_test(c, missing_operand_is_refused);
    tcase_add_test(c, convolution_names_the_shapes_that_do_not_fit);
    tcase_add_test(c, kernel_larger_than_the_image_is_refused);
    tcase_add_test(c, a_repeated_name_gives_the_same_tensor_or_an_error);
    tcase_add_test(c, name_of_a_parameter_is_refused_for_a_state);
    tcase_add_test(c, stream_that_is_used_twice_is_refused);
    tcase_add_test(c, leaf_that_is_assigned_twice_is_refused);
    tcase_add_test(c, assign_to_a_computed_node_is_refused);
    tcase_add_test(c, batch_statistics_of_one_element_are_a_configuration_error);
    tcase_add_test(c, impossible_shape_is_refused);
    tcase_add_test(c, more_elements_than_any_memory_holds_are_a_lack_of_memory);
    tcase_add_test(c, operations_that_change_nothing_add_no_node);
    tcase_add_test(c, operations_on_integers_are_not_folded_away);
    tcase_add_test(c, dropout_outside_training_is_the_identity);
    tcase_add_test(c, batch_norm_outside_training_reads_the_states);
    tcase_add_test(c, batch_norm_contributes_mean_and_unbiased_variance);
    tcase_add_test(c, bias_before_a_norm_has_an_exact_zero_gradient);
    tcase_add_test(c, a_bias_with_another_reader_keeps_its_gradient);
    tcase_add_test(c, a_replicas_own_term_before_a_joined_norm_has_a_gradient);
    tcase_add_test(c, a_varying_term_before_a_norm_keeps_its_gradient);
    tcase_add_test(c, gradients_of_consumers_are_added_in_their_order);
    tcase_add_test(c, gradient_nodes_take_the_scope_of_their_forward_node);
    tcase_add_test(c, leaf_without_a_path_has_no_gradient);
    tcase_add_test(c, a_kind_without_a_gradient_is_named);
    tcase_add_test(c, gradients_of_gradients_are_refused);
    tcase_add_test(c, loss_with_several_elements_is_refused);
    tcase_add_test(c, backward_of_a_norm_sums_the_image_twice);
    return suite_run();
}
