/*
 * check_diffusion_nodes.c - the draws of a diffusion's training, by the reference kernels: pairs of
 * opposite timesteps, and images with the noise of their timestep.
 */
#include "replica/diffusion_nodes.h"

#include <math.h>
#include <stdlib.h>

#include "config/diffusion_table.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/node.h"
#include "graph/reference/reference.h"
#include "support/graph/evaluate_nodes.h"
#include "support/must.h"
#include "support/suite.h"

enum { BATCH = 8, VOXELS = 2, CHANNELS = 3, STEPS = 300 };

/* The nodes of a training graph, and their values at one step. */
typedef struct drawing {
    experiment e;
    int targets[CHANNELS];
    diffusion_table table;
    pons_graph *g;
    pons_node *image;
    task_inputs made;
    evaluation *values;
} drawing;

static void drawing_open(drawing *d, int first_target)
{
    device reference;

    *d = (drawing){ .g = graph_new(true) };
    for (int c = first_target; c < CHANNELS; c++)
        d->targets[d->e.target_count++] = c;
    d->e.targets = d->targets;
    d->e.sections.diffusion = (diffusion_options){ .betas = BETAS_LINEAR, .beta_start = 1e-4,
                                                   .beta_end = 0.02, .timesteps = 1000,
                                                   .steps = 10 };
    error = (pons_error)PONS_ERROR_INIT;
    MUST(diffusion_table_make(&d->e.sections.diffusion, &d->table, &error));
    d->image = node_input(d->g, "image", PONS_F32,
                          pons_shape_make(5, (int64_t[]){ BATCH, VOXELS, 1, 1, CHANNELS }));
    MUST(diffusion_nodes_train(&d->e, d->g, d->image, NULL, &d->made, &error));
    device_reference(&reference, true);
    d->values = evaluation_new(d->g, &reference, PONS_F32, &error);
    ck_assert_ptr_nonnull(d->values);
    for (int64_t i = 0; i < BATCH * VOXELS * CHANNELS; i++)
        evaluation_set(d->values, d->image, i, 0.25 + (double)(i % 7));
}

static void drawing_run(drawing *d, int step)
{
    MUST(evaluation_run(d->values, &(pons_step_key){ .seed = 5, .step = (uint64_t)step }, &error));
}

static void drawing_close(drawing *d)
{
    evaluation_free(d->values);
    graph_free(d->g);
}

/* The visit of a sample's timestep. */
static int visit_of(const drawing *d, int sample)
{
    double timestep = evaluation_get(d->values, d->made.item[1].node, sample);
    int found = -1;

    for (int i = 0; i < d->table.count; i++)
        found = timestep == d->table.timestep[i] ? i : found;
    ck_assert_msg(found >= 0, "timestep %g is not of the schedule", timestep);
    return found;
}

/* The sum of opposite visits is 9 in each of 900 pairs; independent ones have it in a tenth. */
START_TEST(timesteps_of_a_pair_are_opposite)
{
    const int apart = BATCH / 2 + 1;
    int seen[DIFFUSION_STEPS_MAX] = { 0 }, unequal = 0;
    drawing d;

    drawing_open(&d, 0);
    for (int step = 0; step < STEPS; step++) {
        drawing_run(&d, step);
        for (int n = 0; n < BATCH; n++)
            seen[visit_of(&d, n)]++;
        for (int n = 0; n + apart < BATCH; n++)
            ck_assert_int_eq(visit_of(&d, n) + visit_of(&d, n + apart), d.table.count - 1);
        unequal += visit_of(&d, 0) != visit_of(&d, 1);
    }
    /* A visit is expected 240 times in 2400, with a standard deviation of 14. */
    for (int i = 0; i < d.table.count; i++)
        ck_assert_msg(abs(seen[i] - BATCH * STEPS / 10) < 6 * 14, "visit %d: %d", i, seen[i]);
    ck_assert_int_gt(unequal, STEPS / 2);
    drawing_close(&d);
}
END_TEST

/* Count how often each channel is the target in ten steps. */
static void count_targets(int first_target, int targets[CHANNELS])
{
    drawing d;

    drawing_open(&d, first_target);
    for (int step = 0; step < 10; step++) {
        drawing_run(&d, step);
        for (int64_t at = 0; at < BATCH * VOXELS; at++) {
            double share = d.table.share[visit_of(&d, (int)(at / VOXELS))];
            double noise = evaluation_get(d.values, d.made.target, at);
            int changed = 0;

            for (int c = 0; c < CHANNELS; c++) {
                double x = evaluation_get(d.values, d.image, at * CHANNELS + c);
                double y = evaluation_get(d.values, d.made.item[0].node, at * CHANNELS + c);

                if (x == y)
                    continue;
                ck_assert_double_eq_tol(y, sqrt(share) * x + sqrt(1 - share) * noise, 1e-6);
                changed++;
                targets[c]++;
            }
            ck_assert_int_eq(changed, 1);
        }
    }
    drawing_close(&d);
}

START_TEST(one_channel_has_the_noise_of_its_timestep)
{
    int targets[CHANNELS] = { 0 };

    count_targets(0, targets);
    for (int c = 0; c < CHANNELS; c++)
        ck_assert_int_gt(targets[c], 0);
}
END_TEST

START_TEST(a_channel_that_is_no_target_is_never_drawn)
{
    for (int first = 1; first < CHANNELS; first++) {
        int targets[CHANNELS] = { 0 };

        count_targets(first, targets);
        for (int c = 0; c < CHANNELS; c++)
            ck_assert_int_eq(targets[c] > 0, c >= first);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("diffusion_nodes");

    tcase_add_test(c, timesteps_of_a_pair_are_opposite);
    tcase_add_test(c, one_channel_has_the_noise_of_its_timestep);
    tcase_add_test(c, a_channel_that_is_no_target_is_never_drawn);
    return suite_run();
}
