/*
 * command_plugin_show.c - pons plugin show: one plugin's descriptor and options.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pons/op.h>

#include "base/text/quote.h"
#include "cli/command.h"
#include "cli/usage.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

static void show_op(const pons_op_operations *o)
{
    printf("inputs   %d\nthreads  %s\ngradient %s\ncuda     %s", o->input_count,
           o->sliced ? "several" : "one", o->gradient != NULL ? "yes" : "no",
           o->cuda != NULL ? "source:\n" : "no\n");
    if (o->cuda != NULL)
        printf("%s%s", o->cuda, o->cuda[strlen(o->cuda) - 1] != '\n' ? "\n" : "");
}

static pons_status show(pons_kind kind, const char *name, pons_error *err)
{
    const pons_plugin *d;
    const plugin *p;

    if (plugin_load(kind, name, 0, NULL, &p, err) != PONS_OK)
        return err->status;
    d = p->descriptor;
    quote_print(stdout, "kind     %s\nname     %s\nversion  %s\nsummary  %s\nlicence  %s\n"
                "ABI      %u.%u\n", plugin_kind_name(kind), d->name, d->version, d->summary,
                d->licence, d->abi_major, d->abi_minor);
    quote_print(stdout, "file     %s\nsha256   %s\n", p->path, p->sha256);
    if (p->hides != NULL)
        quote_print(stdout, "hides    %s\n", p->hides);
    printf("options\n");
    usage_print_options(stdout, d->options);
    if (kind == PONS_KIND_OP)
        show_op(p->operations);
    return PONS_OK;
}

/* Whether a file has the plugin 'name'. A name is like "dice", or "loss/dice" with its kind. */
static bool wanted(const plugin_file *f, const char *name)
{
    const char *slash = strchr(name, '/');
    const char *kind = plugin_kind_name(f->kind);

    if (slash == NULL)
        return strcmp(f->name, name) == 0;
    return strlen(kind) == (size_t)(slash - name) && strncmp(kind, name, strlen(kind)) == 0 &&
           strcmp(f->name, slash + 1) == 0;
}

/* The plugin of the command line, "loss dice" as "loss/dice". */
static void read_name(const invocation *call, char *name, size_t size)
{
    snprintf(name, size, "%s%s%s", call->argument[0], call->argument_count > 1 ? "/" : "",
             call->argument_count > 1 ? call->argument[1] : "");
}

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    char name[512];
    plugin_file *files;
    int count, shown = 0;
    pons_status status = plugin_list(&files, &count, err);

    if (status != PONS_OK)
        return status;
    read_name(call, name, sizeof name);
    for (int i = 0; i < count && status == PONS_OK; i++) {
        if (!wanted(&files[i], name))
            continue;
        if (shown++ > 0)
            printf("\n");
        status = show(files[i].kind, files[i].name, err);
    }
    plugin_list_free(files, count);
    if (status == PONS_OK && shown == 0)
        return pons_fail(err, PONS_PLUGIN, "no plugin is called '%s'\nhint: %s", name,
                         access(call->argument[0], F_OK) == 0
                         ? "it takes the name of a plugin in PONS_PLUGIN_PATH; a file is for pons "
                           "plugin check" : "pons plugin list");
    return status;
}

const command command_plugin_show = {
    "plugin show", "a plugin's facts and options", "[KIND] NAME", NULL, 0, "", 1, 2, run
};
