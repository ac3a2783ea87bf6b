/*
 * sink_plugin.c - one loader for the tests of sinks.
 */
#include "support/run/sink_plugin.h"

#include <stdio.h>
#include <stdlib.h>

#include "plugin/plugin_load.h"

const pons_sink_operations *sink_plugin(const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *p;

    if (plugin_load(PONS_KIND_SINK, name, sizeof(pons_sink_operations), "", &p, &err) == PONS_OK)
        return p->operations;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}
