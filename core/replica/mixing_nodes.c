/*
 * mixing_nodes.c - MixUp (Zhang et al. 2018, arXiv:1710.09412) and CutMix (Yun et al. 2019,
 * arXiv:1905.04899) as nodes.
 *
 *   mixup    x = s x + (1 - s) x', target likewise;  s = max(b, 1 - b), b from Beta(alpha, alpha)
 *   cutmix   x = x' in a box, whose share of the image is 1 - b before it is clipped; a target of
 *            voxels likewise, that of a whole image by the share of the clipped box
 *
 * x' is the partner of x. All draws come from streams of the graph (R5), so they depend on seed,
 * step and micro-batch alone. Each sample is mixed in one of the two ways if both are set.
 *
 * Draws of Beta(alpha, alpha) follow from two uniform numbers u and v (Bailey 1994, through
 * Student's t of 2 alpha degrees of freedom):
 *
 *   b = 1/2 + sign(c) / 2 sqrt(w c^2 / (1 - w + w c^2)),  w = 1 - u^(1 / alpha),  c = cos(2 pi v)
 */
#include "replica/mixing_nodes.h"

#include <float.h>
#include <math.h>

#include "graph/ir/node.h"
#include "replica/task_nodes.h"

/* The nodes of one draw for each sample, [N, 1, 1, 1, 1]. */
typedef struct mixing {
    pons_graph *g;
    pons_shape image;
    pons_node *blend;         /* share of the sample itself where nothing is cut; NULL: 1         */
    pons_node *box;           /* f32 [N, D, H, W, 1], 1 where the partner is; NULL: nowhere       */
    pons_node *kept;          /* share of the voxels outside the box; NULL: 1                     */
} mixing;

static pons_node *draw_uniform(const mixing *m, const char *stream)
{
    return pons_random_uniform(m->g, stream,
                               pons_shape_make(5, (int64_t[]){ m->image.extent[0], 1, 1, 1, 1 }));
}

/* b - 1/2 of Beta(alpha, alpha), times 2 */
static pons_node *draw_beta(const mixing *m, const char *name, double alpha)
{
    pons_graph *g = m->g;
    pons_node *u = draw_uniform(m, pons_name(g, "%s.radius", name));
    pons_node *v = draw_uniform(m, pons_name(g, "%s.angle", name));
    pons_node *power = pons_scale(g, pons_log1p(g, pons_neg(g, u)), 1 / alpha);
    pons_node *cosine = pons_cos(g, pons_scale(g, v, 2 * M_PI));
    pons_node *part = pons_mul(g, pons_neg(g, pons_expm1(g, power)), pons_square(g, cosine));
    pons_node *whole = pons_max(g, pons_add(g, pons_exp(g, power), part),
                                pons_scalar(g, FLT_MIN));

    return pons_mul(g, pons_sign(g, cosine), pons_sqrt(g, pons_div(g, part, whole)));
}

static pons_node *clamp(pons_graph *g, pons_node *x, double high)
{
    return pons_min(g, pons_max(g, x, pons_scalar(g, 0)), pons_scalar(g, high));
}

/* The box around a random voxel along one axis: its ends, of which *high is not inside. */
static void draw_side(const mixing *m, int axis, pons_node *edge, pons_node **low, pons_node **high)
{
    pons_graph *g = m->g;
    double extent = (double)m->image.extent[axis];
    pons_node *u = draw_uniform(m, pons_name(g, "cutmix.centre.%d", axis));
    pons_node *centre = pons_floor(g, pons_scale(g, u, extent));
    pons_node *half = pons_floor(g, pons_scale(g, pons_floor(g, pons_scale(g, edge, extent)), 0.5));

    *low = clamp(g, pons_sub(g, centre, half), extent);
    *high = clamp(g, pons_add(g, centre, half), extent);
}

/* Limit 'box' along one axis. 'kept' holds the share of the box until all axes are limited. */
static void cut_axis(mixing *m, int axis, pons_node *edge)
{
    pons_graph *g = m->g;
    int64_t extent = m->image.extent[axis];
    pons_node *place = pons_iota(g, 5, axis, extent), *low, *high;

    draw_side(m, axis, edge, &low, &high);
    m->box = pons_mul(g, m->box, pons_and(g, pons_greater_equal(g, place, low),
                                          pons_less(g, place, high)));
    m->kept = pons_mul(g, m->kept, pons_scale(g, pons_sub(g, high, low), 1 / (double)extent));
}

/* The axes along which a box can be smaller than the image. */
static int count_axes(const mixing *m)
{
    int axes = 0;

    for (int axis = 1; axis <= 3; axis++)
        axes += m->image.extent[axis] > 1;
    return axes;
}

/* Draw a box along the axes of more than one voxel; 'takes' is 1 for the samples that have one. */
static void draw_box(mixing *m, double alpha, pons_node *takes)
{
    pons_graph *g = m->g;
    pons_node *share = pons_scale(g, pons_add_scalar(g, draw_beta(m, "cutmix", alpha), 1), 0.5);

    share = pons_pow(g, pons_add_scalar(g, pons_neg(g, share), 1),
                     pons_scalar(g, 1.0 / count_axes(m)));
    m->box = m->kept = takes;
    for (int axis = 1; axis <= 3; axis++)
        if (m->image.extent[axis] > 1)
            cut_axis(m, axis, share);
    m->kept = pons_add_scalar(g, pons_neg(g, m->kept), 1);
}

static void draw(mixing *m, double mixup, double cutmix)
{
    pons_graph *g = m->g;
    pons_node *cuts = pons_scalar(g, 1);

    if (mixup > 0 && cutmix > 0)
        cuts = pons_less(g, draw_uniform(m, "mixing.way"), pons_scalar(g, 0.5));
    if (cutmix > 0)
        draw_box(m, cutmix, cuts);
    if (mixup == 0)
        return;
    m->blend = pons_scale(g, pons_add_scalar(g, pons_abs(g, draw_beta(m, "mixup", mixup)), 1), 0.5);
    if (cutmix > 0)
        m->blend = pons_select(g, cuts, pons_scalar(g, 1), m->blend);
}

/* The partner of each sample: the next one, and the first for the last. */
static pons_node *take_partners(pons_graph *g, pons_node *x)
{
    static const int64_t first[PONS_RANK_MAX] = { 0 }, second[PONS_RANK_MAX] = { 1 };
    pons_shape others = pons_shape_of(x), one = others;

    others.extent[0]--;
    one.extent[0] = 1;
    return pons_concatenate(g, 2, (pons_node *[]){ pons_crop(g, x, second, others.extent, NULL),
                                                   pons_crop(g, x, first, one.extent, NULL) }, 0);
}

static pons_node *mix_image(const mixing *m, pons_node *x)
{
    pons_graph *g = m->g;
    pons_node *partner = take_partners(g, x);

    if (m->blend != NULL)
        x = pons_add(g, partner, pons_mul(g, m->blend, pons_sub(g, x, partner)));
    return m->box != NULL ? pons_select(g, m->box, partner, x) : x;
}

static bool is_of_whole_image(const mixing *m, const pons_node *target)
{
    pons_shape shape = pons_shape_of(target);

    return shape.extent[1] != m->image.extent[1] || shape.extent[2] != m->image.extent[2]
           || shape.extent[3] != m->image.extent[3];
}

static void mix_target(const mixing *m, pons_node *target, mixed_target *out)
{
    pons_graph *g = m->g;
    pons_node *partner = take_partners(g, target);

    *out = (mixed_target){ target, partner, m->blend };
    if (m->box == NULL)
        return;
    if (is_of_whole_image(m, target)) {
        out->share = m->blend != NULL ? pons_mul(g, m->blend, m->kept) : m->kept;
        return;
    }
    out->node = pons_cast(g, pons_select(g, m->box, partner, target), pons_type_of(target));
    if (m->blend == NULL)
        out->other = NULL;
}

static pons_status refuse(const experiment *e, const char *key, const char *why, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "%s: [train] %s %s",
                     config_location(e->config, "train", key), key, why);
}

pons_status mixing_nodes_add(const experiment *e, pons_graph *g, pons_node **image,
                             pons_node *target, mixed_target *out, pons_error *err)
{
    const train_options *t = &e->sections.train;
    const char *key = t->mixup > 0 ? "mixup" : "cutmix";
    mixing m = { .g = g, .image = pons_shape_of(*image) };

    *out = (mixed_target){ target, NULL, NULL };
    if (t->mixup == 0 && t->cutmix == 0)
        return PONS_OK;
    if (!task_nodes_of(e)->labels)
        return refuse(e, key, "mixes labels, which this task does not read", err);
    if (m.image.extent[0] < 2)
        return refuse(e, key, "mixes the samples of a micro-batch, which has one\nhint: --set "
                      "train.batch=2", err);
    if (t->cutmix > 0 && count_axes(&m) == 0)
        return refuse(e, "cutmix", "cuts a box out of an image, which has one voxel", err);
    draw(&m, t->mixup, t->cutmix);
    *image = mix_image(&m, *image);
    mix_target(&m, target, out);
    return pons_graph_status(g, err);
}
