/*
 * program.c - compile a graph: gradients, passes, plan, layout, kernels, memory (R8, R15, R16).
 *
 * Other files do the steps. This one has their order, and what a program owns.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "graph/passes/communicate.h"
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
    if (p->settings.scaling.interval < 1)
        p->settings.scaling = (loss_scaling)LOSS_SCALING_DEFAULT;
    for (int i = 0; i < p->output_count; i++)
        if (node_failed(p->output[i]))
            return pons_fail(err, PONS_PLUGIN, "output %d of the graph is missing", i);
    return pons_graph_status(p->graph, err);
}

static pons_status declare_names(program *p, pons_error *err)
{
    return storage_declare(p->storage, p->graph, p->training, err);
}

static int replica_count(const program *p)
{
    return p->settings.collective != NULL ? p->settings.collective->count : 1;
}

static pons_status add_gradients(program *p, pons_error *err)
{
    pass_simplify(p->graph);
    if (p->training && gradients_differentiate(p, err) != PONS_OK)
        return PONS_PLUGIN;
    if (replica_count(p) == 1)
        pass_communicate_alone(p->graph);
    pass_simplify(p->graph);
    return gradients_list_roots(p, err);
}

static pons_status change_types(program *p, pons_error *err)
{
    return pass_precision(p->graph, p->gradients.root_count, p->gradients.root,
                          p->settings.precision, err);
}

static pons_status mark_recomputed(program *p, pons_error *err)
{
    if (!p->training || p->device.reference || p->settings.testing.no_fuse)
        return PONS_OK;
    return pass_recompute(p->graph, p->gradients.root_count, p->gradients.root,
                          p->settings.recompute, err);
}

static pons_status split_sums(program *p, pons_error *err)
{
    size_t room;

    if (replica_count(p) > 1)
        p->all_reduce.count = pass_communicate(p->graph, replica_count(p));
    room = (size_t)p->all_reduce.count + 1;
    p->all_reduce.pending = arena_alloc(p->arena, room * sizeof *p->all_reduce.pending);
    p->all_reduce.host_buffer = arena_alloc(p->arena, room * sizeof *p->all_reduce.host_buffer);
    return pons_graph_status(p->graph, err);
}

static pons_status make_plan(program *p, pons_error *err)
{
    return plan_make(p->graph, p->gradients.root_count, p->gradients.root, &p->device, &p->settings,
                     &p->plan, err);
}

static pons_status (*const steps[])(program *, pons_error *) = {
    check_graph, declare_names, add_gradients, change_types, mark_recomputed, split_sums, make_plan,
    tensor_layout_assign, prepare_calls, tensor_layout_plan_arena,
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
    p->calls.pool.storage = s;
    p->run.phase = RANGE_OTHER;
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
        return pons_fail(err, PONS_DEVICE, "out of memory for a program");
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
    captured_graphs_destroy(p);
    for (int k = 0; k < p->calls.count; k++)
        if (p->calls.call[k].kernel.free != NULL)
            p->calls.call[k].kernel.free(&p->calls.call[k].kernel);
    staging_free(&p->device, &p->layout.input_staging);
    staging_free(&p->device, &p->numbers.staging);
    if (p->grad_accum.host_slot != NULL)
        p->device.operations->memory.release_host(p->device.handle, p->grad_accum.host_slot,
                                                  p->grad_accum.slot_size);
    free(p->peek.memory);
    storage_release(p->storage, p->layout.inputs, p->layout.inputs_size);
    storage_release(p->storage, p->layout.begin_memory, p->layout.begin_size);
    storage_release(p->storage, p->grad_accum.memory,
                    p->grad_accum.slot_size * (size_t)p->grad_accum.slot_count);
    table_pool_free(&p->calls.pool);
    arena_free(p->arena);
    graph_free(p->graph);
    free(p);
}

/* ---- inputs and outputs of the host ---------------------------------------------------------- */

const void *program_peek(program *p, const void *memory, size_t size)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (p->device.facts.host_memory)
        return memory;
    if (size > p->peek.size) {
        free(p->peek.memory);
        p->peek.memory = malloc(size);
        p->peek.size = p->peek.memory != NULL ? size : 0;
    }
    if (p->peek.size < size
        || staging_read(&p->device, p->peek.memory, memory, size, &ignored) != PONS_OK)
        return NULL;
    return p->peek.memory;
}

/* Wait until the last copy of the inputs has left host memory. */
void *program_host_input(program *p, void *memory)
{
    pons_error ignored = PONS_ERROR_INIT; /* the next copy fails as well */

    if (p->device.facts.host_memory)
        return memory;
    if (p->run.inputs_in_flight)
        event_synchronize(&p->device, EVENT_INPUTS_SENT, &ignored);
    p->run.inputs_in_flight = false;
    return p->layout.input_staging.host + ((char *)memory - p->layout.inputs);
}

/* NULL: there is no such input. */
static program_tensor *find_input(const program *p, const char *name)
{
    for (int i = 0; i < p->layout.tensor_count; i++) {
        const pons_node *x = p->graph->node[i];

        if (x->kind == NODE_INPUT && strcmp(x->name, name) == 0)
            return &p->layout.tensor[i];
    }
    return NULL;
}

static void move_tensor(program *p, program_tensor *t, void *memory)
{
    if (t->memory != memory)
        p->binding.storage_layout = p->storage->layout - 1; /* addresses must be bound again      */
    t->memory = memory;
}

void *program_input(program *p, const char *name, pons_tensor *tensor)
{
    program_tensor *t = find_input(p, name);

    if (t == NULL)
        return NULL;
    if (tensor != NULL)
        *tensor = t->tensor;
    p->run.inputs_sent_early = false;
    move_tensor(p, t, p->layout.inputs + t->offset);
    return program_host_input(p, t->memory);
}

enum { EXTERNAL_ALIGNMENT = 64 };

bool program_bind_external(program *p, const char *name, const void *memory)
{
    program_tensor *t = find_input(p, name);

    assert(p->device.facts.host_memory && (uintptr_t)memory % EXTERNAL_ALIGNMENT == 0);
    if (t != NULL)
        move_tensor(p, t, (void *)memory);
    return t != NULL;
}

void program_bind_resident(program *p, const char *name, void *memory)
{
    for (int i = 0; i < p->layout.tensor_count; i++) {
        const pons_node *x = p->graph->node[i];

        if (x->kind == NODE_RESIDENT && strcmp(x->name, name) == 0)
            p->layout.tensor[i].memory = memory;
        if (x->kind == NODE_PATCH_ACCUMULATE)
            p->layout.tensor[i].memory = p->layout.tensor[node_owner(x->input[0])->number].memory;
    }
    p->binding.storage_layout = p->storage->layout - 1; /* addresses must be bound again          */
}

pons_status program_settle(program *p, pons_error *err)
{
    return bind_addresses(p, err);
}

const void *program_output(program *p, int index, pons_tensor *tensor)
{
    const pons_node *x = p->output[index];
    const program_tensor *t = p->layout.tensor + node_owner(p->output[index])->number;

    if (tensor != NULL)
        *tensor = (pons_tensor){ t->tensor.type, x->shape };
    return program_peek(p, bind_address_of(p, t), t->size);
}

const void *program_gradient(program *p, const char *name)
{
    size_t real_size = p->storage->real_size;

    for (int i = 0; i < p->gradients.count; i++) {
        const storage_entry *e = p->gradients.parameter[i];

        if (strcmp(e->tensor.name, name) == 0)
            return program_peek(p, tensor_layout_slot_block(p, e->block)
                                   + (size_t)e->offset * real_size,
                                (size_t)shape_count(e->tensor.shape) * real_size);
    }
    return NULL;
}
