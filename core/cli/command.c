/*
 * command.c - the first step of every command: open its INI file.
 */
#include "cli/command.h"

pons_status invocation_config(const invocation *call, const char *file, config **out,
                              pons_error *err)
{
    return config_open(file, call->set_count, call->set, out, err);
}
