/*
 * task_nodes.c - the table of tasks, and the nodes of a segmentation: there are none between the
 * patches and the network.
 */
#include "replica/task_nodes.h"

#include "replica/diffusion_nodes.h"

static pons_status train_segmentation(const experiment *e, pons_graph *g, pons_node *image,
                                      pons_node *label, task_inputs *out, pons_error *err)
{
    *out = (task_inputs){ 1, { { "image", image } }, label };
    return PONS_OK;
}

static pons_status evaluate_segmentation(const experiment *e, pons_graph *g, pons_node *image,
                                         task_inputs *out, pons_error *err)
{
    *out = (task_inputs){ 1, { { "image", image } }, NULL };
    return PONS_OK;
}

static const task_nodes nodes[TASK_COUNT] = {
    [TASK_SEGMENTATION] = { true, train_segmentation, evaluate_segmentation },
    [TASK_SYNTHESIS] = { false, diffusion_nodes_train, diffusion_nodes_evaluate },
};

const task_nodes *task_nodes_of(const experiment *e)
{
    return &nodes[e->sections.experiment.task];
}
