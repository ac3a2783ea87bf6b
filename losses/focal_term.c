/*
 * focal_term.c - the focal loss in its two forms, from logits.
 */
#include "focal_term.h"

/* The binary focal loss of every voxel and channel. */
static pons_node *binary(pons_graph *g, const focal_term *f, pons_node *x, pons_node *t)
{
    pons_node *side = pons_add_scalar(g, pons_scale(g, t, 2), -1);
    pons_node *ease = pons_log_sigmoid(g, pons_neg(g, pons_mul(g, x, side)));
    pons_node *entropy = pons_sub(g, pons_sub(g, x, pons_mul(g, x, t)), pons_log_sigmoid(g, x));
    pons_node *value = pons_mul(g, pons_exp(g, pons_scale(g, ease, f->gamma)), entropy);

    if (f->alpha.count == 0)
        return value;

    double alpha = f->alpha.item[0];
    return pons_mul(g, value, pons_add_scalar(g, pons_scale(g, t, 2 * alpha - 1), 1 - alpha));
}

/*
 * That of exclusive classes. The floor under 1 - q keeps the gradient of the power finite where q
 * is 1; float has no smaller 1 - q but 0.
 */
static pons_node *exclusive(pons_graph *g, const focal_term *f, pons_node *x, pons_node *t)
{
    pons_node *surprise = pons_log_softmax(g, x, 4);
    pons_node *others = pons_max(g, pons_neg(g, pons_expm1(g, surprise)), pons_scalar(g, 1e-30));
    pons_node *value = pons_neg(g, pons_mul(g, surprise, t));

    if (f->gamma > 0)
        value = pons_mul(g, pons_pow(g, others, pons_scalar(g, f->gamma)), value);
    if (f->alpha.count == 0)
        return value;

    double alpha = f->alpha.item[0];
    pons_node *first = pons_equal(g, pons_iota(g, 1, 0, pons_shape_of(x).extent[4]),
                                  pons_scalar(g, 0));
    return pons_mul(g, value, pons_select(g, first, pons_scalar(g, 1 - alpha),
                                          pons_scalar(g, alpha)));
}

/* The mean over the voxels in the mask, of each case and channel. */
static pons_node *mean_of_voxels(pons_graph *g, pons_node *value, pons_node *valid)
{
    pons_shape s = pons_shape_of(value);
    pons_node *count = pons_scalar(g, (double)s.extent[1] * (double)s.extent[2] *
                                    (double)s.extent[3]);

    if (valid != NULL) {
        value = voxels_masked(g, value, valid);
        count = pons_max(g, pons_sum(g, valid, PONS_SPATIAL), pons_scalar(g, 1));
    }
    return pons_div(g, pons_sum(g, value, PONS_SPATIAL), count);
}

pons_node *focal_term_value(pons_graph *g, const focal_term *f, const pons_task *task,
                            pons_node *x, pons_node *t, pons_node *valid)
{
    bool background = f->include_background;
    int classes = classes_counted(background, task);
    pons_node *mean, *weights = classes_vector(
        g, &f->weight, classes_first_weight(&f->weight, classes), classes);

    if (f->softmax)
        mean = mean_of_voxels(g, exclusive(g, f, classes_kept(g, background, task, x),
                                           classes_kept(g, background, task, t)), valid);
    else
        mean = classes_kept(g, background, task,
                            mean_of_voxels(g, binary(g, f, x, t), valid));
    if (weights != NULL)
        mean = pons_mul(g, mean, weights);
    return f->reduction == REDUCTION_SUM ? voxels_total(g, mean) : pons_mean_all(g, mean);
}
