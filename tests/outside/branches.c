/*
 * branches - the sum of three convolutions of different dilation that share one weight. Their input
 * is the difference to the local mean, by an op of the same set. Built outside the source tree with
 * the installed headers alone.
 */
#include <pons/model.h>

#include <math.h>

typedef struct branches {
    int64_t width;
} branches;

static const pons_option options[] = {
    PONS_INTEGER(branches, width, "8", 1, 512, "Features between the first and the last layer."),
    PONS_OPTIONS_END
};

static pons_node *weight(pons_graph *g, const char *name, int64_t out, int64_t kernel, int64_t in)
{
    pons_init init = { PONS_INIT_UNIFORM, 1 / sqrt((double)(in * kernel * kernel * kernel)) };
    int64_t extent[] = { out, kernel, kernel, kernel, in };

    return pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, pons_shape_make(5, extent), init);
}

static pons_node *convolve(pons_graph *g, pons_node *x, pons_node *w, int dilation, int pad)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;

    for (int i = 0; i < 3; i++) {
        c.dilation[i] = dilation;
        c.pad_low[i] = c.pad_high[i] = pad;
    }
    return pons_convolve(g, x, w, &c);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const branches *c = config;
    pons_node *image = pons_input_named(g, inputs, "image");
    pons_node *shared = weight(g, "branches.weight", c->width, 3, c->width);
    pons_node *x = convolve(g, image, weight(g, "first.weight", c->width, 3, task->channels), 1, 1);
    pons_node *sum = NULL;

    x = pons_instance_norm(g, x, NULL, NULL, 1e-5);
    x = pons_sub(g, x, pons_op(g, "box_mean", "radius = 2 1 1", 1, &x));
    for (int reach = 1; reach <= 3; reach++) {
        pons_node *branch = pons_tanh(g, convolve(g, x, shared, reach, reach));
        sum = sum == NULL ? branch : pons_add(g, sum, branch);
    }
    outputs->count = 1;
    outputs->item[0] = convolve(g, sum, weight(g, "last.weight", task->classes, 1, c->width), 1, 0);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    product[0] = product[1] = product[2] = 1;
    return PONS_OK;
}

static const pons_model_operations operations = { .build = build, .divisor = divisor };

PONS_MODEL(branches, "1.0", "three branches that share a weight", options, operations);
