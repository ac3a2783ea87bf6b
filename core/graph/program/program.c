/*
 * program.c - compile a graph: gradients, passes, plan, places, kernels, memory (R8, R15, R16).
 *
 * The work is done by neighbours; here is the order, and what a program owns.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "graph/passes/communicate.h"
#include "graph/passes/fuse/fuse.h"
#include "graph/passes/recompute.h"
#include "graph/passes/simplify.h"
#include "graph/program/program_internal.h"
#include "graph/storage/device_stream.h"

static pons_status check_graph(program *p, pons_error *err)
{
    if (p->settings.accumulate < 1)
        p->settings.accumulate = 1;
    if (p->settings.micro_batches < 1)
        p->settings.micro_batches = p->settings.accumulate;
    for (int i = 0; i < p->output_count; i++)
        if (node_failed(p->output[i]))
            return pons_fail(err, PONS_PLUGIN, "output %d of the graph is missing", i);
    return pons_graph_status(p->graph, err);
}

static pons_status declare_names(program *p, pons_error *err)
{
    return storage_declare(p->storage, p->graph, p->training, err);
}

static int replicas(const program *p)
{
    return p->settings.collective != NULL ? p->settings.collective->count : 1;
}

static pons_status differentiate(program *p, pons_error *err)
{
    pass_simplify(p->graph);
    if (p->training && program_differentiate(p, err) != PONS_OK)
        return PONS_PLUGIN;
    if (replicas(p) == 1)
        pass_communicate_alone(p->graph);
    pass_simplify(p->graph);
    return program_list_roots(p, err);
}

static pons_status change_types(program *p, pons_error *err)
{
    return pass_precision(p->graph, p->root_count, p->root, p->settings.precision, err);
}

static pons_status recompute(program *p, pons_error *err)
{
    if (!p->training || p->device.reference || p->settings.no_fuse)
        return PONS_OK;
    return pass_recompute(p->graph, p->root_count, p->root, p->settings.recompute, err);
}

static pons_status communicate(program *p, pons_error *err)
{
    if (replicas(p) > 1)
        p->sum_count = pass_communicate(p->graph, replicas(p));
    p->pending = arena_alloc(p->arena, (size_t)(p->sum_count + 1) * sizeof *p->pending);
    p->on_host = arena_alloc(p->arena, (size_t)(p->sum_count + 1) * sizeof *p->on_host);
    return pons_graph_status(p->graph, err);
}

static pons_status make_plan(program *p, pons_error *err)
{
    return plan_make(p->graph, p->root_count, p->root, &p->device, &p->settings, &p->plan, err);
}

static pons_status (*const steps[])(program *, pons_error *) = {
    check_graph, declare_names, differentiate, change_types, recompute, communicate, make_plan,
    program_place, program_prepare, program_lay_out,
};

static program *program_make(storage *s, const device *d, pons_graph *g, pons_node *loss,
                             int output_count, pons_node *const *output,
                             const program_settings *settings)
{
    program *p = calloc(1, sizeof *p);

    if (p == NULL || (p->arena = arena_new()) == NULL) {
        free(p);
        return NULL;
    }
    p->storage = s;
    p->device = *d;
    p->settings = *settings;
    p->graph = g;
    p->loss = loss;
    p->training = loss != NULL;
    p->pool.storage = s;
    p->output_count = output_count;
    p->output = arena_alloc(p->arena, (size_t)(output_count + 1) * sizeof *p->output);
    if (output_count > 0)
        memcpy(p->output, output, (size_t)output_count * sizeof *p->output);
    return p;
}

pons_status program_new(storage *s, const device *d, pons_graph *g, pons_node *loss,
                        int output_count, pons_node *const *output,
                        const program_settings *settings, program **out, pons_error *err)
{
    program *p = program_make(s, d, g, loss, output_count, output, settings);
    pons_status status = PONS_OK;

    if (p == NULL) {
        graph_free(g);
        return pons_fail(err, PONS_DEVICE, "cannot allocate a program");
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == PONS_OK; i++)
        status = steps[i](p, err);
    if (status != PONS_OK) {
        program_free(p);
        return status;
    }
    *out = p;
    return PONS_OK;
}

void program_free(program *p)
{
    if (p == NULL)
        return;
    program_forget_segments(p);
    for (int k = 0; k < p->call_count; k++)
        if (p->call[k].kernel.free != NULL)
            p->call[k].kernel.free(&p->call[k].kernel);
    mirror_free(&p->device, &p->sent);
    mirror_free(&p->device, &p->numbers);
    if (p->summed != NULL)
        p->device.operations->memory.release_host(p->device.handle, p->summed, p->fold_size);
    free(p->looked_at);
    storage_release(p->storage, p->inputs, p->inputs_size);
    storage_release(p->storage, p->kept, p->kept_size);
    storage_release(p->storage, p->fold, p->fold_size * (size_t)p->fold_sets);
    table_free(&p->pool);
    arena_free(p->arena);
    graph_free(p->graph);
    free(p);
}

/* ---- what the host fills and reads ----------------------------------------------------------- */

const void *program_look(program *p, const void *memory, size_t size)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (p->device.facts.host_memory)
        return memory;
    if (size > p->looked_at_size) {
        free(p->looked_at);
        p->looked_at = malloc(size);
        p->looked_at_size = p->looked_at != NULL ? size : 0;
    }
    if (p->looked_at_size < size
        || mirror_read(&p->device, p->looked_at, memory, size, &ignored) != PONS_OK)
        return NULL;
    return p->looked_at;
}

/* The last copy has left there. */
void *program_host_input(program *p, void *memory)
{
    pons_error ignored = PONS_ERROR_INIT; /* the next copy fails as well */

    if (p->device.facts.host_memory)
        return memory;
    if (p->sending)
        event_synchronize(&p->device, MARK_SENT, &ignored);
    p->sending = false;
    return p->sent.host + ((char *)memory - p->inputs);
}

/* NULL: there is none. */
static program_tensor *find_input(const program *p, const char *name)
{
    for (int i = 0; i < p->tensor_count; i++) {
        const pons_node *x = p->graph->node[i];

        if (x->kind == NODE_INPUT && strcmp(x->name, name) == 0)
            return &p->tensor[i];
    }
    return NULL;
}

static void move_tensor(program *p, program_tensor *t, void *memory)
{
    if (t->memory != memory)
        p->layout = p->storage->layout - 1; /* addresses hold no more */
    t->memory = memory;
}

void *program_input(program *p, const char *name, pons_tensor *tensor)
{
    program_tensor *t = find_input(p, name);

    if (t == NULL)
        return NULL;
    if (tensor != NULL)
        *tensor = t->tensor;
    p->ahead = false;
    move_tensor(p, t, p->inputs + t->offset);
    return program_host_input(p, t->memory);
}

enum { LENT_ALIGNMENT = 64 };

bool program_lend(program *p, const char *name, const void *memory)
{
    program_tensor *t = find_input(p, name);

    assert(p->device.facts.host_memory && (uintptr_t)memory % LENT_ALIGNMENT == 0);
    if (t != NULL)
        move_tensor(p, t, (void *)memory);
    return t != NULL;
}

void program_hold(program *p, const char *name, void *memory)
{
    for (int i = 0; i < p->tensor_count; i++) {
        const pons_node *x = p->graph->node[i];

        if (x->kind == NODE_HELD && strcmp(x->name, name) == 0)
            p->tensor[i].memory = memory;
        if (x->kind == NODE_PATCH_ADD)
            p->tensor[i].memory = p->tensor[plan_owner(x->input[0])->number].memory;
    }
    p->layout = p->storage->layout - 1; /* addresses hold no more */
}

pons_status program_settle(program *p, pons_error *err)
{
    return program_bind(p, err);
}

const void *program_output(program *p, int index, pons_tensor *tensor)
{
    const pons_node *x = p->output[index];
    const program_tensor *t = p->tensor + plan_owner(p->output[index])->number;

    if (tensor != NULL)
        *tensor = (pons_tensor){ t->tensor.type, x->shape };
    return program_look(p, program_address(p, t), t->size);
}

const void *program_gradient(program *p, const char *name)
{
    for (int i = 0; i < p->gradient_count; i++)
        if (strcmp(p->trained[i]->tensor.name, name) == 0)
            return program_look(p, p->fold + fold_block_offset(p, p->trained[i]->block)
                                   + (size_t)p->trained[i]->offset * p->storage->real_size,
                                (size_t)shape_count(p->trained[i]->tensor.shape)
                                * p->storage->real_size);
    return NULL;
}
