/*
 * options_list.h - every option of the program, one a line, for scripts.
 */
#ifndef CORE_CLI_HELP_OPTIONS_LIST_H
#define CORE_CLI_HELP_OPTIONS_LIST_H

#include <pons/plugin.h>

pons_status options_list(pons_error *err);

#endif
