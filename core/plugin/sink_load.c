/*
 * sink_load.c - load a sink with its options.
 */
#include "plugin/sink_load.h"

#include <pons/sink.h>

#include "plugin/plugin_options.h"

pons_status sink_load(config *c, arena *memory, const char *name, const char *where,
                      const plugin **out, void **options, pons_error *err)
{
    const pons_plugin *d;

    if (plugin_load(PONS_KIND_SINK, name, sizeof(pons_sink_operations), where, out, err) != PONS_OK)
        return err->status;
    d = (*out)->descriptor;
    *options = arena_alloc(memory, d->config_size + 1);
    if (d->options == NULL || d->options->name == NULL)
        return PONS_OK;
    return plugin_options_fill(c, arena_format(memory, "log.%s", name), *out, *options, err);
}
