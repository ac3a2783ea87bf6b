/*
 * check_golden.c - losses and networks with their gradients against MONAI, in double.
 *
 * Graphs are computed node by node on the reference device: what is wrong here is a plugin, a
 * builder or a gradient rule, never a pass, a plan or a kernel of another device.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <pons/loss.h>

#include "evaluate.h"
#include "golden.h"
#include "plugin/plugin_load.h"
#include "suite.h"
#include "tolerance.h"

#define MUST(call) ck_assert_msg((call) == PONS_OK, "%s: %s", s->name, s->err.text)

typedef struct session {
    const golden *from;
    const char *name;
    pons_error err;
    pons_graph *g;
    evaluation *e;
    pons_task task;
    pons_target target;
    pons_node *value;
    int count;                      /* parameters */
    pons_node *of[256], *gradient[256];
} session;

/* ---- building -------------------------------------------------------------------------------- */

static const void *load(session *s, pons_kind kind, const char *name, size_t size, config *c,
                        void **options)
{
    const plugin *p;

    MUST(plugin_load(kind, name, size, NULL, &p, &s->err));
    *options = calloc(1, p->descriptor->config_size);
    MUST(config_fill(c, kind == PONS_KIND_MODEL ? "model" : "loss", p->descriptor->options,
                     *options, &s->err));
    return p->operations;
}

static void build_loss(session *s, const char *name, const json_value *options, pons_node *logits)
{
    config *c = golden_config(options, "loss", false);
    void *filled;
    const pons_loss_operations *loss = load(s, PONS_KIND_LOSS, name, sizeof *loss, c, &filled);

    s->g->scope = SCOPE_LOSS;
    MUST(loss->build(s->g, filled, &s->task, logits, &s->target, &s->value, &s->err));
    for (leaf *l = s->g->parameter; l != NULL; l = l->next)
        s->of[s->count++] = l->node;
    MUST(graph_gradient(s->g, s->value, s->count, s->of, s->gradient, &s->err));
    free(filled);
    config_close(c);
}

static void begin(session *s, bool training, const char *activation, pons_shape image,
                  int64_t classes)
{
    bool softmax = strcmp(activation, "softmax") == 0, flat = image.extent[1] == 1;
    pons_shape target;
    double *unused = golden_array(s->from, s->name, "target", &target);

    free(unused);
    s->g = graph_new(training, flat ? 0 : -1);
    s->task = (pons_task){ .size = sizeof s->task, .channels = (int)image.extent[4],
                           .classes = (int)classes,
                           .target = softmax ? PONS_TARGET_LABELS : PONS_TARGET_REGIONS,
                           .flat = flat, .flat_axis = flat ? 0 : -1 };
    s->target.node = node_input(s->g, "target", PONS_U8, target);
    s->target.activation = softmax ? PONS_ACTIVATION_SOFTMAX : PONS_ACTIVATION_SIGMOID;
}

/* ---- computing ------------------------------------------------------------------------------- */

static void give(session *s, const pons_node *x, const char *name)
{
    pons_shape shape;
    double *value = golden_array(s->from, s->name, name, &shape);

    ck_assert_msg(value != NULL, "%s: no '%s'", s->name, name);
    ck_assert_msg(shape_count(shape) == shape_count(x->shape), "%s: extent of '%s'", s->name, name);
    for (int64_t i = 0; i < shape_count(shape); i++)
        evaluation_set(s->e, x, i, value[i]);
    free(value);
}

static void make_evaluation(session *s)
{
    device d;

    device_reference(&d, true);
    s->e = evaluation_new(s->g, &d, PONS_F32, &s->err);
    ck_assert_msg(s->e != NULL, "%s", s->err.text);
    give(s, s->target.node, "target");
}

static void run(session *s)
{
    const pons_moment moment = { 0, 0, 0 };

    MUST(evaluation_run(s->e, &moment, &s->err));
}

static void finish(session *s)
{
    evaluation_free(s->e);
    graph_free(s->g);
    s->count = 0;
}

/* Largest difference from CASE/NAME, and the largest element of that. */
static double away(session *s, const pons_node *x, const char *name, double *most)
{
    pons_shape shape;
    double *expected = golden_array(s->from, s->name, name, &shape), worst = 0;

    ck_assert_msg(expected != NULL, "%s: no '%s'", s->name, name);
    *most = 0;
    for (int64_t i = 0; i < shape_count(shape); i++) {
        double found = x != NULL ? evaluation_get(s->e, x, i) : 0;

        *most = fmax(*most, fabs(expected[i]));
        worst = found == found ? fmax(worst, fabs(found - expected[i])) : INFINITY;
    }
    free(expected);
    return worst;
}

static void loss_agrees(session *s, double expected)
{
    double found = evaluation_get(s->e, s->value, 0);

    ck_assert_msg(fabs(found - expected) <= GOLDEN_DOUBLE * fabs(expected),
                  "%s: loss %.12g, expected %.12g", s->name, found, expected);
}

/* ---- losses ---------------------------------------------------------------------------------- */

START_TEST(losses_and_their_gradients_are_monais)
{
    golden from;
    int count = 0;

    golden_open(&from, "losses");
    for (const json_value *c = from.cases.root->child; c != NULL; c = c->next, count++) {
        session one = { .from = &from, .name = json_member(c, "name")->text }, *s = &one;
        pons_shape shape;
        double most, *unused = golden_array(&from, s->name, "logits", &shape);
        pons_node *logits;

        free(unused);
        begin(s, true, json_member(c, "activation")->text, shape, shape.extent[4]);
        logits = pons_parameter_leaf(s->g, "logits", PONS_ROLE_WEIGHT, shape,
                                     (pons_init){ PONS_INIT_CONSTANT, 0 });
        build_loss(s, json_member(c, "loss")->text, json_member(c, "options"), logits);
        make_evaluation(s);
        give(s, logits, "logits");
        run(s);
        loss_agrees(s, json_member(c, "value")->number);
        ck_assert_msg(away(s, s->gradient[0], "gradient", &most) <= GOLDEN_DOUBLE * most,
                      "%s: gradient", s->name);
        finish(s);
    }
    ck_assert_int_eq(count, 40);
    golden_close(&from);
}
END_TEST

/* ---- networks -------------------------------------------------------------------------------- */

static pons_node *build_model(session *s, const json_value *arguments, pons_shape image,
                              pons_node **logits)
{
    config *c = golden_config(arguments, "model", s->task.flat);
    pons_named_node named = { "image", node_input(s->g, "image", PONS_F32, image) };
    const pons_inputs inputs = { 1, &named };
    pons_outputs outputs = { 0 };
    void *filled;
    const pons_model_operations *model =
        load(s, PONS_KIND_MODEL, "unet", sizeof *model, c, &filled);

    MUST(model->build(s->g, filled, &s->task, &inputs, &outputs, &s->err));
    *logits = outputs.item[0];
    free(filled);
    config_close(c);
    return named.node;
}

static void give_state(session *s, const leaf *first)
{
    for (const leaf *l = first; l != NULL; l = l->next)
        give(s, l->node, pons_name(s->g, "state/%s", l->name));
}

static void gradients_agree(session *s)
{
    double largest = 0, most;

    for (int i = 0; i < s->count; i++) {
        away(s, s->gradient[i], pons_name(s->g, "gradient/%s", s->of[i]->name), &most);
        largest = fmax(largest, most);
    }
    for (int i = 0; i < s->count; i++) {
        const char *name = pons_name(s->g, "gradient/%s", s->of[i]->name);
        double worst = away(s, s->gradient[i], name, &most);

        ck_assert_msg(worst <= GOLDEN_DOUBLE * fmax(most, 0.01 * largest),
                      "%s: %s is off by %g of %g", s->name, name, worst, most);
    }
}

static void states_agree(session *s)
{
    for (int i = 0; i < s->g->merge_count; i++) {
        const state_merge *m = &s->g->merge[i];
        const char *name = pons_name(s->g, "after/%s", m->state->name);
        double most;

        for (int64_t k = 0; k < shape_count(m->state->shape); k++) {
            double old = evaluation_get(s->e, m->state, k);

            evaluation_set(s->e, m->state, k,
                           old + m->rate * (evaluation_get(s->e, m->value, k) - old));
        }
        ck_assert_msg(away(s, m->state, name, &most) <= GOLDEN_DOUBLE * fmax(most, 1), "%s: %s",
                      s->name, name);
    }
}

static void network_agrees(const golden *from, const json_value *c, bool training)
{
    session one = { .from = from, .name = json_member(c, "name")->text }, *s = &one;
    const char *expected = training ? "train/logits" : "eval/logits";
    json_value none = { .type = JSON_OBJECT };
    pons_shape image, logits_shape;
    pons_node *logits, *x;
    double most;

    free(golden_array(from, s->name, "image", &image));
    free(golden_array(from, s->name, expected, &logits_shape));
    begin(s, training, "softmax", image, logits_shape.extent[4]);
    x = build_model(s, json_member(c, "arguments"), image, &logits);
    if (training)
        build_loss(s, "dice_ce", &none, logits);
    make_evaluation(s);
    give(s, x, "image");
    give_state(s, s->g->parameter);
    give_state(s, s->g->state);
    run(s);
    ck_assert_msg(away(s, logits, expected, &most) <= GOLDEN_DOUBLE * most, "%s: %s", s->name,
                  expected);
    if (training) {
        loss_agrees(s, json_member(c, "loss")->number);
        gradients_agree(s);
        states_agree(s);
    }
    finish(s);
}

START_TEST(networks_with_gradients_and_states_are_monais)
{
    golden from;
    int count = 0;

    golden_open(&from, "networks");
    for (const json_value *c = from.cases.root->child; c != NULL; c = c->next) {
        if (strcmp(json_member(c, "network")->text, "UNet") != 0 ||
            json_member(c, "arguments") == NULL)
            continue;
        network_agrees(&from, c, true);
        network_agrees(&from, c, false);
        count++;
    }
    ck_assert_int_eq(count, 7);
    golden_close(&from);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden");

    tcase_add_test(c, losses_and_their_gradients_are_monais);
    tcase_add_test(c, networks_with_gradients_and_states_are_monais);
    return suite_run();
}
