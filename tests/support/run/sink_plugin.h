/*
 * sink_plugin.h - the functions of a sink under test.
 */
#ifndef TESTS_SUPPORT_RUN_SINK_PLUGIN_H
#define TESTS_SUPPORT_RUN_SINK_PLUGIN_H

#include <pons/sink.h>

/* Load a sink. A failure ends the program with its error. */
const pons_sink_operations *sink_plugin(const char *name);

#endif
