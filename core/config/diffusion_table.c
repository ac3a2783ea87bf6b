/*
 * diffusion_table.c - betas, schedules and the factors of a sampling step, all in double.
 */
#include "config/diffusion_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"
#include "base/text/text.h"

/* A smaller share of the image could not be divided by in the sampler's steps. */
#define SHARE_MIN 1e-30

/* ---- betas ----------------------------------------------------------------------------------- */

static void linear_betas(const diffusion_options *o, double *beta)
{
    int last = (int)o->timesteps - 1;

    for (int t = 0; t <= last; t++)
        beta[t] = o->beta_start + (o->beta_end - o->beta_start) * t / last;
}

/* The share of the image that is left before timestep t. */
static double cosine_share(int t, double timesteps)
{
    double x = cos((t / timesteps + 0.008) / 1.008 * M_PI / 2);

    return x * x;
}

static void cosine_betas(const diffusion_options *o, double *beta)
{
    double timesteps = (double)o->timesteps;

    for (int t = 0; t < (int)o->timesteps; t++)
        beta[t] = fmin(1 - cosine_share(t + 1, timesteps) / cosine_share(t, timesteps), 0.999);
}

void diffusion_betas(const diffusion_options *o, double *beta)
{
    static void (*const fill[])(const diffusion_options *, double *) = {
        [BETAS_LINEAR] = linear_betas, [BETAS_COSINE] = cosine_betas
    };

    fill[o->betas](o, beta);
}

/* One end of the range: its key, its value, and its default as text. */
typedef struct beta_limit {
    const char *key;
    double value;
    const char *usual;
} beta_limit;

static pons_status refuse_range(config *c, const beta_limit *end, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "%s: [diffusion] %s: found %g with betas = cosine, which "
                     "have no range\nhint: --set diffusion.betas=linear",
                     config_origin(c, "diffusion", end->key), end->key, end->value);
}

pons_status diffusion_betas_check(config *c, const diffusion_options *o, pons_error *err)
{
    const beta_limit range[] = { { "beta_start", o->beta_start, DIFFUSION_BETA_START },
                               { "beta_end", o->beta_end, DIFFUSION_BETA_END } };
    double usual;
    /* The line names an end that a file gives. */
    int named = config_given(c, "diffusion", "beta_end");

    for (int i = 0; i < 2 && o->betas == BETAS_COSINE; i++)
        if (text_real(range[i].usual, &usual) && range[i].value != usual)
            return refuse_range(c, &range[i], err);
    if (o->beta_start <= o->beta_end)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [diffusion] %s: found %g, expected at %s %s, %g",
                     config_origin(c, "diffusion", range[named].key), range[named].key,
                     range[named].value, named ? "least" : "most", range[!named].key,
                     range[!named].value);
}

/* ---- schedules ------------------------------------------------------------------------------- */

/* Every skip-th timestep from 'first' on, with skip = timesteps / steps. */
static void every_timestep(const diffusion_options *o, int first, diffusion_table *t)
{
    int timesteps = (int)o->timesteps, skip = timesteps / (int)o->steps;

    for (int i = first; i < timesteps && t->count < DIFFUSION_STEPS_MAX; i += skip)
        t->timestep[t->count++] = i;
}

static void uniform_3d(const diffusion_options *o, diffusion_table *t)
{
    every_timestep(o, 0, t);
}

/* The timesteps of Fast-DDPM's 2D code, with 0 in front. */
static void uniform_2d(const diffusion_options *o, diffusion_table *t)
{
    t->timestep[t->count++] = 0;
    every_timestep(o, (int)(o->timesteps / o->steps) - 1, t);
}

static void uniform_head(const diffusion_options *o, diffusion_table *t)
{
    for (int64_t i = 0; i < o->steps; i++)
        t->timestep[t->count++] = (int)(i * (o->timesteps - 1) / (o->steps - 1));
}

/* Fast-DDPM's ten timesteps, for other numbers of timesteps in the same proportion. */
static void ten_non_uniform(const diffusion_options *o, diffusion_table *t)
{
    static const int of_1000[] = { 1, 200, 400, 600, 700, 800, 850, 900, 950, 1000 };

    for (int i = 0; i < 10; i++)
        t->timestep[t->count++] = i == 0 ? 0
                                         : (int)ceil_div_i64(of_1000[i] * o->timesteps, 1000) - 1;
}

/* Two fifths of the steps below 0.7 of the timesteps, the others from there to the last. */
static void non_uniform(const diffusion_options *o, diffusion_table *t)
{
    int64_t last = o->timesteps - 1, bend = last * 7 / 10;
    int64_t first = o->steps * 2 / 5, second = o->steps - first;

    if (o->steps == 10) {
        ten_non_uniform(o, t);
        return;
    }
    for (int64_t i = 0; i < first; i++)
        t->timestep[t->count++] = (int)ceil_div_i64(i * bend, first);
    for (int64_t i = 0; i < second; i++)
        t->timestep[t->count++] = (int)(bend + ceil_div_i64(i * (last - bend), second - 1));
}

static pons_status check_timesteps(const diffusion_options *o, const diffusion_table *t,
                                   pons_error *err)
{
    bool rising = t->timestep[0] >= 0 && t->timestep[t->count - 1] < o->timesteps;

    for (int i = 1; i < t->count; i++)
        rising = rising && t->timestep[i] > t->timestep[i - 1];
    return rising ? PONS_OK
           : pons_fail(err, PONS_CONFIG, "[diffusion] steps: %d steps do not fit into %d timesteps "
                       "by this schedule, expected fewer", (int)o->steps, (int)o->timesteps);
}

pons_status diffusion_table_make(const diffusion_options *o, diffusion_table *out,
                                 pons_error *err)
{
    static void (*const list[])(const diffusion_options *, diffusion_table *) = {
        [SCHEDULE_NON_UNIFORM] = non_uniform, [SCHEDULE_UNIFORM_3D] = uniform_3d,
        [SCHEDULE_UNIFORM_2D] = uniform_2d, [SCHEDULE_UNIFORM_HEAD] = uniform_head
    };
    double *beta, share = 1;

    out->count = 0;
    if (o->steps > o->timesteps)
        return pons_fail(err, PONS_CONFIG, "[diffusion] steps: found %d, expected at most "
                         "timesteps, %d", (int)o->steps, (int)o->timesteps);
    list[o->schedule](o, out);
    if (check_timesteps(o, out, err) != PONS_OK)
        return err->status;
    beta = malloc((size_t)o->timesteps * sizeof *beta);
    if (beta == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d timesteps", (int)o->timesteps);
    diffusion_betas(o, beta);
    for (int t = 0, at = 0; t < (int)o->timesteps && at < out->count; t++) {
        share *= 1 - beta[t];
        if (t == out->timestep[at])
            out->share[at++] = share;
    }
    free(beta);
    if (out->share[out->count - 1] >= SHARE_MIN)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "[diffusion] timesteps: the betas of %d leave nothing of the "
                     "image, expected fewer", (int)o->timesteps);
}

/* ---- the sampler's step ---------------------------------------------------------------------- */

diffusion_step diffusion_step_make(double a, double b, double eta)
{
    double c1 = eta * sqrt((1 - a / b) * (1 - b) / (1 - a));

    return (diffusion_step){
        .image = sqrt(b / a), .fresh = c1,
        .predicted = sqrt(fmax(1 - b - c1 * c1, 0)) - sqrt(b / a) * sqrt(1 - a)
    };
}

diffusion_step diffusion_step_of(const diffusion_table *t, int number, double eta)
{
    return diffusion_step_make(t->share[number], number > 0 ? t->share[number - 1] : 1, eta);
}
