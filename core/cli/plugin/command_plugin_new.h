/*
 * command_plugin_new.h - the kinds of plugins that 'pons plugin new' has a template of.
 */
#ifndef CORE_CLI_PLUGIN_COMMAND_PLUGIN_NEW_H
#define CORE_CLI_PLUGIN_COMMAND_PLUGIN_NEW_H

/* The name of a kind, by number from 0; NULL: there are no more. */
const char *plugin_new_kind(int number);

#endif
