/*
 * command_plugin_list.c - pons plugin list: the plugins, their summaries and their files.
 *
 * Names come from the notes of the files. A device or communicator brings the libraries of its
 * hardware, so it is not loaded for its summary.
 */
#include <stdio.h>

#include "base/text/quote.h"
#include "cli/command.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

static const char *summary_of(const plugin_file *f)
{
    pons_error ignored = PONS_ERROR_INIT;
    const plugin *p;

    if (f->kind == PONS_KIND_DEVICE)
        return "memory and kernels";
    if (f->kind == PONS_KIND_COMM)
        return "collectives between processes";
    return f->problem == NULL && plugin_load(f->kind, f->name, 0, NULL, &p, &ignored) == PONS_OK
           ? p->descriptor->summary : "-";
}

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    plugin_file *files;
    int count;
    pons_status status = plugin_list(&files, &count, err);

    if (status != PONS_OK)
        return status;
    for (int i = 0; i < count; i++)
        quote_print(stdout, "%-10s %-20s %-58s %s%s%s%s%s\n", plugin_kind_name(files[i].kind),
                    files[i].name, summary_of(&files[i]), files[i].path,
                    files[i].hides != NULL ? "  hides " : "",
                    files[i].hides != NULL ? files[i].hides : "",
                    files[i].problem != NULL ? "  BROKEN: " : "",
                    files[i].problem != NULL ? files[i].problem : "");
    if (count == 0)
        log_warning(call->log, "no plugins are found; PONS_PLUGIN_PATH names folders to search");
    plugin_list_free(files, count);
    return PONS_OK;
}

const command command_plugin_list = {
    "plugin list", "the plugins that are found, what they are, and where", "", NULL, 0, "", 0, 0,
    run
};
