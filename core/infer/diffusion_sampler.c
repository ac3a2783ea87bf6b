/*
 * diffusion_sampler.c - one run of the sliding windows for each step, then its sum per voxel.
 */
#include "infer/diffusion_sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/thread/parallel.h"
#include "infer/window_scheduler.h"
#include "config/diffusion_table.h"

enum { PIECE = 1 << 14 }; /* a multiple of 4, so that no piece divides a draw */

typedef struct sampling {
    const diffusion_request *request;
    int64_t count;            /* voxels                                                           */
    int channels;
    float *image;             /* [count][channels], with x_t in the channel of the target         */
    float *noise;             /* [count], as predicted                                            */
    float *x;                 /* [count]                                                          */
    uint64_t key;             /* of the fresh noise of the step                                   */
    diffusion_step step;
    bool finite;
} sampling;

/* The key of the noise that enters at a visit; that of the start has the number behind the last. */
static uint64_t noise_key(const diffusion_request *q, int visit)
{
    uint32_t drawn[4];
    uint64_t seed = (uint64_t)q->network->experiment->sections.experiment.seed;

    random_data(seed ^ random_stream_hash(q->name), random_stream_hash("diffusion.sample"), 0,
                (uint64_t)q->target, (uint64_t)visit, 0, drawn);
    return (uint64_t)drawn[0] | (uint64_t)drawn[1] << 32;
}

/* ---- voxels ---------------------------------------------------------------------------------- */

/* The four normal numbers of voxels at .. at + 3. */
static void draw_normal(uint64_t key, int64_t at, float normal[4])
{
    uint32_t u[4];

    random_voxels(key, (uint64_t)at / 4, u);
    random_normal(u[0], u[1], normal);
    random_normal(u[2], u[3], normal + 2);
}

static void start_voxels(void *context, int64_t first, int64_t end)
{
    const sampling *s = context;
    float normal[4];

    for (int64_t i = first; i < end; i++) {
        if (i % 4 == 0)
            draw_normal(s->key, i, normal);
        s->x[i] = normal[i % 4];
    }
}

static void step_voxels(void *context, int64_t first, int64_t end)
{
    const sampling *s = context;
    const float image = (float)s->step.image, predicted = (float)s->step.predicted;
    const float fresh = (float)s->step.fresh;
    float normal[4] = { 0 };

    for (int64_t i = first; i < end; i++) {
        if (i % 4 == 0 && fresh > 0)
            draw_normal(s->key, i, normal);
        s->x[i] = image * s->x[i] + predicted * s->noise[i] + fresh * normal[i % 4];
    }
}

static void place_voxels(void *context, int64_t first, int64_t end)
{
    const sampling *s = context;

    for (int64_t i = first; i < end; i++)
        s->image[i * s->channels + s->request->target] = s->x[i];
}

/* ---- windows --------------------------------------------------------------------------------- */

static pons_status prepare_image(void *context, int number, window_scheduler_volume *out,
                                 pons_error *err)
{
    const sampling *s = context;

    out->network = s->request->network;
    memcpy(out->extent, s->request->extent, sizeof out->extent);
    out->image = s->image;
    return PONS_OK;
}

typedef struct taking {
    const sampling *sampling;
    blender *blender;
    int64_t first;
} taking;

static void take_piece(void *context, int64_t first, int64_t end)
{
    const taking *t = context;

    window_blend_take(t->blender, t->first + first, end - first,
                      t->sampling->noise + t->first + first);
}

static pons_status take_noise(void *context, int number, window_scheduler_volume *v, blender *b,
                              int64_t first, int64_t end, pons_error *err)
{
    sampling *s = context;
    int64_t plane = v->extent[1] * v->extent[2];
    taking t = { s, b, first * plane };

    parallel_run((end - first) * plane, PIECE, take_piece, &t);
    s->finite = s->finite && window_blend_is_finite(b);
    return PONS_OK;
}

static pons_status finish_image(void *context, int number, window_scheduler_volume *v,
                                pons_error *err)
{
    return PONS_OK;
}

static void release_image(void *context, window_scheduler_volume *v)
{
}

static bool is_stopped(void *context)
{
    const diffusion_request *q = ((const sampling *)context)->request;

    return q->stop != NULL && q->stop(q->context);
}

static void set_timestep(const replicas *r, int timestep)
{
    for (int i = 0; i < r->count; i++) {
        pons_tensor tensor = { 0 };
        float *input = program_input(r->item[i].evaluation, "timestep", &tensor);

        for (int64_t n = 0; input != NULL && n < tensor.shape.extent[0]; n++)
            input[n] = (float)timestep;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static pons_status predict_noise(sampling *s, int timestep, pons_error *err)
{
    const window_scheduler_work work = {
        .count = 1, .prepare = prepare_image, .take = take_noise, .finish = finish_image,
        .release = release_image, .stop = is_stopped, .context = s
    };

    parallel_run(s->count, PIECE, place_voxels, s);
    set_timestep(s->request->network, timestep);
    s->finite = true;
    if (window_scheduler_run(s->request->network, &work, err) != PONS_OK || s->finite)
        return err->status;
    return pons_fail(err, PONS_DATA, "case '%s': the network's noise at timestep %d is not finite, "
                     "expected numbers", s->request->name, timestep);
}

static pons_status run_steps(sampling *s, pons_error *err)
{
    const diffusion_options *o = &s->request->network->experiment->sections.diffusion;
    diffusion_table table;

    if (diffusion_table_make(o, &table, err) != PONS_OK)
        return err->status;
    s->key = noise_key(s->request, table.count);
    parallel_run(s->count, PIECE, start_voxels, s);
    for (int visit = table.count - 1; visit >= 0; visit--) {
        if (predict_noise(s, table.timestep[visit], err) != PONS_OK)
            return err->status;
        s->step = diffusion_step_of(&table, visit, o->eta);
        s->key = noise_key(s->request, visit);
        parallel_run(s->count, PIECE, step_voxels, s);
        if (s->request->progress != NULL)
            s->request->progress(s->request->context, 1 - (double)visit / table.count);
    }
    return PONS_OK;
}

pons_status diffusion_sample(const diffusion_request *q, float *out, pons_error *err)
{
    int64_t count = q->extent[0] * q->extent[1] * q->extent[2];
    int channels = q->network->experiment->task.channels;
    size_t size = (size_t)(count * channels) * sizeof(float);
    sampling s = { .request = q, .count = count, .channels = channels, .x = out };

    s.image = malloc(size);
    s.noise = malloc((size_t)count * sizeof *s.noise);
    if (s.image == NULL || s.noise == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the steps of case '%s'", q->name);
    } else {
        memcpy(s.image, q->image, size);
        run_steps(&s, err);
    }
    free(s.image);
    free(s.noise);
    return err->status;
}
