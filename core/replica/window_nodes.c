/*
 * window_nodes.c - the end of an evaluation graph whose device adds windows to sums.
 */
#include "replica/window_nodes.h"

#include <string.h>

#include "graph/ir/leaf.h"
#include "graph/ir/patch.h"
#include "graph/ir/shape.h"

#define SUMS "sums"       /* held leaves of the program */
#define WEIGHTS "weights"
#define MIRRORED "mirrored" /* the sums of flips, and the weights of these */
#define SHARES "shares"

static pons_shape windows_shape(const experiment *e)
{
    return (pons_shape){ 5, { e->sections.window.batch, e->window[0], e->window[1], e->window[2],
                              e->task.classes } };
}

static pons_shape places_shape(const experiment *e)
{
    return (pons_shape){ 2, { e->sections.window.batch, PONS_PATCH_COORDINATES
                              + 2 * (int64_t)(e->window[0] + e->window[1] + e->window[2]) } };
}

static pons_shape weights_shape(const experiment *e)
{
    return (pons_shape){ 3, { e->window[0], e->window[1], e->window[2] } };
}

/* Whether the device has the kernel; no other kernel can take its place (host_kernels.c). */
static bool can_add(const experiment *e, const device *d)
{
    const pons_tensor bytes = { PONS_U8, { 1, { 1 } } };
    const pons_tensor input[] = { bytes, { PONS_I32, places_shape(e) },
                                  { PONS_F32, weights_shape(e) }, { PONS_F32, windows_shape(e) } };
    const pons_request request = { .kind = PONS_KERNEL_PATCH_ACCUMULATE, .name = SUMS,
                                   .input_count = 4, .output_count = 1, .input = input,
                                   .output = &bytes };
    pons_error unread = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported = false;
    pons_status status = d->operations->prepare(d->handle, &request, &kernel, &supported, &unread);

    if (status == PONS_OK && supported && kernel.free != NULL)
        kernel.free(&kernel);
    return status == PONS_OK && supported;
}

bool window_nodes_wanted(const experiment *e, const device *d)
{
    return !e->task.whole && !d->facts.host_memory && e->device_count == 1 && can_add(e, d);
}

/* Mirrored logits, joined; they are whole after the last flip. */
static pons_node *join_flips(const experiment *e, pons_graph *g, pons_node *x)
{
    pons_shape rows = places_shape(e);
    pons_node *sums;

    sums = node_patch_accumulate(g, node_resident(g, MIRRORED),
                                 node_input(g, HELD_FLIPS, PONS_I32, rows),
                                 node_resident_tensor(g, SHARES, PONS_F32, weights_shape(e)), x);
    rows.extent[1] = (rows.extent[1] + PONS_PATCH_COORDINATES) / 2; /* without ages               */
    x = node_patch(g, sums, node_input(g, HELD_WHOLE, PONS_I32, rows), PONS_F32, windows_shape(e));
    sums->name = x->name = MIRRORED;
    return x;
}

/* A window's axes are those of the file here; a flat network has them in another order. */
pons_node *window_nodes_add(const experiment *e, pons_graph *g, pons_node *logits)
{
    node_scope scope = g->scope;
    pons_node *sums, *x;

    g->scope = SCOPE_CORE;
    x = pons_reshape(g, logits, windows_shape(e));
    if (window_nodes_flip(e))
        x = join_flips(e, g, x);
    sums = node_patch_accumulate(g, node_resident(g, SUMS),
                                 node_input(g, HELD_PLACES, PONS_I32, places_shape(e)),
                                 node_resident_tensor(g, WEIGHTS, PONS_F32, weights_shape(e)), x);
    g->scope = scope;
    sums->name = SUMS;
    return sums;
}

void window_nodes_clear(program *p)
{
    static const char *const inputs[] = { HELD_PLACES, HELD_FLIPS, HELD_WHOLE };

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        pons_tensor tensor;
        int32_t *place = program_input(p, inputs[i], &tensor);

        if (place != NULL)
            memset(place, -1, (size_t)shape_count(tensor.shape) * sizeof *place);
    }
}

void window_nodes_bind(const experiment *e, program *p, const window_memory *m)
{
    static const window_memory none;

    m = m != NULL ? m : &none;
    program_bind_resident(p, WEIGHTS, m->weights);
    if (window_nodes_flip(e)) {
        program_bind_resident(p, SHARES, m->shares);
        program_bind_resident(p, MIRRORED, m->mirrored);
    }
    program_bind_resident(p, SUMS, m->sums);
}
