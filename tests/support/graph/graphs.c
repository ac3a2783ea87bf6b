/*
 * graphs.c - see graphs.h.
 */
#include "support/graph/graphs.h"

pons_shape image_shape_of(int64_t n, int64_t d, int64_t h, int64_t w, int64_t c)
{
    return (pons_shape){ 5, { n, d, h, w, c } };
}

pons_node *graph_weight(pons_graph *g, const char *name, int64_t out, int64_t k, int64_t in)
{
    return pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, image_shape_of(out, k, k, k, in),
                               (pons_init){ PONS_INIT_UNIFORM, 0.1 });
}

pons_node *graph_vector(pons_graph *g, const char *name, pons_role role, int64_t count,
                        double value)
{
    return pons_parameter_leaf(g, name, role, (pons_shape){ 1, { count } },
                               (pons_init){ PONS_INIT_CONSTANT, value });
}

pons_node *graph_layer(pons_graph *g, pons_node *x, const char *name, int64_t out,
                       int stride, bool batch)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_node *y, *w, *scale, *shift;
    int64_t in = pons_shape_of(x).extent[4];

    for (int i = 0; i < 3; i++) {
        c.stride[i] = stride;
        c.pad_low[i] = c.pad_high[i] = 1;
    }
    w = graph_weight(g, pons_name(g, "%s.conv.weight", name), out, 3, in);
    y = pons_convolve(g, x, w, &c);
    y = pons_add(g, y, graph_vector(g, pons_name(g, "%s.conv.bias", name), PONS_ROLE_BIAS, out,
                                    0.1));
    scale = graph_vector(g, pons_name(g, "%s.norm.weight", name), PONS_ROLE_NORM_SCALE, out, 1);
    shift = graph_vector(g, pons_name(g, "%s.norm.bias", name), PONS_ROLE_NORM_SHIFT, out, 0);
    if (batch)
        y = pons_batch_norm(g, y, scale, shift,
                            pons_state_leaf(g, pons_name(g, "%s.mean", name),
                                            (pons_shape){ 1, { out } }, 0),
                            pons_state_leaf(g, pons_name(g, "%s.var", name),
                                            (pons_shape){ 1, { out } }, 1), 0.1, 1e-5);
    else
        y = pons_instance_norm(g, y, scale, shift, 1e-5);
    return pons_prelu(g, y, graph_vector(g, pons_name(g, "%s.act", name), PONS_ROLE_SLOPE, 1,
                                         0.25));
}

pons_node *dice_ce(pons_graph *g, pons_node *logits, pons_node *label)
{
    int64_t classes = pons_shape_of(logits).extent[4];
    pons_node *t = pons_cast(g, pons_equal(g, pons_cast(g, label, PONS_F32),
                                           pons_iota(g, 5, 4, classes)), PONS_F32);
    pons_node *p = pons_softmax(g, logits, 4);
    pons_node *both = pons_sum(g, pons_mul(g, p, t), PONS_SPATIAL);
    pons_node *all = pons_add(g, pons_sum(g, p, PONS_SPATIAL), pons_sum(g, t, PONS_SPATIAL));
    pons_node *dice = pons_sub(g, pons_scalar(g, 1),
                               pons_div(g, pons_add_scalar(g, pons_scale(g, both, 2), 1e-5),
                                        pons_add_scalar(g, all, 1e-5)));
    pons_node *ce = pons_neg(g, pons_sum(g, pons_mul(g, pons_log_softmax(g, logits, 4), t),
                                         PONS_CHANNEL));

    return pons_add(g, pons_mean_all(g, dice), pons_mean_all(g, ce));
}

void plan_print(const plan *p, FILE *to)
{
    char text[64];

    for (int i = 0; i < p->kernel_count; i++) {
        const plan_kernel *k = &p->kernel[i];

        fprintf(to, "%3d %-24s kind %d section %d nodes %d flop %llu\n", i, k->request.name,
                k->request.kind, k->section, k->node_count, (unsigned long long)k->flop);
        for (int n = 0; n < k->request.input_count; n++)
            fprintf(to, "      reads  %4d type %d %s %s\n", k->input[n]->number, k->input[n]->type,
                    shape_text(k->input[n]->shape, text, sizeof(text)),
                    k->input[n]->name ? k->input[n]->name : "");
        for (int n = 0; n < k->request.output_count; n++)
            fprintf(to, "      writes %4d type %d %s\n", k->output[n]->number, k->output[n]->type,
                    shape_text(k->output[n]->shape, text, sizeof(text)));
        if (k->request.kind == PONS_KERNEL_MAP) {
            const pons_map *m = k->request.attributes;
            fprintf(to, "      map axes %d extent", m->axis_count);
            for (int n = 0; n < m->axis_count; n++)
                fprintf(to, " %lld", (long long)m->extent[n]);
            fprintf(to, " channels %d loads %d values %d stores %d reductions %d\n", m->channels,
                    m->load_count, m->value_count, m->store_count, m->reduction_count);
        }
    }
}
