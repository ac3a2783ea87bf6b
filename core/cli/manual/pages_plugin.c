/*
 * pages_plugin.c - pons-plugin(7): the kinds of plugins, how one is built, and those installed.
 */
#include "cli/manual/pages.h"

#include "cli/manual/roff.h"

static const struct { pons_kind kind; const char *header, *text; } kinds[] = {
    { PONS_KIND_MODEL, "<pons/model.h>", "The network: image in, logits out." },
    { PONS_KIND_LOSS, "<pons/loss.h>", "Logits and target in, one number out." },
    { PONS_KIND_OPTIMIZER, "<pons/optimizer.h>", "Parameter and gradient in, assigns out." },
    { PONS_KIND_SCHEDULE, "<pons/schedule.h>", "The factor of the learning rate at a time." },
    { PONS_KIND_TRANSFORM, "<pons/transform.h>", "Changes a case, or a patch at random." },
    { PONS_KIND_OP, "<pons/op.h>", "A node that the builders of graph.h cannot compose." },
    { PONS_KIND_SINK, "<pons/sink.h>", "Where the numbers of a run go." },
    { PONS_KIND_DEVICE, "<pons/device.h>", "Memory and kernels." },
    { PONS_KIND_COMM, "<pons/comm.h>", "Collectives between processes." }
};

static void put_kinds(FILE *to)
{
    roff_heading(to, "KINDS");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        roff_term(to, plugin_kind_name(kinds[i].kind), kinds[i].header, kinds[i].text);
}

static void put_installed(FILE *to, const option_tables *tables)
{
    roff_heading(to, "PLUGINS OF PONS");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool titled = false;
        for (int i = 0; i < tables->count; i++) {
            const option_table *t = &tables->item[i];
            if (t->plugin == NULL || t->plugin->descriptor->kind != (uint32_t)kinds[k].kind)
                continue;
            if (!titled)
                roff_subheading(to, plugin_kind_name(kinds[k].kind));
            titled = true;
            roff_term(to, t->plugin->descriptor->name, t->plugin->descriptor->version, t->summary);
        }
    }
}

void page_plugin(FILE *to, const option_tables *tables)
{
    roff_begin(to, "pons-plugin", "7");
    roff_heading(to, "NAME");
    fputs("pons\\-plugin \\- models, losses and other parts of pons as shared objects\n", to);
    roff_heading(to, "DESCRIPTION");
    roff_line(to, "A plugin is one C file that becomes one shared object. It has a struct of "
                  "options with their table, functions, a struct of the functions, and the macro "
                  "of its kind, such as PONS_LOSS. Its name is the value in the INI file, the "
                  "name of the file, and the name of the type of the struct of options: "
                  "PONS_LOSS(squared, ...) needs 'typedef struct squared { ... } squared;'. A "
                  "plugin without options has no such type and gives PONS_NO_OPTIONS.");
    roff_example(to, "cc -std=c11 -O2 -fPIC -shared $(pkg-config --cflags pons) \\\n"
                     "    -o own/loss/squared.so squared.c $(pkg-config --libs pons)\n"
                     "PONS_PLUGIN_PATH=$PWD/own pons plugin check own/loss/squared.so\n"
                     "PONS_PLUGIN_PATH=$PWD/own pons train brain.ini --set loss.plugin=squared\n");
    put_kinds(to);
    roff_heading(to, "SEARCH");
    roff_line(to, "A plugin is KIND/NAME.so in a folder of PONS_PLUGIN_PATH, then in the folder "
                  "of the installation. The first one found is taken.");
    put_installed(to, tables);
    roff_heading(to, "SEE ALSO");
    fputs(".BR pons (1),\n.BR pons.ini (5),\n.BR pons\\-plugin\\-check (1),\n"
          ".BR pons\\-plugin\\-list (1),\n.BR pons\\-plugin\\-new (1)\n", to);
}
