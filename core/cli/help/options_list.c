/*
 * options_list.c - pons help --list: every option of every table, one a line, for scripts (tests,
 * manuals, completions).
 *
 *     PLACE<tab>PLUGIN<tab>NAME<tab>TYPE<tab>DEFAULT
 *
 * PLACE is a section of the INI file, 'pons COMMAND' for a command's flags, or 'pons' for the flags
 * of all commands. 'preprocess.NAME' is the place of keys that every step has. PLUGIN is '-' for
 * options of the core. DEFAULT is '-' for a required option and empty for an unset one.
 */
#include "cli/help/options_list.h"

#include <stdio.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/manual/option_tables.h"

static const char *const type_names[] = {
    [PONS_OPTION_REAL] = "real", [PONS_OPTION_INTEGER] = "integer", [PONS_OPTION_FLAG] = "flag",
    [PONS_OPTION_CHOICE] = "choice", [PONS_OPTION_TEXT] = "text", [PONS_OPTION_SIZE] = "size",
    [PONS_OPTION_REALS] = "reals", [PONS_OPTION_INTEGERS] = "integers",
    [PONS_OPTION_TEXTS] = "texts", [PONS_OPTION_AXES] = "axes",
    [PONS_OPTION_REAL_AXES] = "real_axes", [PONS_OPTION_TRIPLES] = "triples",
    [PONS_OPTION_PATH] = "path", [PONS_OPTION_PATHS] = "paths"
};

static void list_table(const char *place, const char *plugin, const pons_option *options)
{
    for (const pons_option *o = options; o != NULL && o->name != NULL; o++)
        printf("%s\t%s\t%s\t%s\t%s\n", place, plugin, o->name, type_names[o->type],
               o->fallback != NULL ? o->fallback : "-");
}

static pons_status list_sections(pons_error *err)
{
    option_tables tables;

    option_tables_collect(&tables, err);
    for (int i = 0; i < tables.count && err->status == PONS_OK; i++) {
        const option_table *t = &tables.item[i];
        list_table(t->place, t->plugin != NULL ? t->plugin->descriptor->name : "-", t->options);
    }
    option_tables_free(&tables);
    return err->status;
}

pons_status options_list(pons_error *err)
{
    const char *name;
    bool valued;

    if (list_sections(err) != PONS_OK)
        return err->status;
    for (const command *const *c = commands; *c != NULL; c++) {
        char place[64];
        snprintf(place, sizeof place, "pons %s", (*c)->name);
        list_table(place, "-", (*c)->flags);
    }
    for (int i = 0; (name = arguments_common(i, &valued)) != NULL; i++)
        printf("pons\t-\t%s\t%s\t%s\n", name, valued ? "text" : "flag", valued ? "" : "no");
    return PONS_OK;
}
