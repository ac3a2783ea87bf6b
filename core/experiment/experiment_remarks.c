/*
 * experiment_remarks.c - comments at the top of resolved.ini: the machine, and the plugins that are
 * needed to repeat the run.
 */
#include <config.h>

#include "experiment/experiment_internal.h"

#include <string.h>

#include "base/system/host_facts.h"
#include "base/text/text.h"
#include "cluster/group/group.h"
#include "graph/program/explain.h"
#include "plugin/plugin_search.h"

/* Record a file that the search does not find without PONS_PLUGIN_PATH. */
static void add_file_comment(experiment *e, pons_kind kind, const char *name, const char *path)
{
    if (!plugin_is_installed(path) && strchr(path, '\n') == NULL)
        config_add_comment(e->config, arena_format(e->memory, "%s %s is %s", plugin_kind_name(kind),
                                                   name, path));
}

static void add_comment(experiment *e, pons_kind kind, const char *name, const char *version,
                        const char *sha256, const char *path)
{
    config_add_comment(e->config, arena_format(e->memory, "%s %s %s sha256 %s",
                                               plugin_kind_name(kind), name, version, sha256));
    add_file_comment(e, kind, name, path);
}

static void add_plugin_comment(experiment *e, const plugin *p)
{
    const pons_plugin *d = p->descriptor;

    add_comment(e, (pons_kind)d->kind, d->name, d->version, p->sha256, p->path);
}

static void add_pipeline_comments(experiment *e, const pipeline *chain)
{
    for (int i = 0; chain != NULL && i < chain->count; i++)
        add_comment(e, PONS_KIND_TRANSFORM, chain->step[i].plugin, chain->step[i].version,
                    chain->step[i].sha256, chain->step[i].path);
}

/* Record the machine: "host name, processor, 16 processors, 31.2 GiB". */
static void add_host_comment(experiment *e)
{
    host_facts h;

    host_facts_read(&h);
    config_add_comment(e->config, arena_format(e->memory, "host %s, %s%s%d processor%s, %.1f GiB",
                                               h.name, h.processor,
                                               h.processor[0] != '\0' ? ", " : "", h.processors,
                                               text_plural(h.processors), h.memory * 0x1p-30));
}

/* Record devices with memory of their own: "devices 8 x NVIDIA H200, 139.8 GiB". */
static void add_device_comment(experiment *e)
{
    int count = e->devices != NULL && !e->device.facts.host_memory ? e->device_count : 0;
    int processes = e->group != NULL ? group_size(e->group) : 1;
    const char *text = "devices";

    for (int first = 0, end; first < count; first = end) {
        const pons_device_facts *f = &e->devices[first].facts;

        end = first + 1;
        while (end < count && strcmp(e->devices[end].facts.name, f->name) == 0)
            end++;
        text = arena_format(e->memory, "%s%s %d x %s, %.1f GiB", text, first > 0 ? ";" : "",
                            end - first, f->name, (double)f->memory_size * 0x1p-30);
    }
    if (count > 0 && processes > 1)
        text = arena_format(e->memory, "%s in each of %d processes", text, processes);
    if (count > 0)
        config_add_comment(e->config, text);
}

void experiment_add_remarks(experiment *e)
{
    const plugin *all[] = { e->model.plugin, e->loss.plugin, e->optimizer.plugin,
                            e->schedule.plugin, NULL, e->comm };
    pons_error ignored = PONS_ERROR_INIT;

    if (!e->device.reference)
        plugin_load(PONS_KIND_DEVICE, "cpu", 0, NULL, &all[4], &ignored);
    config_add_comment(e->config, "pons " PACKAGE_VERSION);
    add_host_comment(e);
    add_device_comment(e);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NULL)
            add_plugin_comment(e, all[i]);
    for (int i = 0; e->sink != NULL && i < e->sections.log.sinks.count; i++)
        add_file_comment(e, PONS_KIND_SINK, e->sections.log.sinks.item[i],
                         e->sink[i].plugin->path);
    add_pipeline_comments(e, e->preprocess);
    add_pipeline_comments(e, e->augment);
}

void experiment_note_ops(experiment *e, const program *training)
{
    const plugin *p;
    int count = 0;

    while (program_op(training, count) != NULL)
        count++;
    e->op = arena_alloc(e->memory, (size_t)(count + 1) * sizeof *e->op);
    for (e->op_count = 0; (p = program_op(training, e->op_count)) != NULL; e->op_count++) {
        e->op[e->op_count] = p;
        add_plugin_comment(e, p);
    }
}
