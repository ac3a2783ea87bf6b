/*
 * task_nodes.c - the table of tasks, and the nodes of tasks whose network reads the patches and
 * approaches the target of the loader as they are.
 */
#include "replica/task_nodes.h"

#include "replica/diffusion_nodes.h"

static pons_status train_as_loaded(const experiment *e, pons_graph *g, pons_node *image,
                                   pons_node *label, task_inputs *out, pons_error *err)
{
    *out = (task_inputs){ 1, { { "image", image } }, label };
    return PONS_OK;
}

static pons_status evaluate_as_loaded(const experiment *e, pons_graph *g, pons_node *image,
                                      task_inputs *out, pons_error *err)
{
    *out = (task_inputs){ 1, { { "image", image } }, NULL };
    return PONS_OK;
}

static const task_nodes nodes[TASK_COUNT] = {
    [TASK_SEGMENTATION] = { true, train_as_loaded, evaluate_as_loaded },
    [TASK_SYNTHESIS] = { false, diffusion_nodes_train, diffusion_nodes_evaluate },
    [TASK_CLASSIFICATION] = { true, train_as_loaded, evaluate_as_loaded },
};

const task_nodes *task_nodes_of(const experiment *e)
{
    return &nodes[e->sections.experiment.task];
}
