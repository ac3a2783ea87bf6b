/*
 * check_golden_losses.c - values and gradients of all loss plugins against those of MONAI, PyTorch
 * and nnU-Net in double.
 */
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"

enum { HEADS_MAX = 3, NONE_IGNORED = -1 };

/* A case: the loss of each output of a network, weighted and added. */
typedef struct loss_case {
    const golden *golden;
    const char *name;
    golden_plugin plugin;
    pons_target_kind kind;
    pons_activation activation;
    int heads;
    double weight[HEADS_MAX];
    const safetensor *logits[HEADS_MAX], *gradient[HEADS_MAX];
    /* By head; NULL: that of the first, shrunk. */
    const safetensor *target[HEADS_MAX];
    int ignored;              /* a class of labels, the last channel of regions, or NONE_IGNORED  */
    double value;
    const json_t *order, *share; /* partner and own share of each sample; NULL: not mixed         */
} loss_case;

/* ---- graph ----------------------------------------------------------------------------------- */

static const char *input_name(int head)
{
    static const char *const names[HEADS_MAX] = { "target0", "target1", "target2" };

    return names[head];
}

static const char *leaf_name(int head)
{
    static const char *const names[HEADS_MAX] = { "logits0", "logits1", "logits2" };

    return names[head];
}

/* Split what is ignored off the target, as the core does it. */
static void split_ignored(pons_graph *g, const loss_case *c, pons_target *t)
{
    pons_shape s = pons_shape_of(t->node);
    pons_node *ignored = pons_scalar(g, c->ignored);

    if (c->kind == PONS_TARGET_LABELS) {
        pons_node *valid = pons_not_equal(g, t->node, ignored);
        t->valid = pons_cast(g, valid, PONS_U8);
        t->node = pons_cast(g, pons_select(g, valid, pons_cast(g, t->node, PONS_F32),
                                           pons_scalar(g, 0)), PONS_U8);
        return;
    }
    pons_node *all = t->node;
    int64_t regions = s.extent[4] - 1;
    s.extent[4] = 1;
    t->valid = pons_cast(g, pons_not(g, pons_crop(g, all, (int64_t[]){ 0, 0, 0, 0, regions },
                                                  s.extent, NULL)), PONS_U8);
    s.extent[4] = regions;
    t->node = pons_crop(g, all, (int64_t[]){ 0, 0, 0, 0, 0 }, s.extent, NULL);
}

/* Targets that are mixed have their partners and shares as further inputs. */
static void mix_target(pons_graph *g, const loss_case *c, pons_target *t)
{
    pons_shape shape = pons_shape_of(t->node);

    if (c->order == NULL)
        return;
    t->other = node_input(g, "other", PONS_U8, shape);
    t->share = node_input(g, "share", PONS_F32, shape);
}

static pons_node *head_loss(pons_graph *g, const loss_case *c, int head, pons_node **first)
{
    const pons_loss_operations *loss = c->plugin.plugin->operations;
    pons_shape shape = golden_image_shape(c->logits[head]);
    pons_task task = { .size = sizeof task, .channels = 1, .classes = (int)shape.extent[4],
                       .target = c->kind, .flat_axis = -1 };
    pons_target t = { .activation = c->activation };
    pons_node *value, *logits = pons_parameter_leaf(g, leaf_name(head), PONS_ROLE_WEIGHT, shape,
                                                    (pons_init){ PONS_INIT_CONSTANT, 0 });

    if (c->target[head] != NULL)
        t.node = node_input(g, input_name(head),
                            c->target[head]->type == SAFETENSORS_F32 ? PONS_F32 : PONS_U8,
                            golden_image_shape(c->target[head]));
    else
        t.node = pons_resize(g, *first, PONS_RESIZE_NEAREST_EXACT, &shape.extent[1]);
    if (head == 0)
        *first = t.node;
    if (c->ignored != NONE_IGNORED)
        split_ignored(g, c, &t);
    mix_target(g, c, &t);
    MUST(loss->build(g, c->plugin.options, &task, logits, &t, &value, &error));
    return c->weight[head] == 1 ? value : pons_scale(g, value, c->weight[head]);
}

/* Logits are parameters, so that the program computes their gradients. */
static program *build(const loss_case *c, const device *d, storage *s,
                      const program_settings *settings)
{
    pons_graph *g = graph_new(true);
    pons_node *sum = NULL, *first = NULL;
    program *p;

    g->scope = SCOPE_LOSS;
    for (int i = 0; i < c->heads; i++) {
        pons_node *value = head_loss(g, c, i, &first);
        sum = sum == NULL ? value : pons_add(g, sum, value);
    }
    MUST(program_new(s, d, g, sum, 0, NULL, settings, &p, &error));
    return p;
}

/* ---- a case ---------------------------------------------------------------------------------- */

static void *leaf_memory(storage *s, const char *name)
{
    for (int i = 0; i < storage_count(s, STORAGE_PARAMETER); i++) {
        storage_tensor t = storage_item(s, STORAGE_PARAMETER, i);
        if (strcmp(t.name, name) == 0)
            return t.memory;
    }
    ck_abort_msg("no leaf '%s'", name);
}

static void fill_mixed(const loss_case *c, program *p)
{
    const uint8_t *own = program_input(p, input_name(0), NULL);
    uint8_t *other = program_input(p, "other", NULL);
    pons_tensor tensor;
    void *share = program_input(p, "share", &tensor);

    for (size_t i = 0; i < json_array_size(c->order); i++) {
        double value = json_number_value(json_array_get(c->share, i));
        other[i] = own[json_integer_value(json_array_get(c->order, i))];
        if (tensor.type == PONS_F64)
            ((double *)share)[i] = value;
        else
            ((float *)share)[i] = (float)value;
    }
}

static void fill(const loss_case *c, const device *d, storage *s, program *p)
{
    pons_tensor target;

    for (int i = 0; i < c->heads; i++) {
        golden_read(c->logits[i], golden_tensor(d, golden_image_shape(c->logits[i])), true,
                    leaf_memory(s, leaf_name(i)));
        if (c->target[i] == NULL)
            continue;
        void *memory = program_input(p, input_name(i), &target);
        golden_read(c->target[i], target, true, memory);
    }
    if (c->order != NULL)
        fill_mixed(c, p);
}

static void compare(const loss_case *c, const golden_mode *m, const device *d, program *p,
                    double loss)
{
    ck_assert_msg(fabs(loss - c->value) <= LOSS_RELATIVE * fabs(c->value),
                  "%s on %s: %.9g, expected %.9g", c->name, m->name, loss, c->value);
    for (int i = 0; i < c->heads; i++) {
        pons_tensor tensor = golden_tensor(d, golden_image_shape(c->logits[i]));
        golden_difference away = golden_compare(c->gradient[i], tensor, true,
                                                program_gradient(p, leaf_name(i)));
        ck_assert_msg(away.largest <= LOSS_GRADIENT_OF_LARGEST * away.of,
                      "gradient %d of %s on %s: away by %g of %g", i, c->name, m->name,
                      away.largest, away.of);
    }
}

static void check_loss_case(const loss_case *c, const golden_mode *m, device *d)
{
    program_settings settings = golden_settings(m);
    step_result r;
    storage *s;
    program *p;

    MUST(storage_new(d, &s, &error));
    p = build(c, d, s, &settings);
    fill(c, d, s, p);
    MUST(program_step_begin(p, 0, &error));
    MUST(program_micro(p, 0, &error));
    MUST(program_step_finish(p, 0, &r, &error));
    compare(c, m, d, p, r.loss);
    program_free(p);
    storage_free(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int ignored_of(const json_t *number)
{
    return json_is_number(number) ? (int)json_integer_value(number) : NONE_IGNORED;
}

/* The arrays of the outputs of a network, up to the last that has a weight. */
static void find_heads(loss_case *c, const json_t *weights, const char *divider)
{
    const json_t *weight;
    size_t i;

    json_array_foreach(weights, i, weight) {
        if (json_number_value(weight) == 0)
            continue;
        ck_assert_int_lt(c->heads, HEADS_MAX);
        c->weight[c->heads++] = json_number_value(weight);
        c->logits[i] = golden_find(c->golden, "%s/logits%s%zu", c->name, divider, i);
        c->gradient[i] = golden_find(c->golden, "%s/gradient%s%zu", c->name, divider, i);
        c->target[i] = golden_find(c->golden, "%s/target%s%zu", c->name, divider, i);
    }
    if (c->target[0] == NULL)
        c->target[0] = golden_find(c->golden, "%s/target", c->name);
}

static loss_case read_case(const golden *g, const json_t *c)
{
    const char *activation = golden_text(c, "activation");
    json_t *options = json_object_get(c, "options");
    const json_t *weights = json_object_get(c, "weights");
    loss_case r = { .golden = g, .name = golden_text(c, "name"), .heads = 0,
                    .value = golden_number(c, "value"),
                    .ignored = ignored_of(json_object_get(options, "ignore")),
                    .order = json_object_get(c, "order"),
                    .share = json_object_get(c, "weight_of_own") };

    r.kind = strcmp(activation, "softmax") == 0 ? PONS_TARGET_LABELS : PONS_TARGET_REGIONS;
    r.activation = r.kind == PONS_TARGET_LABELS ? PONS_ACTIVATION_SOFTMAX
                   : strcmp(activation, "none") == 0 ? PONS_ACTIVATION_NONE
                   : PONS_ACTIVATION_SIGMOID;
    golden_load(&r.plugin, PONS_KIND_LOSS, golden_text(c, "loss"), sizeof(pons_loss_operations),
                options, false);
    if (weights != NULL) {
        find_heads(&r, weights, "");
        return r;
    }
    r.heads = 1;
    r.weight[0] = 1;
    r.logits[0] = golden_find(g, "%s/logits", r.name);
    r.gradient[0] = golden_find(g, "%s/gradient", r.name);
    r.target[0] = golden_find(g, "%s/target", r.name);
    return r;
}

/* A case of nnU-Net's own loss, with the targets of its outputs. */
static loss_case read_nnunet(const golden *g, const json_t *c)
{
    bool regions = json_is_true(json_object_get(c, "regions"));
    json_t *options = json_pack("{sO}", "batch_dice", json_object_get(c, "batch_dice"));
    loss_case r = { .golden = g, .name = golden_text(c, "name"), .heads = 0,
                    .value = golden_number(c, "value"),
                    .ignored = ignored_of(json_object_get(c, "ignore_label")) };

    r.kind = regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS;
    r.activation = regions ? PONS_ACTIVATION_SIGMOID : PONS_ACTIVATION_SOFTMAX;
    golden_load(&r.plugin, PONS_KIND_LOSS, "nnunet", sizeof(pons_loss_operations), options, false);
    json_decref(options);
    find_heads(&r, json_object_get(c, "deep_supervision_weights"), "_");
    return r;
}

static void check_cases(const golden_mode *m, const char *file,
                        loss_case (*read)(const golden *g, const json_t *c), int expected)
{
    const json_t *c;
    golden g;
    device d;
    size_t i;
    int count = 0;

    golden_open(&g, file);
    golden_device(m, &d);
    json_array_foreach(g.cases, i, c) {
        if (golden_loss_left_out(c))
            continue;
        loss_case r = read(&g, c);
        check_loss_case(&r, m, &d);
        golden_unload(&r.plugin);
        count++;
    }
    ck_assert_int_eq(count, expected);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}

START_TEST(losses_and_gradients_are_those_of_monai)
{
    check_cases(&golden_modes[_i], "losses", read_case, 40);
}
END_TEST

START_TEST(the_dice_term_of_one_class_takes_no_weight)
{
    check_cases(&golden_modes[_i], "one_class", read_case, 7);
}
END_TEST

START_TEST(further_losses_are_those_of_monai_and_pytorch)
{
    check_cases(&golden_modes[_i], "losses_more", read_case, 60);
}
END_TEST

START_TEST(nnunets_loss_of_several_outputs_is_its_own)
{
    check_cases(&golden_modes[_i], "nnunet/losses", read_nnunet, 6);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden losses");

    tcase_add_loop_test(c, losses_and_gradients_are_those_of_monai, 0, golden_mode_count);
    tcase_add_loop_test(c, the_dice_term_of_one_class_takes_no_weight, 0, golden_mode_count);
    tcase_add_loop_test(c, further_losses_are_those_of_monai_and_pytorch, 0, golden_mode_count);
    tcase_add_loop_test(c, nnunets_loss_of_several_outputs_is_its_own, 0, golden_mode_count);
    return suite_run();
}
