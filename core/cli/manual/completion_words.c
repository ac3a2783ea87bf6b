/*
 * completion_words.c - the words that a command line may have at a place.
 */
#include "cli/manual/completion_words.h"

#include <string.h>

#include "cli/command_text.h"
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

bool words_begins_group(const command *const *c, char *group, size_t size)
{
    size_t length = strcspn((*c)->name, " ");

    snprintf(group, size, "%.*s", (int)length, (*c)->name);
    return (*c)->name[length] == ' ' && !is_repeated(c, length);
}

void words_groups(FILE *to, void (*each)(const void *context, FILE *to, const char *group),
                  const void *context)
{
    for (const command *const *c = commands; *c != NULL; c++) {
        char group[64];
        if (words_begins_group(c, group, sizeof group))
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

void words_each_command(FILE *to, words_each *each, const void *context)
{
    for (const command *const *c = commands; *c != NULL; c++) {
        char group[64];
        if (words_begins_group(c, group, sizeof group))
            each(context, to, group, "several commands");
        else if (strchr((*c)->name, ' ') == NULL)
            each(context, to, (*c)->name, (*c)->summary);
    }
}

void words_each_flag(FILE *to, const command *c, words_each *each, const void *context)
{
    char name[64];

    for (const pons_option *o = c->flags; o != NULL && o->name != NULL; o++)
        each(context, to, usage_flag(o, name, sizeof name), o->help);
    for (const usage_row *r = usage_common_flags; r->name != NULL; r++) {
        const char *dashes = strstr(r->name, "--");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(dashes, " "), dashes);
        if (usage_has_common(c, r->name))
            each(context, to, name, r->text);
    }
}

static void put_word(const void *context, FILE *to, const char *word, const char *help)
{
    fprintf(to, " %s", word);
}

void words_flags(FILE *to, const command *c)
{
    words_each_flag(to, c, put_word, NULL);
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

static void put_metrics(FILE *to)
{
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        fprintf(to, " %s", metric_facts[kind].name);
    fputs(" froc", to);
}

/*
 * Print the plugins whose keys the section 'place' has, or that a list in it may name; NULL: all of
 * the kind.
 */
static bool put_plugins(FILE *to, const option_tables *tables, const char *place, pons_kind kind)
{
    bool found = false;

    for (int i = 0; i < tables->count; i++) {
        const option_table *t = &tables->item[i];
        if (t->plugin == NULL || t->plugin->descriptor->kind != (uint32_t)kind
            || (place != NULL && kind == PONS_KIND_TRANSFORM && strcmp(t->place, place) != 0))
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

/* ---- arguments and flags --------------------------------------------------------------------- */

static bool is_kind(int kind)
{
    pons_kind found;

    return plugin_kind_named(plugin_kind_name((pons_kind)kind), &found);
}

static void put_shown(FILE *to, const option_tables *tables)
{
    for (int kind = 1; is_kind(kind); kind++)
        fprintf(to, " %s", plugin_kind_name((pons_kind)kind));
    put_all_plugins(to, tables);
}

static const struct {
    const char *command;
    void (*put)(FILE *to, const option_tables *tables);
} first_arguments[] = {
    { "help", put_topics }, { "plugin new", put_kinds }, { "plugin show", put_shown }
};

/* The files that an argument or a value of this name may be. */
static const char *files_of(const char *name)
{
    static const struct { const char *begin, *files; } rows[] = {
        { "FILE.ini | RUN", "@ini @run" }, { "FILE.ini | DATASET", "@file" },
        { "FILE.ini", "@ini" }, { "FILE.so", "@so" }, { "RUN", "@run" }, { "DIR", "@dir" },
        { "FILE", "@file" }, { "OUT", "@file" }, { "MODEL", "@file" }, { "PATH", "@file" },
        { "IMAGE", "@file" }, { "DATASET", "@file" }, { "WEIGHTS", "@file" }, { "-- ", "@file" }
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(name, rows[i].begin, strlen(rows[i].begin)) == 0)
            return rows[i].files;
    return strcmp(name, "A") == 0 || strcmp(name, "B") == 0 ? "@file" : "@none";
}

void words_of_argument(FILE *to, const option_tables *tables, const command *c, int number)
{
    for (size_t i = 0; number == 0 && i < sizeof first_arguments / sizeof *first_arguments; i++)
        if (strcmp(first_arguments[i].command, c->name) == 0) {
            first_arguments[i].put(to, tables);
            return;
        }
    fprintf(to, " %s", files_of(command_text_of(c)->arguments[number].name));
}

void words_of_flag(FILE *to, const command *c, const pons_option *o)
{
    char name[256];

    if (strcmp(c->name, "evaluate") == 0 && strcmp(o->name, "metrics") == 0)
        put_metrics(to);
    else if (!words_of_choice(to, o))
        fprintf(to, " %s", files_of(flag_value_name(c, o, name, sizeof name)));
}

/* A section or a kind that has plugins, and the commands that take one of them. */
typedef struct follower {
    const char *command, *name;
    const section_table *section;
    int kind;
} follower;

/* The followers by number: sections of help, then the kinds of help and of plugin show. */
static bool find_follower(int number, follower *out)
{
    const section_table *t = section_tables;
    int sections = 0, kinds = 0;

    while (t[sections].name != NULL)
        sections++;
    while (is_kind(kinds + 1))
        kinds++;
    if (number < sections)
        *out = (follower){ "help", t[number].name, &t[number], section_names_kind(&t[number]) };
    else if (number < sections + 2 * kinds)
        *out = (follower){ number < sections + kinds ? "help" : "plugin show", NULL, NULL,
                           (number - sections) % kinds + 1 };
    else
        return false;
    if (out->name == NULL)
        out->name = plugin_kind_name((pons_kind)out->kind);
    return true;
}

/* A kind of 'help' that has the name of a section, whose row has its plugins. */
static bool is_repeated_follower(const follower *f)
{
    const section_table *t = section_tables;

    while (t->name != NULL && strcmp(t->name, f->name) != 0)
        t++;
    return f->section == NULL && t->name != NULL && strcmp(f->command, "help") == 0;
}

const char *words_follow(int number, char *place, size_t size)
{
    follower f;

    if (!find_follower(number, &f))
        return NULL;
    snprintf(place, size, "%s %s", f.command, f.name);
    return place;
}

void words_of_follow(FILE *to, const option_tables *tables, int number)
{
    follower f;

    if (!find_follower(number, &f) || is_repeated_follower(&f))
        return;
    for (const pons_option *o = f.section != NULL ? f.section->options : NULL;
         o != NULL && o->name != NULL; o++)
        fprintf(to, " %s", o->name);
    if (f.kind != 0)
        put_plugins(to, tables, f.section != NULL ? f.name : NULL, (pons_kind)f.kind);
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
