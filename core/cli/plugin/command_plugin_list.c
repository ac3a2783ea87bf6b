/*
 * command_plugin_list.c - pons plugin list: the plugins and their files, read from notes alone.
 */
#include <stdio.h>

#include "base/text/quote.h"
#include "cli/command.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    plugin_file *files;
    int count;
    pons_status status = plugin_list(&files, &count, err);

    if (status != PONS_OK)
        return status;
    for (int i = 0; i < count; i++)
        quote_print(stdout, "%-10s %-20s %s%s%s%s%s\n", plugin_kind_name(files[i].kind),
                    files[i].name, files[i].path, files[i].hides != NULL ? "  hides " : "",
                    files[i].hides != NULL ? files[i].hides : "",
                    files[i].problem != NULL ? "  BROKEN: " : "",
                    files[i].problem != NULL ? files[i].problem : "");
    if (count == 0)
        log_warning(call->log, "no plugins are found; PONS_PLUGIN_PATH names folders to search");
    plugin_list_free(files, count);
    return PONS_OK;
}

const command command_plugin_list = {
    "plugin list", "the plugins that are found, and where", "", NULL, 0, "", 0, 0, run
};
