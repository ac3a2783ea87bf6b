/*
 * plugin_options.h - the options of a plugin, from a section of the configuration to a struct that
 * its plugin accepts.
 */
#ifndef CORE_PLUGIN_PLUGIN_OPTIONS_H
#define CORE_PLUGIN_PLUGIN_OPTIONS_H

#include "config/config.h"
#include "plugin/plugin_load.h"

/*
 * Fill 'options' (zeroed, of the descriptor's size) from [section] and have the plugin check them.
 * A message names file, line, section and key.
 */
pons_status plugin_options_fill(config *c, const char *section, const plugin *p, void *options,
                                pons_error *err);
/* The check alone, of options that are filled; its message names no file. */
pons_status plugin_options_check(const plugin *p, const void *options, pons_error *err);

#endif
