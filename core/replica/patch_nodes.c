/*
 * patch_nodes.c - patches as nodes: cut out of held cases, then the steps of [augment] that change
 * values, in their order. What a step needs of each sample are inputs of the program, which the
 * loader fills (batch_layout.h).
 */
#include "replica/patch_nodes.h"

#include "data/loader/batch_layout.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/node.h"
#include "graph/ir/patch.h"
#include "graph/ir/shape.h"

static pons_status list_parts(const experiment *e, batch_layout *out, pons_error *err)
{
    return batch_layout_make(true, e->augment, e->patch, e->task.channels,
                             e->regions ? e->class_count : 1, out, err);
}

/* Image and target share one leaf. */
static pons_node *held_cases(pons_graph *g)
{
    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->kind == NODE_RESIDENT)
            return g->node[i];
    return node_resident(g, PATCH_CASES);
}

static pons_node *part_input(pons_graph *g, const batch_part *p, int64_t batch)
{
    pons_shape s = p->shape;

    s.extent[0] = batch;
    return node_input(g, p->name, p->type, s);
}

/* Patches as memory has them, along the axes of the file; 'channels' are the last of 'shape'. */
static pons_node *cut(const experiment *e, pons_graph *g, const batch_part *p, pons_type type,
                      pons_shape shape)
{
    pons_shape s = { 5, { shape.extent[0], e->patch[0], e->patch[1], e->patch[2],
                          shape.extent[4] } };
    pons_node *x = node_patch(g, held_cases(g), part_input(g, p, shape.extent[0]), type, s);

    x->name = p->kind == BATCH_IMAGE ? "image" : "target";
    return x;
}

/* The step's parts are parts->item[first] and those behind it. */
static pons_node *add_step(const experiment *e, pons_graph *g, const batch_layout *parts, int first,
                           pons_node *image, pons_error *err)
{
    const pipeline_step *step = &e->augment->step[parts->item[first].step];
    pons_node *number[PONS_SAMPLE_PARAMS_MAX] = { NULL }, *out;
    pons_patch_nodes nodes = { .size = sizeof nodes, .graph = g, .image = image, .number = number };

    for (int i = first; i < parts->count && parts->item[i].step == parts->item[first].step; i++) {
        const batch_part *p = &parts->item[i];
        pons_node *x = part_input(g, p, image->shape.extent[0]);
        if (p->kind == BATCH_NUMBER)
            number[p->number] = x;
        else
            nodes.normal = node_patch_normal(g, x, image->shape);
    }
    g->origin = node_origin_new(g, RANGE_TRANSFORM, step->name);
    out = step->operations->build(step->config, &nodes);
    g->origin = NULL;
    if (out == NULL || !shape_equal(out->shape, image->shape) || out->type != PONS_F32) {
        pons_fail(err, PONS_PLUGIN, "transform '%s' gives no image of its patches' shape",
                  step->plugin);
        return image;
    }
    return out;
}

pons_node *patch_nodes_image(const experiment *e, pons_graph *g, pons_shape shape, pons_error *err)
{
    node_scope scope = g->scope;
    batch_layout parts;
    pons_node *image;

    if (list_parts(e, &parts, err) != PONS_OK)
        return g->failed;
    g->scope = SCOPE_CORE;
    image = cut(e, g, &parts.item[BATCH_IMAGE], PONS_F32, shape);
    for (int i = BATCH_NUMBER, step = -1; i < parts.count && err->status == PONS_OK; i++) {
        if (parts.item[i].step != step)
            image = add_step(e, g, &parts, i, image, err);
        step = parts.item[i].step;
    }
    image = pons_reshape(g, image, shape);
    g->scope = scope;
    batch_layout_clear(&parts);
    return image;
}

/* The target t of resident cases that hold 255 - t (device_case_layout_copy). */
static pons_node *complement(pons_graph *g, pons_node *target)
{
    pons_node *x = pons_sub(g, pons_scalar(g, 255), pons_cast(g, target, PONS_F32));

    return pons_cast(g, x, PONS_U8);
}

pons_node *patch_nodes_target(const experiment *e, pons_graph *g, pons_shape shape,
                              pons_error *err)
{
    node_scope scope = g->scope;
    batch_layout parts;
    pons_node *target;

    if (list_parts(e, &parts, err) != PONS_OK)
        return g->failed;
    g->scope = SCOPE_CORE;
    target = cut(e, g, &parts.item[BATCH_TARGET], PONS_U8, shape);
    if (!e->sections.patch.count_padding)
        target = complement(g, target);
    target = pons_reshape(g, target, shape);
    g->scope = scope;
    batch_layout_clear(&parts);
    return target;
}
