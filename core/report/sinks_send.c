/*
 * sinks_send.c - load the sinks of a run that has ended, for one operation.
 */
#include "report/sinks_send.h"

#include <pons/sink.h>

#include "config/sections.h"
#include "experiment/resolved.h"
#include "plugin/plugin_status.h"
#include "plugin/sink_load.h"

static pons_status send_by(config *c, arena *memory, const char *run, const char *name,
                           logger *l, int *count, pons_error *err)
{
    const pons_sink_operations *operations;
    const plugin *sink;
    void *options;

    if (sink_load(c, memory, name, config_origin(c, "log", "sinks"), &sink, &options, err)
        != PONS_OK)
        return err->status;
    operations = sink->operations;
    if (operations->send == NULL)
        return PONS_OK;
    ++*count;
    if (plugin_status(operations->send(options, run, err), name, "send", err) == PONS_OK)
        log_line(l, "sink '%s' has sent the numbers of '%s'", name, run);
    return err->status;
}

static pons_status send_all(config *c, arena *memory, const char *run, logger *l, pons_error *err)
{
    sections s;
    int count = 0;

    if (sections_fill(c, &s, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < s.log.sinks.count && err->status == PONS_OK; i++)
        send_by(c, memory, run, s.log.sinks.item[i], l, &count, err);
    if (err->status == PONS_OK && count == 0)
        pons_fail(err, PONS_CONFIG, "%s: no sink of '%s' sends numbers, expected one such as "
                  "mlflow", config_origin(c, "log", "sinks"), run);
    return err->status;
}

pons_status sinks_send(const char *run, logger *l, pons_error *err)
{
    arena *memory = arena_new();
    config *c = NULL;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the sinks");
    if (config_open(arena_format(memory, "%s/resolved.ini", run), 0, NULL, &c, err) == PONS_OK)
        send_all(c, memory, run, l, err);
    if (c != NULL)
        resolved_hint_plugins(config_file(c), err);
    if (c != NULL)
        config_close(c);
    arena_free(memory);
    return err->status;
}
