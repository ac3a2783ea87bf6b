/*
 * plugin_build.c - model and loss plugins are asked at one place, by a run and by 'plugin check'.
 */
#include "replica/plugin_build.h"

#include "graph/ir/build.h"
#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "plugin/plugin_status.h"

pons_status plugin_build_model(const plugin *p, const void *config, const pons_task *task,
                               const pons_inputs *inputs, pons_graph *g, pons_outputs *out,
                               pons_error *err)
{
    const pons_model_operations *model = p->operations;
    const char *name = p->descriptor->name;
    pons_shape shape = pons_shape_of(inputs->item[0].node), found;
    pons_status status;
    char a[160], b[160];

    *out = (pons_outputs){ .count = 0 };
    g->origin = node_origin_new(g, RANGE_MODEL, name);
    status = model->build(g, config, task, inputs, out, err);
    g->origin = NULL;
    if (plugin_status(status, "the model", "build", err) != PONS_OK
        || pons_graph_status(g, err) != PONS_OK)
        return err->status;
    if (out->count < 1 || out->count > PONS_OUTPUTS_MAX)
        return pons_fail(err, PONS_PLUGIN, "model '%s' has %d outputs, expected 1 to %d", name,
                         out->count, PONS_OUTPUTS_MAX);
    for (int i = 0; i < out->count; i++)
        if (out->item[i] == NULL)
            return pons_fail(err, PONS_PLUGIN, "model '%s' has not set output %d of %d", name, i,
                             out->count);
    found = pons_shape_of(out->item[0]);
    shape.extent[4] = task->classes;
    for (int axis = 1; task->whole && axis <= 3; axis++)
        shape.extent[axis] = 1;
    if (!shape_equal(found, shape))
        return pons_fail(err, PONS_PLUGIN, "model '%s' gives %s for this extent, expected %s", name,
                         shape_text(found, a, sizeof a), shape_text(shape, b, sizeof b));
    return PONS_OK;
}

pons_status plugin_build_loss(const plugin *p, const void *config, const pons_task *task,
                              pons_node *logits, const pons_target *target, pons_graph *g,
                              pons_node **out, pons_error *err)
{
    const pons_loss_operations *loss = p->operations;
    char text[160];
    pons_status status;

    *out = NULL;
    g->origin = node_origin_new(g, RANGE_LOSS, p->descriptor->name);
    status = loss->build(g, config, task, logits, target, out, err);
    g->origin = NULL;
    if (plugin_status(status, "the loss", "build", err) != PONS_OK
        || pons_graph_status(g, err) != PONS_OK)
        return err->status;
    if (*out == NULL)
        return pons_fail(err, PONS_PLUGIN, "loss '%s' has not set its value", p->descriptor->name);
    if (shape_count(pons_shape_of(*out)) != 1)
        return pons_fail(err, PONS_PLUGIN, "loss '%s' is %s, expected one number",
                         p->descriptor->name, shape_text(pons_shape_of(*out), text, sizeof text));
    return PONS_OK;
}
