/*
 * check_masked_loss.c - the mask beside a target: masked voxels do not change the value or the
 * gradient, in double.
 */
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

#include "graph/ir/build.h"
#include "graph/ir/leaf.h"

enum { CASES = 2, DEPTH = 6, CUT = 4, PLANE = 5 * 3, CLASSES = 3, VOXELS = CASES * DEPTH * PLANE };

static const struct trial {
    const char *loss, *options;
    bool regions;
} trials[] = {
    { "dice", "{}", false },
    { "dice", "{}", true },
    { "dice", "{\"batch\":true,\"squared_pred\":true,\"include_background\":false}", false },
    { "dice", "{\"jaccard\":true,\"weight\":[1,2,3],\"reduction\":\"sum\"}", true },
    { "dice_ce", "{}", false },
    { "dice_ce", "{\"weight\":[0.5,1,2],\"label_smoothing\":0.1}", false },
    { "dice_ce", "{\"reduction\":\"sum\"}", false },
    { "dice_focal", "{}", false },
    { "dice_focal", "{}", true },
    { "dice_focal", "{\"gamma\":3,\"alpha\":[0.3],\"weight\":[1,2,3]}", true },
    { "generalized_dice", "{}", false },
    { "generalized_dice", "{\"batch\":true,\"w_type\":\"simple\"}", true },
    { "tversky", "{\"alpha\":0.3,\"beta\":0.7,\"include_background\":false}", false },
    { "focal", "{\"gamma\":3,\"alpha\":[0.3],\"weight\":[1,2,3]}", false },
    { "focal", "{\"include_background\":false}", false },
    { "focal", "{}", true },
    { "cross_entropy", "{\"weight\":[0.5,1,2]}", false },
    { "cross_entropy", "{\"ignore_index\":1}", false },
    { "bce", "{\"pos_weight\":[1,2,3]}", true },
    { "bce", "{\"reduction\":\"sum\"}", false },
    { "mse", "{}", true },
    { "l1", "{}", false },
    { "nnunet", "{\"batch_dice\":true}", false },
};
enum { TRIALS = sizeof trials / sizeof *trials };

/* The input of a loss. */
typedef struct question {
    int depth;
    const uint8_t *valid;      /* NULL: the loss has no mask                                      */
    const double *logits;
    const uint8_t *target;
} question;

typedef struct answer {
    double value, gradient[VOXELS * CLASSES];
} answer;

static pons_node *build(const golden_plugin *plugin, const struct trial *t, const question *q,
                        pons_graph *g)
{
    const pons_loss_operations *loss = plugin->plugin->operations;
    pons_shape shape = { 5, { CASES, q->depth, 5, 3, CLASSES } };
    pons_node *logits = pons_parameter_leaf(g, "logits", PONS_ROLE_WEIGHT, shape,
                                            (pons_init){ PONS_INIT_CONSTANT, 0 });
    pons_task task = { .size = sizeof task, .channels = 1, .classes = CLASSES, .flat_axis = -1,
                       .target = t->regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS };
    pons_target target = { .activation = t->regions ? PONS_ACTIVATION_SIGMOID
                                                    : PONS_ACTIVATION_SOFTMAX };
    pons_node *value;

    shape.extent[4] = t->regions ? CLASSES : 1;
    target.node = node_input(g, "target", PONS_U8, shape);
    shape.extent[4] = 1;
    if (q->valid != NULL)
        target.valid = node_input(g, "valid", PONS_U8, shape);
    g->scope = SCOPE_LOSS;
    MUST(loss->build(g, plugin->options, &task, logits, &target, &value, &error));
    return value;
}

/* Copy the first 'depth' planes of each case of DEPTH planes; a voxel has 'size' bytes. */
static void copy_planes(void *to, const void *from, int depth, size_t size)
{
    for (int n = 0; n < CASES; n++)
        memcpy((char *)to + (size_t)(n * depth * PLANE) * size,
               (const char *)from + (size_t)(n * DEPTH * PLANE) * size,
               (size_t)(depth * PLANE) * size);
}

static void ask_loss(const struct trial *t, const question *q, answer *out)
{
    static const golden_mode wide = { "reference, double", NULL, true, true, PRECISION_FP32 };
    program_settings settings = golden_settings(&wide);
    pons_graph *g = graph_new(true);
    json_t *options;
    golden_plugin plugin;
    step_result r;
    device d;
    storage *s;
    program *p;

    MUST(json_parse(t->options, strlen(t->options), "options", PONS_DATA, &options, &error));
    golden_load(&plugin, PONS_KIND_LOSS, t->loss, sizeof(pons_loss_operations), options,
                false);
    golden_device(&wide, &d);
    MUST(storage_new(&d, &s, &error));
    MUST(program_new(s, &d, g, build(&plugin, t, q, g), 0, NULL, &settings, &p, &error));
    copy_planes(storage_item(s, STORAGE_PARAMETER, 0).memory, q->logits, q->depth,
                CLASSES * sizeof(double));
    copy_planes(program_input(p, "target", &(pons_tensor){ 0 }), q->target, q->depth,
                t->regions ? CLASSES : 1);
    if (q->valid != NULL)
        copy_planes(program_input(p, "valid", &(pons_tensor){ 0 }), q->valid, q->depth, 1);
    MUST(program_step_begin(p, 0, &error));
    MUST(program_micro(p, 0, &error));
    MUST(program_step_finish(p, 0, &r, &error));
    out->value = r.loss;
    memcpy(out->gradient, program_gradient(p, "logits"),
           (size_t)(CASES * q->depth * PLANE * CLASSES) * sizeof(double));
    program_free(p);
    storage_free(s);
    golden_unload(&plugin);
    json_decref(options);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static double logits[VOXELS * CLASSES];
static uint8_t target[VOXELS * CLASSES], valid[VOXELS];
static answer first, second;

static uint32_t draw_value(uint32_t *state)
{
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return *state >> 16;
}

static void fill(const struct trial *t, uint32_t seed)
{
    for (int i = 0; i < VOXELS * CLASSES; i++) {
        logits[i] = (double)draw_value(&seed) / 16384 - 2;
        target[i] = (uint8_t)(draw_value(&seed) % (t->regions ? 2 : CLASSES));
    }
    for (int i = 0; i < VOXELS; i++)
        valid[i] = draw_value(&seed) % 3 != 0;
}

static void check_same(const struct trial *t, double rounding)
{
    ck_assert_msg(memcmp(&first.value, &second.value, sizeof first.value) == 0,
                  "%s %s: %.17g and %.17g", t->loss, t->options, first.value, second.value);
    for (int i = 0; i < VOXELS * CLASSES; i++)
        ck_assert_msg(fabs(first.gradient[i] - second.gradient[i]) <= rounding,
                      "%s %s: gradient %d is %.17g and %.17g", t->loss, t->options, i,
                      first.gradient[i], second.gradient[i]);
}

START_TEST(a_mask_of_ones_changes_no_bit)
{
    const struct trial *t = &trials[_i];

    fill(t, 1);
    memset(valid, 1, sizeof valid);
    ask_loss(t, &(question){ DEPTH, NULL, logits, target }, &first);
    ask_loss(t, &(question){ DEPTH, valid, logits, target }, &second);
    /* Smoothing gives every channel a term, which the other graph sums in another order. */
    check_same(t, strstr(t->options, "smoothing") != NULL ? DOUBLE_ABSOLUTE : 0);
}
END_TEST

START_TEST(values_in_masked_voxels_change_no_bit)
{
    const struct trial *t = &trials[_i];
    int width = t->regions ? CLASSES : 1;

    fill(t, 2);
    ask_loss(t, &(question){ DEPTH, valid, logits, target }, &first);
    for (int i = 0; i < VOXELS; i++)
        for (int c = 0; c < CLASSES && !valid[i]; c++) {
            ck_assert_double_eq(first.gradient[i * CLASSES + c], 0);
            logits[i * CLASSES + c] = 40 - 35 * c;
            target[i * width + c % width] = 255;
        }
    ask_loss(t, &(question){ DEPTH, valid, logits, target }, &second);
    check_same(t, 0);
}
END_TEST

START_TEST(masking_planes_equals_removing_them)
{
    const struct trial *t = &trials[_i];

    fill(t, 3);
    for (int i = 0; i < VOXELS; i++)
        valid[i] = i / PLANE % DEPTH < CUT;
    ask_loss(t, &(question){ CUT, NULL, logits, target }, &first);
    ask_loss(t, &(question){ DEPTH, valid, logits, target }, &second);
    ck_assert_double_eq_tol(second.value, first.value, DOUBLE_ABSOLUTE * fabs(first.value));
    for (int n = 0; n < CASES; n++)
        for (int i = 0; i < CUT * PLANE * CLASSES; i++)
            ck_assert_double_eq_tol(second.gradient[n * DEPTH * PLANE * CLASSES + i],
                                    first.gradient[n * CUT * PLANE * CLASSES + i],
                                    DOUBLE_ABSOLUTE);
}
END_TEST

START_TEST(a_fully_masked_case_has_a_finite_loss_and_zero_gradient)
{
    const struct trial *t = &trials[_i];

    fill(t, 4);
    memset(valid, 0, sizeof valid / CASES);
    for (int all = 0; all < 2; all++) {
        ask_loss(t, &(question){ DEPTH, valid, logits, target }, &first);
        ck_assert(isfinite(first.value));
        for (int i = 0; i < VOXELS * CLASSES; i++)
            ck_assert(valid[i / CLASSES] ? isfinite(first.gradient[i])
                                         : fpclassify(first.gradient[i]) == FP_ZERO);
        memset(valid, 0, sizeof valid);
    }
}
END_TEST

/* A micro-batch whose only class has weight 0 teaches nothing; 0 / 0 would stop the training. */
START_TEST(a_mean_of_weight_zero_is_zero)
{
    static const struct trial unweighted[] = {
        { "cross_entropy", "{\"weight\":[0,1,2]}", false },
        { "cross_entropy", "{\"weight\":[0,1,2],\"label_smoothing\":0.1}", false },
        { "dice_ce", "{\"weight\":[0,1,2],\"lambda_dice\":0}", false },
    };
    const struct trial *t = &unweighted[_i];

    fill(t, 5);
    memset(target, 0, sizeof target);
    ask_loss(t, &(question){ DEPTH, NULL, logits, target }, &first);
    ck_assert_double_eq(first.value, 0);
    for (int i = 0; i < VOXELS * CLASSES; i++)
        ck_assert_double_eq(first.gradient[i], 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("masked loss");

    tcase_add_loop_test(c, a_mask_of_ones_changes_no_bit, 0, TRIALS);
    tcase_add_loop_test(c, values_in_masked_voxels_change_no_bit, 0, TRIALS);
    tcase_add_loop_test(c, masking_planes_equals_removing_them, 0, TRIALS);
    tcase_add_loop_test(c, a_fully_masked_case_has_a_finite_loss_and_zero_gradient, 0, TRIALS);
    tcase_add_loop_test(c, a_mean_of_weight_zero_is_zero, 0, 3);
    return suite_run();
}
