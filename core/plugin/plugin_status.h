/*
 * plugin_status.h - the status of a plugin's operation.
 */
#ifndef CORE_PLUGIN_PLUGIN_STATUS_H
#define CORE_PLUGIN_PLUGIN_STATUS_H

#include <pons/plugin.h>

/*
 * The status of a call. A message in 'err' is a failure with the status of 'err', whatever the
 * operation returned. A failure without a message is PONS_PLUGIN, with a message of ours. 'what' is
 * the subject of the message ("the loss"), 'operation' the name ("build").
 */
pons_status plugin_status(pons_status returned, const char *what, const char *operation,
                          pons_error *err);

#endif
