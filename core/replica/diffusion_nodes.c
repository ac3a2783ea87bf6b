/*
 * diffusion_nodes.c - the target, the timestep and the noise of each sample as nodes.
 *
 * All draws come from streams of the graph (R5), so they depend on seed, step and micro-batch
 * alone: a resumed run and every split over replicas have the same ones.
 */
#include "replica/diffusion_nodes.h"

#include <math.h>

#include "data/dataset/class_list.h"
#include "graph/ir/leaf.h"
#include "config/diffusion_table.h"

/* A table of constants is one kernel, which has that many inputs. */
enum { TRAINED_STEPS_MAX = PONS_KERNEL_INPUTS_MAX };

static pons_shape vector_of(int64_t count)
{
    return pons_shape_make(1, &count);
}

/* Whole numbers 0 .. end - 1 [count]. */
static pons_node *draw_numbers(pons_graph *g, const char *stream, int64_t count, int end)
{
    pons_node *u = pons_random_uniform(g, stream, vector_of(count));

    return pons_floor(g, pons_scale(g, u, end));
}

/* The visits [N] of the samples. Visit n is opposite to visit n - (N / 2 + 1), if there is one. */
static pons_node *draw_visits(pons_graph *g, int64_t batch, int count)
{
    pons_node *first = draw_numbers(g, "diffusion.timestep", batch / 2 + 1, count);
    pons_node *second = pons_add_scalar(g, pons_neg(g, first), count - 1);
    pons_node *both = pons_concatenate(g, 2, (pons_node *[]){ first, second }, 0);

    return pons_crop(g, both, (int64_t[]){ 0 }, (int64_t[]){ batch }, NULL);
}

/* value[visit] for each sample [N]. */
static pons_node *look_up(pons_graph *g, pons_node *visit, int count, const double *value)
{
    pons_node *sum = pons_scalar(g, 0);

    for (int i = 0; i < count; i++)
        sum = pons_select(g, pons_equal(g, visit, pons_scalar(g, i)), pons_scalar(g, value[i]),
                          sum);
    return sum;
}

static pons_node *as_voxels(pons_graph *g, pons_node *x)
{
    int64_t batch = pons_shape_of(x).extent[0];

    return pons_reshape(g, x, pons_shape_make(5, (int64_t[]){ batch, 1, 1, 1, 1 }));
}

/* 1 in the channel that is the target of its sample, [N, 1, 1, 1, C]. */
static pons_node *draw_targets(const experiment *e, pons_graph *g, int64_t batch, int channels)
{
    pons_node *number = draw_numbers(g, "diffusion.target", batch, e->target_count);
    double channel[CLASS_COUNT_MAX];

    for (int i = 0; i < e->target_count; i++)
        channel[i] = e->targets[i];
    return pons_equal(g, as_voxels(g, look_up(g, number, e->target_count, channel)),
                      pons_iota(g, 5, 4, channels));
}

pons_status diffusion_nodes_train(const experiment *e, pons_graph *g, pons_node *image,
                                  pons_node *label, task_inputs *out, pons_error *err)
{
    pons_shape shape = pons_shape_of(image);
    int64_t batch = shape.extent[0];
    int channels = (int)shape.extent[4];
    double timestep[DIFFUSION_STEPS_MAX], signal[DIFFUSION_STEPS_MAX], noise[DIFFUSION_STEPS_MAX];
    diffusion_table table;

    if (diffusion_table_make(&e->sections.diffusion, &table, err) != PONS_OK)
        return err->status;
    if (table.count > TRAINED_STEPS_MAX)
        return pons_fail(err, PONS_CONFIG, "%s: [diffusion] steps is %d, with %d visited timesteps, "
                         "expected at most %d of them in training",
                         config_location(e->config, "diffusion", "steps"),
                         (int)e->sections.diffusion.steps, table.count, TRAINED_STEPS_MAX);
    for (int i = 0; i < table.count; i++) {
        timestep[i] = table.timestep[i];
        signal[i] = sqrt(table.share[i]);
        noise[i] = sqrt(1 - table.share[i]);
    }
    shape.extent[4] = 1;
    pons_node *visit = draw_visits(g, batch, table.count);
    pons_node *is_target = draw_targets(e, g, batch, channels);
    pons_node *drawn = pons_random_normal(g, "diffusion.noise", shape);
    pons_node *clean = pons_sum(g, pons_mul(g, image, is_target), PONS_CHANNEL);
    pons_node *noisy = pons_add(
        g, pons_mul(g, as_voxels(g, look_up(g, visit, table.count, signal)), clean),
        pons_mul(g, as_voxels(g, look_up(g, visit, table.count, noise)), drawn));

    *out = (task_inputs){ 2,
                          { { "image", pons_select(g, is_target, noisy, image) },
                            { "timestep", look_up(g, visit, table.count, timestep) } },
                          drawn };
    return pons_graph_status(g, err);
}

pons_status diffusion_nodes_evaluate(const experiment *e, pons_graph *g, pons_node *image,
                                     task_inputs *out, pons_error *err)
{
    int64_t batch = pons_shape_of(image).extent[0];

    *out = (task_inputs){
        2, { { "image", image }, { "timestep", node_input(g, "timestep", PONS_F32,
                                                          vector_of(batch)) } }, NULL
    };
    return pons_graph_status(g, err);
}
