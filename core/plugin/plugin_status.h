/*
 * plugin_status.h - what an operation of a plugin has returned, as the core goes on with it.
 */
#ifndef CORE_PLUGIN_PLUGIN_STATUS_H
#define CORE_PLUGIN_PLUGIN_STATUS_H

#include <pons/plugin.h>

/*
 * The status that counts: that of 'err' where the plugin has put a failure into words, whatever it
 * returned; PONS_PLUGIN, in words of ours, where it failed without any. 'what' is "the loss",
 * 'operation' "build".
 */
pons_status plugin_answer(pons_status returned, const char *what, const char *operation,
                          pons_error *err);

#endif
