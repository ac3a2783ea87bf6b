/*
 * command_plugin_check.c - pons plugin check: the conformance test. Loading verifies the file, the
 * note, the descriptor and the option table; each kind then has checks of its own.
 */
#include "cli/command.h"
#include "cli/plugin_check.h"

#include <stdio.h>

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    const plugin *p;
    const plugin_check *check;

    if (plugin_load_file(call->argument[0], 0, &p, err) != PONS_OK)
        return err->status;
    printf("%s %s: file, note, descriptor and options are in order\n",
           plugin_kind_name((pons_kind)p->descriptor->kind), p->descriptor->name);
    for (check = plugin_checks; check->run != NULL; check++) {
        if (check->kind != (int)p->descriptor->kind)
            continue;
        if (check->run(p, call, err) != PONS_OK)
            return err->status;
        printf("%s %s: %s\n", plugin_kind_name((pons_kind)p->descriptor->kind), p->descriptor->name,
               check->passed);
    }
    return PONS_OK;
}

const command command_plugin_check = {
    "plugin check", "the conformance test of a plugin", "FILE.so", NULL, 0, "", 1, 1, run
};
