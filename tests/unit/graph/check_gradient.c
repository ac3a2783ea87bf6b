/*
 * check_gradient.c - the op table: gradients against finite differences, and float against double.
 */
#include <math.h>

#include "graph/ir/shape.h"
#include "graph/reference/reference.h"
#include "support/graph/op_table.h"
#include "support/suite.h"
#include "support/tolerance.h"

enum { ROUNDS = 3 };

static const pons_step_key step_key = { 7, 3, 2 };

/* The difference (f(x + h) - f(x - h)) / 2 h for element 'index' of a leaf. */
static double difference(const op_graph *o, evaluation *e, const pons_node *leaf, int64_t index)
{
    const double h = 1e-5, x = evaluation_get(e, leaf, index);
    double value[2];

    for (int side = 0; side < 2; side++) {
        pons_error err = PONS_ERROR_INIT;

        evaluation_set(e, leaf, index, x + (side == 0 ? -h : h));
        ck_assert_int_eq(evaluation_run(e, &step_key, &err), PONS_OK);
        value[side] = evaluation_get(e, o->value, 0);
    }
    evaluation_set(e, leaf, index, x);
    return (value[1] - value[0]) / (2 * h);
}

/* Check a leaf; a large one at some elements, spread evenly. */
static pons_status leaf_agrees(op_graph *o, evaluation *e, const op_leaf *l, pons_error *err)
{
    int64_t count = shape_count(l->node->shape), by = count / 12 + 1;

    for (int64_t i = 0; i < count; i += by) {
        double expected = difference(o, e, l->node, i), found = 0;

        if (evaluation_run(e, &step_key, err) != PONS_OK)
            return err->status;
        if (l->gradient != NULL)
            found = evaluation_get(e, l->gradient, i);
        if (!(fabs(found - expected) <= DIFFERENCE_ABSOLUTE + DIFFERENCE_RELATIVE * fabs(expected)))
            return pons_fail(err, PONS_FAILURE,
                             "variant %d: gradient of '%s' element %lld is %.9g, "
                             "differences say %.9g",
                             o->variant, l->node->name, (long long)i, found, expected);
    }
    return PONS_OK;
}

static pons_status differences_agree(const op_case *c, op_graph *o, void *context, pons_error *err)
{
    device d;
    evaluation *e;
    pons_status status = PONS_OK;

    device_reference(&d, true);
    if ((e = op_graph_evaluate(o, &d, PONS_F32, err)) == NULL)
        return err->status;
    for (int i = 0; i < o->leaf_count && status == PONS_OK; i++)
        if (o->leaf[i].wanted && !c->no_difference)
            status = leaf_agrees(o, e, &o->leaf[i], err);
    evaluation_free(e);
    return status;
}

START_TEST(gradients_in_double_agree_with_finite_differences)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(op_table_each(ROUNDS, differences_agree, NULL, &err) == PONS_OK, "%s", err.text);
}
END_TEST

START_TEST(float_kernels_agree_with_double_kernels)
{
    pons_error err = PONS_ERROR_INIT;
    device wide, narrow;
    op_comparison both = { &wide, &narrow, PONS_F32, FLOAT_OF_LARGEST, { 0 }, { 0 } };
    int requests = 0, declined = 0;

    device_reference(&wide, true);
    device_reference(&narrow, false);
    ck_assert_msg(op_table_compare(&both, ROUNDS, &err) == PONS_OK, "%s", err.text);
    for (int kind = 0; kind < PONS_KERNEL_KIND_COUNT; kind++) {
        requests += both.requests[kind];
        declined += both.declined[kind];
    }
    ck_assert_int_gt(requests, 5000);
    ck_assert_int_eq(declined, 0);
}
END_TEST

/*
 * Every case compares double with float. It compares the gradient with differences unless the
 * gradient is not the derivative.
 */
START_TEST(every_kind_has_double_gradient_and_timing_cases)
{
    for (int kind = 0; kind < NODE_FAILED; kind++) {
        bool found = false, gradient = node_kinds[kind].constant;
        pons_error err = PONS_ERROR_INIT;
        op_timing timing;

        for (int i = 0; i < op_case_count; i++) {
            found = found || op_cases[i].kind == kind;
            gradient = gradient || (op_cases[i].kind == kind && !op_cases[i].no_difference);
        }
        ck_assert_msg(found, "kind %d '%s' has no double case", kind, node_kinds[kind].name);
        ck_assert_msg(gradient, "kind %d '%s' has no gradient case", kind, node_kinds[kind].name);
        ck_assert_msg(op_timing_make(kind, &timing, &err) == PONS_OK, "%s", err.text);
        op_timing_free(&timing);
    }
}
END_TEST

START_TEST(every_kind_has_a_name_and_a_class)
{
    for (int kind = 0; kind < NODE_KIND_COUNT; kind++) {
        ck_assert_msg(node_kinds[kind].name != NULL && node_kinds[kind].class != 0, "kind %d",
                      kind);
        ck_assert_msg(!node_kinds[kind].constant || node_kinds[kind].gradient == NULL, "kind %d",
                      kind);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("gradient");

    tcase_add_test(c, every_kind_has_a_name_and_a_class);
    tcase_add_test(c, every_kind_has_double_gradient_and_timing_cases);
    tcase_add_test(c, gradients_in_double_agree_with_finite_differences);
    tcase_add_test(c, float_kernels_agree_with_double_kernels);
    return suite_run();
}
