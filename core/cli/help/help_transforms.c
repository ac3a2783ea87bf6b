/*
 * help_transforms.c - transforms in two tables, with their devices.
 *
 * A transform of [preprocess] runs on the host. A random one runs there too, in the loader's
 * threads, and with cache = device on the device if it has a form for that.
 */
#include "cli/help/help_transforms.h"

#include <stdio.h>
#include <string.h>

#include <pons/transform.h>

#include "base/text/quote.h"
#include "data/transform/pipeline.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

static void print_row(const plugin *p, bool random)
{
    const char *where = !random ? "host"
                        : pipeline_device_can(p->operations) ? "host, device" : "host";

    quote_print(stdout, "  %-18s  %-13s %s\n", p->descriptor->name, where,
                p->descriptor->summary);
}

/* Print the random or the deterministic ones. A file that is no plugin is left to 'plugin list'. */
static void print_table(const plugin_file *files, int count, bool random)
{
    for (int i = 0; i < count; i++) {
        pons_error ignored = PONS_ERROR_INIT;
        const plugin *p;
        if (files[i].kind != PONS_KIND_TRANSFORM || files[i].problem != NULL
            || plugin_load(files[i].kind, files[i].name, sizeof(pons_transform_operations), NULL,
                           &p, &ignored) != PONS_OK)
            continue;
        const pons_transform_operations *o = p->operations;
        if ((o->plan != NULL) == random)
            print_row(p, random);
    }
}

pons_status help_transforms_print(const char *section, pons_error *err)
{
    plugin_file *files;
    int count;

    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int random = 0; random < 2; random++) {
        const char *name = random ? "augment" : "preprocess";
        if (section != NULL && strcmp(section, name) != 0)
            continue;
        printf("\nTransforms of [%s]\n\n  %-18s  %-13s %s\n", name, "name", "runs on", "summary");
        print_table(files, count, random);
    }
    printf("\nhost: threads of the processor%s\n",
           section == NULL || strcmp(section, "augment") == 0
               ? "; device: with [data] cache = device, where all steps must be able to" : "");
    plugin_list_free(files, count);
    return PONS_OK;
}
