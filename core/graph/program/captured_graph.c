/*
 * captured_graph.c - run a schedule, as captured graphs where the device can capture its calls.
 *
 * A schedule is cut into graphs of consecutive items. A graph ends where this process has work to
 * do: a bucket is complete, an all_reduce starts or ends, or a kernel computes in host memory. A
 * graph of the device's own calls first runs call by call, since the device may still prepare its
 * kernels. The second run captures it. Later runs launch it while no address changes. A watched
 * program runs call by call.
 */
#include "base/arena.h"
#include "graph/program/program_internal.h"
#include "graph/storage/profiler_range.h"
#include "plugin/plugin_status.h"

static bool is_capturable(const program *p, schedule_item item)
{
    return item.action == SCHEDULE_CALL && p->device.operations->capture.begin != NULL
           && p->calls.call[item.number].fixed;
}

void captured_graphs_cut(program *p, schedule *s)
{
    s->graph = arena_alloc(p->arena, (size_t)(s->item_count + 1) * sizeof *s->graph);
    for (int i = 0; i < s->item_count; i++) {
        bool capturable = is_capturable(p, s->item[i]);

        if (i == 0 || capturable != s->graph[s->graph_count - 1].capturable)
            s->graph[s->graph_count++] = (captured_graph){ .first = i, .capturable = capturable };
        s->graph[s->graph_count - 1].count++;
    }
}

static int count_graphs(const schedule *s)
{
    int count = 0;

    for (int i = 0; i < s->graph_count; i++)
        count += s->graph[i].capturable;
    return count;
}

int captured_graphs_count(const program *p)
{
    const program_schedules *s = &p->schedules;
    int count = count_graphs(s->begin) + count_graphs(s->norm) + count_graphs(s->update);

    for (int m = 0; m < p->settings.accumulate; m++)
        count += count_graphs(s->micro[m]);
    return count;
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status run_item(program *p, schedule_item item, pons_error *err)
{
    if (item.action == SCHEDULE_CALL)
        return program_run_call(p, item.number, err);
    if (p->device.facts.host_memory && staging_wait(&p->device, err) != PONS_OK)
        return err->status;
    return gradient_bucket_start(p, item.number, err);
}

static pons_status run_items(program *p, const schedule *s, const captured_graph *g,
                             pons_error *err)
{
    pons_status status = PONS_OK;

    for (int i = g->first; i < g->first + g->count && status == PONS_OK; i++) {
        if (s->item[i].action == SCHEDULE_CALL)
            program_range_enter(p, p->calls.call + s->item[i].number);
        status = run_item(p, s->item[i], err);
    }
    return status;
}

static pons_status capture_graph(program *p, const schedule *s, captured_graph *g, pons_error *err)
{
    const pons_device_operations *o = p->device.operations;
    void *device = p->device.handle, *handle = NULL;

    if (plugin_status(o->capture.begin(device, err), "the device", "capture.begin", err) != PONS_OK)
        return err->status;
    run_items(p, s, g, err);
    plugin_status(o->capture.end(device, &handle, err), "the device", "capture.end", err);
    if (err->status == PONS_OK)
        g->handle = handle;
    else if (handle != NULL)
        o->capture.destroy(device, handle);
    return err->status;
}

static pons_status run_graph(program *p, const schedule *s, captured_graph *g, pons_error *err)
{
    const pons_device_operations *o = p->device.operations;
    bool watched = p->watch.after != NULL || p->settings.fill_nan;

    if (!g->capturable || watched || !g->ran) {
        g->ran = true;
        return run_items(p, s, g, err);
    }
    if (g->handle == NULL && capture_graph(p, s, g, err) != PONS_OK)
        return err->status;
    program_range_leave(p);
    return plugin_status(o->capture.launch(p->device.handle, g->handle, err), "the device",
                         "capture.launch", err);
}

pons_status captured_graphs_run(program *p, schedule *s, pons_error *err)
{
    pons_status status = PONS_OK;

    range_begin(&p->device, RANGE_OTHER, s->name);
    for (int i = 0; i < s->graph_count && status == PONS_OK; i++)
        status = run_graph(p, s, s->graph + i, err);
    program_range_leave(p);
    range_end(&p->device);
    return status;
}

static void destroy_graphs(program *p, schedule *s)
{
    for (int i = 0; i < s->graph_count; i++) {
        if (s->graph[i].handle != NULL)
            p->device.operations->capture.destroy(p->device.handle, s->graph[i].handle);
        s->graph[i].handle = NULL;
    }
}

void captured_graphs_destroy(program *p)
{
    if (p->schedules.begin == NULL)
        return;
    destroy_graphs(p, p->schedules.begin);
    destroy_graphs(p, p->schedules.norm);
    destroy_graphs(p, p->schedules.update);
    for (int m = 0; m < p->settings.accumulate; m++)
        destroy_graphs(p, p->schedules.micro[m]);
}
