/*
 * sink_load.h - one sink of [log] sinks.
 */
#ifndef CORE_PLUGIN_SINK_LOAD_H
#define CORE_PLUGIN_SINK_LOAD_H

#include "base/arena.h"
#include "config/config.h"
#include "plugin/plugin_load.h"

/*
 * Load sink 'name' and fill its options, in 'memory', from [log.NAME]. 'where' is the origin of the
 * name.
 */
pons_status sink_load(config *c, arena *memory, const char *name, const char *where,
                      const plugin **out, void **options, pons_error *err);

#endif
