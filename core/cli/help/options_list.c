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

#include <string.h>

#include <pons/transform.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "config/sections.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

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

static void list_sections(void)
{
    for (const section_table *t = section_tables; t->name != NULL; t++) {
        char step[64];
        list_table(t->name, "-", t->options);
        if (t->plugin_kind != PONS_KIND_TRANSFORM)
            continue;
        snprintf(step, sizeof step, "%s.NAME", t->name);
        list_table(step, "-", step_option_table);
    }
}

/* The section of a plugin's options, or the name of its kind if that has no section. */
static const char *section_of(const plugin *p)
{
    const pons_transform_operations *transform = p->operations;

    if (p->descriptor->kind == PONS_KIND_TRANSFORM)
        return transform->plan != NULL ? "augment" : "preprocess";
    if (p->descriptor->kind == PONS_KIND_SINK)
        return "log.NAME";
    for (const section_table *t = section_tables; t->name != NULL; t++)
        if (t->plugin_kind == (int)p->descriptor->kind)
            return t->name;
    return plugin_kind_name((pons_kind)p->descriptor->kind);
}

static pons_status list_plugins(pons_error *err)
{
    plugin_file *files;
    int count;

    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        bool transform = files[i].kind == PONS_KIND_TRANSFORM;
        const plugin *p;
        if (files[i].problem != NULL)
            continue;
        if (plugin_load(files[i].kind, files[i].name,
                        transform ? sizeof(pons_transform_operations) : 0,
                        NULL, &p, err) == PONS_OK)
            list_table(section_of(p), files[i].name, p->descriptor->options);
    }
    plugin_list_free(files, count);
    return err->status;
}

pons_status options_list(pons_error *err)
{
    const char *name;
    bool valued;

    list_sections();
    if (list_plugins(err) != PONS_OK)
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
