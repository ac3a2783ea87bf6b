/*
 * vnet - residual stages of 5 x 5 x 5 convolutions (Milletari et al. 2016, arXiv:1606.04797;
 * MONAI's class VNet, whose arguments and tensor names it keeps).
 *
 *   stage(x) = act(x + layers(x)),  layer(x) = act(norm(conv(x)))
 *   top      = act(x + norm(conv(x))),  x: channels of the image repeated to 16
 *   down(x)  = stage(dropout(act(norm(conv(x)))))                    extent 2, stride 2
 *   up(x, s) = stage(concatenate(act(norm(transposed(dropout(x)))), dropout(s)))
 *   logits   = conv1(act(norm(conv(up_0)))) + bias
 *
 * The sum of a stage on the way down takes x as it is before the dropout. MONAI fixes the dropout
 * of the two upper skips at 0.5. Here it is that of the lower ones.
 */
#include <pons/nn.h>

typedef struct vnet {
    int act;
    double dropout_prob_down;
    pons_reals dropout_prob_up;
    int64_t dropout_dim;
    bool bias;
} vnet;

enum { WIDTH = 16 };

static const pons_option options[] = {
    PONS_CHOICE(vnet, act, "elu", pons_act_names,
                "Activation; leakyrelu 0.01, prelu one slope for each channel."),
    PONS_REAL(vnet, dropout_prob_down, "0.5", 0, 1,
              "Probability of dropout in the two lowest stages on the way down."),
    PONS_REALS(vnet, dropout_prob_up, "0.5 0.5", 0, 1,
               "Probabilities of dropout before the two lowest stages on the way up, and on skips.",
               .count_min = 2, .count_max = 2),
    PONS_INTEGER(vnet, dropout_dim, "3", 1, 3, "1: elements are zeroed; 2, 3: whole channels."),
    PONS_FLAG(vnet, bias, "no", "Whether convolutions on the way down and the last add a bias."),
    PONS_OPTIONS_END
};

/* A stage: its name, the features of its convolutions, their number, whether it has dropout. */
typedef struct stage {
    const char *name;
    int64_t width;
    int count;
    bool dropout;
} stage;

static const stage downs[] = {
    { "down_tr32", 32, 1, false }, { "down_tr64", 64, 2, false }, { "down_tr128", 128, 3, true },
    { "down_tr256", 256, 2, true }
};
static const stage ups[] = {
    { "up_tr256", 256, 2, true }, { "up_tr128", 128, 2, true }, { "up_tr64", 64, 1, false },
    { "up_tr32", 32, 1, false }
};

enum { STAGES = sizeof downs / sizeof downs[0] };

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const vnet *c;
    bool flat;
} net;

/* A slope for each channel, where pons_layer_act has one. */
static pons_node *activate(const net *n, const char *name, pons_node *x)
{
    if (n->c->act != PONS_ACT_PRELU)
        return pons_layer_act(n->g, name, n->c->act, x);
    return pons_prelu(n->g, x, pons_vector_parameter(n->g, name, "weight", PONS_ROLE_SLOPE,
                                                     pons_channels_of(x), 0.25));
}

static pons_node *drop(const net *n, double p, const char *name, pons_node *x)
{
    return n->c->dropout_dim == 1 ? pons_dropout(n->g, x, p, name)
                                  : pons_dropout_channels(n->g, x, p, name);
}

static pons_node *normalise(const net *n, const char *name, pons_node *x)
{
    return pons_layer_norm(n->g, name, &(pons_norm){ PONS_NORM_BATCH, .affine = true }, x);
}

/* norm(conv(x)) of extent 5: parameters NAME.conv_block.conv and NAME.conv_block.adn.N. */
static pons_node *convolve(const net *n, const char *name, int64_t out, bool bias, pons_node *x)
{
    pons_conv conv = pons_conv_cube(out, 5, 1, 1, n->flat);

    conv.bias = bias;
    x = pons_layer_conv(n->g, pons_name(n->g, "%s.conv_block.conv", name), &conv, x);
    return normalise(n, pons_name(n->g, "%s.conv_block.adn.N", name), x);
}

/* act(norm(conv(x))) of extent and stride 2, transposed on the way up. */
static pons_node *resample(const net *n, const char *name, int64_t out, bool up, pons_node *x)
{
    pons_graph *g = n->g;
    pons_conv conv = pons_conv_cube(out, 2, 2, 1, n->flat);

    conv.transposed = up;
    conv.bias = up || n->c->bias;
    x = pons_layer_conv(g, pons_name(g, up ? "%s.up_conv" : "%s.down_conv", name), &conv, x);
    x = normalise(n, pons_name(g, "%s.bn1", name), x);
    return activate(n, pons_name(g, "%s.act_function1", name), x);
}

/* act(layers(y) + x), as many layers as the stage has. */
static pons_node *add_layers(const net *n, const stage *s, bool bias, pons_node *y, pons_node *x)
{
    pons_graph *g = n->g;

    for (int i = 0; i < s->count; i++) {
        const char *name = pons_name(g, "%s.ops.%d", s->name, i);
        y = convolve(n, name, s->width, bias, y);
        y = activate(n, pons_name(g, "%s.act_function", name), y);
    }
    return activate(n, pons_name(g, "%s.act_function2", s->name), pons_add(g, y, x));
}

static pons_node *top(const net *n, pons_node *x)
{
    pons_graph *g = n->g;
    pons_node *repeated[WIDTH], *y;
    int64_t in = pons_channels_of(x);

    if (in > WIDTH || WIDTH % in != 0)
        return pons_graph_fail(g, PONS_CONFIG, "vnet: the image has %d channels, expected a "
                               "divisor of %d", (int)in, WIDTH);
    for (int i = 0; i < WIDTH / in; i++)
        repeated[i] = x;
    y = convolve(n, "in_tr", WIDTH, n->c->bias, x);
    y = pons_add(g, y, pons_concatenate(g, (int)(WIDTH / in), repeated, 4));
    return activate(n, "in_tr.act_function", y);
}

static pons_node *down(const net *n, const stage *s, pons_node *x)
{
    double p = s->dropout ? n->c->dropout_prob_down : 0;

    x = resample(n, s->name, s->width, false, x);
    return add_layers(n, s, n->c->bias,
                      drop(n, p, pons_name(n->g, "%s.dropout", s->name), x), x);
}

static pons_node *up(const net *n, const stage *s, pons_node *x, pons_node *skip)
{
    const double *p = n->c->dropout_prob_up.item;

    x = drop(n, s->dropout ? p[0] : 0, pons_name(n->g, "%s.dropout", s->name), x);
    skip = drop(n, p[1], pons_name(n->g, "%s.dropout2", s->name), skip);
    x = resample(n, s->name, s->width / 2, true, x);
    x = pons_concatenate(n->g, 2, (pons_node *[]){ x, skip }, 4);
    return add_layers(n, s, false, x, x);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const net n = { g, config, task->flat };
    const pons_conv logits = { .out = task->classes, .bias = true };
    pons_node *at[STAGES + 1], *x = top(&n, pons_input_named(g, inputs, "image"));

    at[0] = x;
    for (int i = 0; i < STAGES; i++)
        at[i + 1] = x = down(&n, &downs[i], x);
    for (int i = 0; i < STAGES; i++)
        x = up(&n, &ups[i], x, at[STAGES - 1 - i]);
    x = convolve(&n, "out_tr", task->classes, n.c->bias, x);
    x = activate(&n, "out_tr.act_function1", x);
    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "out_tr.conv2", &logits, x);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    for (int axis = 0; axis < 3; axis++)
        product[axis] = 1 << STAGES;
    return PONS_OK;
}

static const pons_model_operations operations = { .build = build, .divisor = divisor };

PONS_MODEL(vnet, "1.0", "residual stages of 5 x 5 x 5 convolutions", options, operations);
