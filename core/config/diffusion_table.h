/*
 * diffusion_table.h - the timesteps that a diffusion visits, and the noise at each of them (Ho et
 * al. 2020, arXiv:2006.11239; Nichol and Dhariwal 2021, arXiv:2102.09672; Jiang et al. 2024,
 * arXiv:2405.14802).
 *
 * An image at timestep t is x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) noise, where a_t is the product of
 * 1 - beta_s over s = 0 .. t.
 */
#ifndef CORE_CONFIG_DIFFUSION_TABLE_H
#define CORE_CONFIG_DIFFUSION_TABLE_H

#include "config/config.h"
#include "config/sections.h"

#include <pons/plugin.h>

enum { DIFFUSION_STEPS_MAX = 256 };

/* Defaults of the range of linear betas. */
#define DIFFUSION_BETA_START "1e-4"
#define DIFFUSION_BETA_END "0.02"

typedef struct diffusion_table {
    int count;
    int timestep[DIFFUSION_STEPS_MAX];   /* ascending                                             */
    double share[DIFFUSION_STEPS_MAX];   /* a_t of each                                           */
} diffusion_table;

/* beta_t of the timesteps t = 0 .. o->timesteps - 1. */
void diffusion_betas(const diffusion_options *o, double *beta);
/* PONS_CONFIG: the betas fall, or they are cosine and have a range that they do not read. */
pons_status diffusion_betas_check(config *c, const diffusion_options *o, pons_error *err);
/* PONS_CONFIG: the schedule has no room for the steps. */
pons_status diffusion_table_make(const diffusion_options *o, diffusion_table *out,
                                 pons_error *err);

/*
 * A step of the sampler from a to the earlier b (DDIM, Song et al. 2021, arXiv:2010.02502), with
 * the predicted noise e and fresh noise z:
 *
 *   x_0 = (x - sqrt(1 - a) e) / sqrt(a)
 *   x'  = sqrt(b) x_0 + c1 z + sqrt(1 - b - c1^2) e
 *   c1  = eta sqrt((1 - a / b) (1 - b) / (1 - a))
 *
 * The factors of a step give x' = image x + predicted e + fresh z.
 */
typedef struct diffusion_step {
    double image, predicted, fresh;
} diffusion_step;

diffusion_step diffusion_step_make(double a, double b, double eta);
/* The step that leaves visit 'number'; behind the first one there is the image itself, a_t = 1. */
diffusion_step diffusion_step_of(const diffusion_table *t, int number, double eta);

#endif
