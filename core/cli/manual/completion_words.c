/*
 * completion_words.c - the words that a command line may have at a place.
 */
#include "cli/manual/completion_words.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/plugin/command_plugin_new.h"
#include "config/sections.h"
#include "metric/metric.h"

/* ---- commands and flags ---------------------------------------------------------------------- */

/* Whether an earlier command has the same first word, which is of 'size' bytes. */
static bool is_repeated(const command *const *c, size_t size)
{
    for (const command *const *before = commands; before < c; before++)
        if (strncmp((*before)->name, (*c)->name, size) == 0 && (*before)->name[size] == ' ')
            return true;
    return false;
}

void words_commands(FILE *to)
{
    for (const command *const *c = commands; *c != NULL; c++) {
        size_t size = strcspn((*c)->name, " ");
        if (!is_repeated(c, size))
            fprintf(to, " %.*s", (int)size, (*c)->name);
    }
}

void words_groups(FILE *to, void (*each)(const void *context, FILE *to, const char *group),
                  const void *context)
{
    for (const command *const *c = commands; *c != NULL; c++) {
        char group[64];
        size_t size = strcspn((*c)->name, " ");
        snprintf(group, sizeof group, "%.*s", (int)size, (*c)->name);
        if ((*c)->name[size] == ' ' && !is_repeated(c, size))
            each(context, to, group);
    }
}

void words_of_group(FILE *to, const char *group)
{
    size_t size = strlen(group);

    for (const command *const *c = commands; *c != NULL; c++)
        if (strncmp((*c)->name, group, size) == 0 && (*c)->name[size] == ' ')
            fprintf(to, " %s", (*c)->name + size + 1);
}

static void put_flag(FILE *to, const char *name)
{
    fputs(" --", to);
    for (; *name != '\0'; name++)
        fputc(*name == '_' ? '-' : *name, to);
}

void words_flags(FILE *to, const command *c)
{
    const char *name;
    bool valued;

    for (const pons_option *o = c->flags; o != NULL && o->name != NULL; o++)
        put_flag(to, o->name);
    for (int i = 0; (name = arguments_common(i, &valued)) != NULL; i++)
        put_flag(to, name);
}

/* ---- keys and values ------------------------------------------------------------------------- */

const char *words_section(const option_table *t, char *text, size_t size)
{
    const char *dot = strchr(t->place, '.');

    if (t->plugin != NULL && t->plugin->descriptor->kind == PONS_KIND_TRANSFORM)
        snprintf(text, size, "%s.%s", t->place, t->plugin->descriptor->name);
    else if (t->plugin != NULL && dot != NULL)
        snprintf(text, size, "%.*s.%s", (int)(dot - t->place), t->place,
                 t->plugin->descriptor->name);
    else
        snprintf(text, size, "%s", t->place);
    return text;
}

void words_keys(FILE *to, const option_tables *tables)
{
    for (int i = 0; i < tables->count; i++) {
        const option_table *t = &tables->item[i];
        char section[128];
        if (t->plugin == NULL && strchr(t->place, '.') != NULL)
            continue;
        for (const pons_option *o = t->options; o != NULL && o->name != NULL; o++)
            fprintf(to, " %s.%s=", words_section(t, section, sizeof section), o->name);
    }
}

/* Whether an earlier table is of a plugin of the same name. */
static bool is_named_before(const option_tables *tables, int number)
{
    for (int i = 0; i < number; i++)
        if (tables->item[i].plugin != NULL
            && strcmp(tables->item[i].plugin->descriptor->name,
                      tables->item[number].plugin->descriptor->name) == 0)
            return true;
    return false;
}

static void put_all_plugins(FILE *to, const option_tables *tables)
{
    for (int i = 0; i < tables->count; i++)
        if (tables->item[i].plugin != NULL && !is_named_before(tables, i))
            fprintf(to, " %s", tables->item[i].plugin->descriptor->name);
}

static void put_topics(FILE *to, const option_tables *tables)
{
    words_commands(to);
    for (const section_table *s = section_tables; s->name != NULL; s++)
        fprintf(to, " %s", s->name);
    put_all_plugins(to, tables);
}

static void put_kinds(FILE *to, const option_tables *tables)
{
    for (int i = 0; plugin_new_kind(i) != NULL; i++)
        fprintf(to, " %s", plugin_new_kind(i));
}

static void put_metrics(FILE *to, const option_tables *tables)
{
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        fprintf(to, " %s", metric_facts[kind].name);
    fputs(" froc", to);
}

static const struct {
    const char *place;
    void (*put)(FILE *to, const option_tables *tables);
} arguments[] = {
    { "help", put_topics }, { "plugin new", put_kinds }, { "plugin show", put_all_plugins },
    { "evaluate --metrics", put_metrics }
};

const char *words_argument(int number)
{
    return number < (int)(sizeof arguments / sizeof *arguments) ? arguments[number].place : NULL;
}

void words_of_argument(FILE *to, const option_tables *tables, int number)
{
    arguments[number].put(to, tables);
}

/* Print the plugins whose keys 'place' has, or that a list in it may name. */
static bool put_plugins(FILE *to, const option_tables *tables, const char *place, pons_kind kind)
{
    bool found = false;

    for (int i = 0; i < tables->count; i++) {
        const option_table *t = &tables->item[i];
        if (t->plugin == NULL || t->plugin->descriptor->kind != (uint32_t)kind
            || (kind == PONS_KIND_TRANSFORM && strcmp(t->place, place) != 0))
            continue;
        fprintf(to, " %s", t->plugin->descriptor->name);
        found = true;
    }
    return found;
}

bool words_of_choice(FILE *to, const pons_option *o)
{
    if (o->type == PONS_OPTION_FLAG) {
        fputs(" yes no", to);
        return true;
    }
    if (o->choices == NULL)
        return false;
    for (const char *const *word = o->choices; *word != NULL; word++)
        fprintf(to, " %s", *word);
    return true;
}

bool words_values(FILE *to, const option_tables *tables, const option_table *t,
                  const pons_option *o)
{
    for (const section_table *s = section_tables; s->name != NULL; s++)
        if (strcmp(s->name, t->place) == 0 && t->plugin == NULL
            && section_key_kind(s, o->name) != 0)
            return put_plugins(to, tables, s->name, (pons_kind)section_key_kind(s, o->name));
    return words_of_choice(to, o);
}
