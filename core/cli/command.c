/*
 * command.c - the first step of every command: open its INI file.
 */
#include "cli/command.h"

#include "config/sections.h"

pons_status invocation_config(const invocation *call, const char *file, config **out,
                              pons_error *err)
{
    if (config_open(file, call->set_count, call->set, out, err) == PONS_OK)
        sections_leave_out(*out, call->log);
    return err->status;
}
