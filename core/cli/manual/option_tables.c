/*
 * option_tables.c - every table of keys of the INI file: the core's sections and the plugins' keys.
 */
#include "cli/manual/option_tables.h"

#include <stdio.h>
#include <stdlib.h>

#include <pons/transform.h>

#include "config/sections.h"
#include "plugin/plugin_search.h"

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

static option_table *add(option_tables *t, const char *place, const char *summary)
{
    option_table *o = &t->item[t->count++];

    *o = (option_table){ .summary = summary };
    snprintf(o->place, sizeof o->place, "%s", place);
    return o;
}

static void add_sections(option_tables *to)
{
    for (const section_table *t = section_tables; t->name != NULL; t++) {
        char step[64];
        add(to, t->name, t->summary)->options = t->options;
        if (t->plugin_kind != PONS_KIND_TRANSFORM)
            continue;
        snprintf(step, sizeof step, "%s.NAME", t->name);
        add(to, step, "keys of each step besides its plugin's")->options = step_option_table;
    }
}

static pons_status add_plugin(option_tables *to, const plugin_file *file, pons_error *err)
{
    bool transform = file->kind == PONS_KIND_TRANSFORM;
    const plugin *p;

    if (plugin_load(file->kind, file->name, transform ? sizeof(pons_transform_operations) : 0,
                    NULL, &p, err) != PONS_OK)
        return err->status;
    option_table *o = add(to, section_of(p), p->descriptor->summary);
    o->plugin = p;
    o->options = p->descriptor->options;
    return PONS_OK;
}

pons_status option_tables_collect(option_tables *out, pons_error *err)
{
    plugin_file *files;
    int count, sections = 0;

    *out = (option_tables){ .item = NULL };
    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    while (section_tables[sections].name != NULL)
        sections++;
    out->item = calloc((size_t)(2 * sections + count), sizeof *out->item);
    if (out->item == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory");
    } else {
        add_sections(out);
        for (int i = 0; i < count && err->status == PONS_OK; i++)
            if (files[i].problem == NULL)
                add_plugin(out, &files[i], err);
    }
    plugin_list_free(files, count);
    return err->status;
}

void option_tables_free(option_tables *t)
{
    free(t->item);
}
