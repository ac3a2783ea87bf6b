/*
 * elastic - displace voxels by a smooth random field, as MONAI's Rand3DElastic.
 *
 * Offsets between -1 and 1 are smoothed by a Gaussian of 'sigma' voxels, with zeros outside of the
 * patch, and multiplied by 'magnitude'. They are drawn on a grid whose points are sigma / 2 voxels
 * apart, with the deviation that gives the field that of offsets at each voxel, and interpolated
 * linearly. Up to a sigma of 2 each voxel has its own offset.
 */
#include "elastic.h"

#include <math.h>
#include <string.h>

#include "channel_draws.h"
#include "gaussian_filter.h"

static const char *const label_words[] = { "nearest", "linear", NULL };

typedef struct elastic {
    pons_reals sigma_range, magnitude_range;
    double probability;
    int label_mode;
} elastic;

static const pons_option options[] = {
    PONS_REALS(elastic, sigma_range, "5 8", 0.1, GAUSSIAN_SIGMA_MAX,
               "Ends of the range of the deviation, in voxels.", .count_min = 2, .count_max = 2),
    PONS_REALS(elastic, magnitude_range, "100 200", 0, 1e6,
               "Ends of the range of the factor of the smoothed offsets.", .count_min = 2,
               .count_max = 2),
    PONS_CHOICE(elastic, label_mode, "nearest", label_words,
                "Label of a voxel: the nearest one, or the class with the largest linear weight."),
    PONS_REAL(elastic, probability, "0.1", 0, 1, "How often a patch is deformed."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const elastic *e = config;

    if (range_check("sigma_range", &e->sigma_range, err) != PONS_OK)
        return err->status;
    return range_check("magnitude_range", &e->magnitude_range, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const elastic *e = config;
    elastic_record *r = out;

    r->wanted = (double)pons_draw_uniform(draws) < e->probability;
    r->key = pons_draw_key(draws);
    r->sigma = range_at(&e->sigma_range, (double)pons_draw_uniform(draws));
    r->magnitude = range_at(&e->magnitude_range, (double)pons_draw_uniform(draws));
    if (!r->wanted)
        return PONS_OK;
    for (int i = 0; i < 3; i++)
        memcpy(r->linear[i], sample->map[i], sizeof r->linear[i]);
    sample->displaced = true;
    if (e->label_mode == 1)
        sample->linear_labels = true;
    return PONS_OK;
}

/* ---- the field ------------------------------------------------------------------------------- */

/* The grid of the offsets. Its corners are those of the patch. */
typedef struct offset_grid {
    int64_t count[3];
    double step[3];           /* voxels from point to point                                       */
    gaussian_filter filter;
    double scale;             /* factor of the offsets                                            */
} offset_grid;

static void grid_init(offset_grid *g, const elastic_record *r, const int64_t extent[3])
{
    double wanted = fmax(1, r->sigma / 2);

    *g = (offset_grid){ .filter = { .truncated = 3 }, .scale = r->magnitude };
    for (int a = 0; a < 3; a++) {
        double length = (double)(extent[a] - 1);

        g->count[a] = 1 + (int64_t)ceil(length / wanted);
        g->step[a] = g->count[a] > 1 ? length / (double)(g->count[a] - 1) : 1;
        g->filter.sigma[a] = r->sigma / g->step[a];
        g->scale /= sqrt(g->step[a]);
    }
}

/* Draw offsets along one axis into the first third of the scratch memory, and smooth them. */
static void draw_offsets(const offset_grid *g, const elastic_record *r, int axis, float *scratch,
                         int64_t voxels)
{
    pons_patch points = { .size = sizeof points, .channels = 1, .image = scratch,
                          .extent = { g->count[0], g->count[1], g->count[2] },
                          .scratch = scratch + voxels };
    int64_t count = g->count[0] * g->count[1] * g->count[2];
    uint64_t first = (uint64_t)axis * (uint64_t)((count + 3) / 4);

    for (int64_t n = 0; n < count; n += 4) {
        float u[4];

        pons_voxel_uniform(r->key, first + (uint64_t)n / 4, u);
        for (int64_t i = 0; i < 4 && n + i < count; i++)
            scratch[n + i] = (2 * u[i] - 1) * (float)g->scale;
    }
    gaussian_filter_apply(&g->filter, &points, 0, scratch, 1);
}

/* A voxel between two points of the grid: index of the first, step to the second, its share. */
typedef struct between {
    int64_t low, step;
    float share;
} between;

static between between_at(const offset_grid *g, int axis, int64_t i)
{
    double at = (double)i / g->step[axis];
    int64_t low = (int64_t)at < g->count[axis] - 1 ? (int64_t)at : g->count[axis] - 1;

    return (between){ low, low + 1 < g->count[axis], (float)(at - (double)low) };
}

/* Interpolate a row of the grid into 'line', which has a number for each point along k. */
static void interpolate_line(const offset_grid *g, const float *offset, int64_t i, int64_t j,
                             float *line)
{
    between p = between_at(g, 0, i), q = between_at(g, 1, j);
    const float *a = offset + (p.low * g->count[1] + q.low) * g->count[2];
    const float *b = a + q.step * g->count[2], *c = a + p.step * g->count[1] * g->count[2];
    const float *d = c + q.step * g->count[2];

    for (int64_t k = 0; k < g->count[2]; k++) {
        float first = a[k] + (b[k] - a[k]) * q.share, second = c[k] + (d[k] - c[k]) * q.share;

        line[k] = first + (second - first) * p.share;
    }
}

/* Add the offsets along one axis of the patch to the field, turned by the maps before. */
static void add_offsets(const offset_grid *g, const elastic_record *r, int axis,
                        const float *offset, float *line, pons_displacement *out)
{
    const int64_t *e = out->extent;
    int64_t voxels = e[0] * e[1] * e[2];
    float factor[3];

    for (int i = 0; i < 3; i++)
        factor[i] = (float)r->linear[i][axis];
    for (int64_t i = 0; i < e[0]; i++)
        for (int64_t j = 0; j < e[1]; j++) {
            float *row = out->field + (i * e[1] + j) * e[2];

            interpolate_line(g, offset, i, j, line);
            for (int64_t k = 0; k < e[2]; k++) {
                between s = between_at(g, 2, k);
                float u = line[s.low] + (line[s.low + s.step] - line[s.low]) * s.share;

                row[k] += factor[0] * u;
                row[voxels + k] += factor[1] * u;
                row[2 * voxels + k] += factor[2] * u;
            }
        }
}

static pons_status displace(const void *config, const void *planned, pons_displacement *out,
                            pons_error *err)
{
    const elastic_record *r = planned;
    int64_t voxels = out->extent[0] * out->extent[1] * out->extent[2];
    offset_grid g;

    if (!r->wanted)
        return PONS_OK;
    grid_init(&g, r, out->extent);
    for (int axis = 0; axis < 3; axis++) {
        draw_offsets(&g, r, axis, out->scratch, voxels);
        add_offsets(&g, r, axis, out->scratch, out->scratch + voxels, out);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .record_size = sizeof(elastic_record), .plan = plan,
    .resamples = true, .displace = displace
};

PONS_TRANSFORM(elastic, "1.0", "deform by a smooth random field", options, operations);
