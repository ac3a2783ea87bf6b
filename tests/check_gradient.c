/*
 * check_gradient.c - the op table: gradients against finite differences, float against double.
 */
#include <math.h>

#include "op_table.h"
#include "suite.h"
#include "tolerance.h"

enum { ROUNDS = 3 };

static const pons_moment moment = { 7, 3, 2 };

typedef void (*op_check)(const op_case *c, op_graph *o, evaluation *e);

static evaluation *evaluate(const op_case *c, op_graph *o, bool wide, pons_error *err)
{
    device d;
    evaluation *e;

    device_reference(&d, wide);
    e = evaluation_new(o->g, &d, err);
    ck_assert_msg(e != NULL, "%s: %s", c->name, err->text);
    op_graph_fill(o, e);
    ck_assert_msg(evaluation_run(e, &moment, err) == PONS_OK, "%s: %s", c->name, err->text);
    return e;
}

static void each_case(op_check check)
{
    for (int i = 0; i < op_case_count; i++) {
        const op_case *c = &op_cases[i];

        for (int round = 0; round < ROUNDS * c->variants; round++) {
            pons_error err = PONS_ERROR_INIT;
            op_graph o;
            evaluation *e;

            ck_assert_msg(op_graph_make(c, round % c->variants, (uint64_t)(1000 * i + round), &o,
                                        &err) == PONS_OK, "%s: %s", c->name, err.text);
            e = evaluate(c, &o, true, &err);
            check(c, &o, e);
            evaluation_free(e);
            op_graph_free(&o);
        }
    }
}

/* (f(x + h) - f(x - h)) / 2 h of element 'index' of a leaf. */
static double difference(const op_graph *o, evaluation *e, const pons_node *leaf, int64_t index)
{
    const double h = 1e-5, x = evaluation_get(e, leaf, index);
    double value[2];

    for (int side = 0; side < 2; side++) {
        pons_error err = PONS_ERROR_INIT;

        evaluation_set(e, leaf, index, x + (side == 0 ? -h : h));
        ck_assert_int_eq(evaluation_run(e, &moment, &err), PONS_OK);
        value[side] = evaluation_get(e, o->value, 0);
    }
    evaluation_set(e, leaf, index, x);
    return (value[1] - value[0]) / (2 * h);
}

/* Of large leaves only some elements, spread evenly. */
static void leaf_agrees(const op_case *c, op_graph *o, evaluation *e, const op_leaf *l)
{
    int64_t count = shape_count(l->node->shape), by = count / 12 + 1;

    for (int64_t i = 0; i < count; i += by) {
        pons_error err = PONS_ERROR_INIT;
        double expected = difference(o, e, l->node, i), found = 0;

        ck_assert_int_eq(evaluation_run(e, &moment, &err), PONS_OK);
        if (l->gradient != NULL)
            found = evaluation_get(e, l->gradient, i);
        ck_assert_msg(fabs(found - expected) <= DIFFERENCE_ABSOLUTE +
                                                DIFFERENCE_RELATIVE * fabs(expected),
                      "%s, variant %d: gradient of leaf '%s' element %lld is %.9g, differences say %.9g",
                      c->name, o->variant, l->node->name, (long long)i, found, expected);
    }
}

static void differences_agree(const op_case *c, op_graph *o, evaluation *e)
{
    for (int i = 0; i < o->leaf_count; i++)
        if (o->leaf[i].wanted && !c->no_difference)
            leaf_agrees(c, o, e, &o->leaf[i]);
}

START_TEST(gradients_in_double_agree_with_finite_differences)
{
    each_case(differences_agree);
}
END_TEST

static void tensors_agree(const op_case *c, const op_graph *o, const evaluation *wide,
                          const evaluation *narrow, const pons_node *x)
{
    int64_t count = shape_count(x->shape);
    double most = 0;

    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(evaluation_get(wide, x, i)));
    for (int64_t i = 0; i < count; i++) {
        double expected = evaluation_get(wide, x, i), found = evaluation_get(narrow, x, i);

        ck_assert_msg(fabs(found - expected) <= FLOAT_OF_LARGEST * fmax(most, 1e-2),
                      "%s, variant %d: '%s' element %lld is %.9g in float, %.9g in double",
                      c->name, o->variant, node_kinds[x->kind].name, (long long)i, found, expected);
    }
}

static void precisions_agree(const op_case *c, op_graph *o, evaluation *wide)
{
    pons_error err = PONS_ERROR_INIT;
    evaluation *narrow = evaluate(c, o, false, &err);

    tensors_agree(c, o, wide, narrow, o->y);
    for (int i = 0; i < o->leaf_count; i++)
        if (o->leaf[i].gradient != NULL)
            tensors_agree(c, o, wide, narrow, o->leaf[i].gradient);
    evaluation_free(narrow);
}

START_TEST(float_kernels_agree_with_double_kernels)
{
    each_case(precisions_agree);
}
END_TEST

START_TEST(every_kind_has_a_case)
{
    for (int kind = 0; kind < NODE_KIND_COUNT; kind++) {
        bool found = kind == NODE_FAILED;

        for (int i = 0; i < op_case_count; i++)
            found = found || op_cases[i].kind == kind;
        ck_assert_msg(found, "kind %d '%s' has no case", kind, node_kinds[kind].name);
    }
}
END_TEST

START_TEST(every_kind_has_a_name_and_a_class)
{
    for (int kind = 0; kind < NODE_KIND_COUNT; kind++) {
        ck_assert_msg(node_kinds[kind].name != NULL && node_kinds[kind].class != 0, "kind %d", kind);
        ck_assert_msg(!node_kinds[kind].constant || node_kinds[kind].gradient == NULL, "kind %d", kind);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("gradient");

    tcase_add_test(c, every_kind_has_a_name_and_a_class);
    tcase_add_test(c, every_kind_has_a_case);
    tcase_add_test(c, gradients_in_double_agree_with_finite_differences);
    tcase_add_test(c, float_kernels_agree_with_double_kernels);
    return suite_run();
}
