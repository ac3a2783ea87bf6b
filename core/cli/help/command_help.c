/*
 * command_help.c - pons help: commands, sections of the INI file, and plugins with their options.
 */
#include <stdio.h>
#include <string.h>

#include "base/text/quote.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/help/help_search.h"
#include "cli/help/help_transforms.h"
#include "cli/help/options_list.h"
#include "cli/manual/manual.h"
#include "cli/usage.h"
#include "config/sections.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

/* A shorter word is part of too many others to be looked for. */
enum { SEARCH_LETTERS = 4 };

typedef struct help_flags {
    bool list;
    const char *manual;
} help_flags;

static const pons_option flags[] = {
    PONS_FLAG(help_flags, list, "no",
              "Print every option instead, one a line: place, plugin, name, type and default, "
              "separated by tabs."),
    PONS_TEXT(help_flags, manual, "",
              "A folder: write man pages and completions of shells into it instead."),
    PONS_OPTIONS_END
};

static const section_table *find_part(const char *name, size_t size)
{
    for (const section_table *t = section_tables; t->name != NULL; t++)
        if (strlen(t->name) == size && strncmp(t->name, name, size) == 0)
            return t;
    return NULL;
}

static const section_table *find_section(const char *name)
{
    return find_part(name, strlen(name));
}

/* The kind of a topic, also of one like "preprocess.spacing", a section of the kind transform. */
static int kind_of_topic(const char *name)
{
    const section_table *t = find_section(name);
    pons_kind kind;

    if (t != NULL && t->plugin_kind != 0)
        return t->plugin_kind;
    return plugin_kind_named(name, &kind) ? (int)kind : 0;
}

static pons_status print_names(int kind, pons_error *err)
{
    plugin_file *files;
    int count;

    if (kind == PONS_KIND_TRANSFORM)
        return help_transforms_print(NULL, err);
    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    printf("\nPlugins:");
    for (int i = 0; i < count; i++)
        if ((int)files[i].kind == kind)
            quote_print(stdout, " %.80s", files[i].name);
    printf("\n");
    plugin_list_free(files, count);
    return PONS_OK;
}

static pons_status print_section(const section_table *t, pons_error *err)
{
    bool steps = t->plugin_kind == PONS_KIND_TRANSFORM;

    printf("[%s] - %s\n\n", t->name, t->summary);
    usage_print_options(stdout, t->options);
    if (steps) {
        printf("\nThe section of each step, [%s.NAME], besides the transform's own keys:\n\n",
               t->name);
        usage_print_options(stdout, step_option_table);
    }
    if (t->plugin_kind == 0)
        return PONS_OK;
    if (steps)
        help_transforms_print(t->name, err);
    else
        print_names(t->plugin_kind, err);
    if (err->status != PONS_OK)
        return err->status;
    printf("'pons help %s PLUGIN' shows the keys that a plugin adds.\n", t->name);
    return PONS_OK;
}

static pons_status print_plugin(int kind, const char *name, pons_error *err)
{
    const plugin *p;

    if (plugin_load((pons_kind)kind, name, 0, NULL, &p, err) != PONS_OK)
        return err->status;
    quote_print(stdout, "%s %s %s - %s\n\n", plugin_kind_name((pons_kind)kind), p->descriptor->name,
           p->descriptor->version, p->descriptor->summary);
    if (p->descriptor->options == NULL || p->descriptor->options->name == NULL)
        printf("It has no options.\n");
    else
        usage_print_options(stdout, p->descriptor->options);
    return PONS_OK;
}

static void print_topics(void)
{
    usage_print_all(stdout);
    printf("\nSections of the INI file; each is a topic of 'pons help', and so is train.epochs:\n");
    for (const section_table *t = section_tables; t->name != NULL; t++)
        printf("  %-16s %s\n", t->name, t->summary);
}

static const command *find_command(const char *first, const char *second)
{
    char name[128];

    snprintf(name, sizeof name, "%s%s%s", first, second != NULL ? " " : "",
             second != NULL ? second : "");
    for (const command *const *c = commands; *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

/* Print a key of every section that has it. Return the number of sections. */
static int print_key(const char *key)
{
    int printed = 0;

    for (const section_table *t = section_tables; t->name != NULL; t++) {
        const pons_option *row = option_find(t->options, key);
        if (row == NULL)
            continue;
        printf("%s[%s]\n\n", printed++ > 0 ? "\n" : "", t->name);
        usage_print_option(stdout, row);
    }
    return printed;
}

static pons_status refuse_topic(const char *topic, pons_error *err)
{
    text_guess guess = text_guess_for(topic);

    for (const command *const *c = commands; *c != NULL; c++)
        text_guess_try(&guess, (*c)->name);
    for (const section_table *t = section_tables; t->name != NULL; t++)
        text_guess_try(&guess, t->name);
    for (const section_table *t = section_tables; t->name != NULL; t++)
        for (const pons_option *o = t->options; o->name != NULL; o++)
            if (o->name[0] == topic[0]) /* a first letter is never misspelt: 'init' is not 'unit' */
                text_guess_try(&guess, o->name);
    if (guess.best != NULL)
        return pons_fail(err, PONS_USAGE, "no help on '%s'; did you mean '%s'?", topic, guess.best);
    return pons_fail(err, PONS_USAGE, "no help on '%s'\nhint: pons help", topic);
}

static pons_status refuse_key(const section_table *t, const char *key, pons_error *err)
{
    text_guess guess = text_guess_for(key);

    for (const section_table *other = section_tables;
         section_names_kind(t) == 0 && other->name != NULL; other++)
        if (option_find(other->options, key) != NULL && strcmp(key, "plugin") != 0)
            return pons_fail(err, PONS_USAGE, "no help on '%s.%s'; did you mean '%s.%s'?", t->name,
                             key, other->name, key);
    for (const pons_option *o = t->options; o->name != NULL; o++)
        text_guess_try(&guess, o->name);
    if (guess.best != NULL)
        return pons_fail(err, PONS_USAGE, "no help on '%s.%s'; did you mean '%s.%s'?", t->name,
                         key, t->name, guess.best);
    return pons_fail(err, PONS_USAGE, "no help on '%s.%s'\nhint: pons help %s%.80s", t->name, key,
                     t->name, t->plugin_kind != 0 ? " PLUGIN has the keys of a plugin" : "");
}

static bool is_plugin(const plugin_file *files, int count, int kind, const char *name)
{
    int i = 0;

    while (i < count && ((int)files[i].kind != kind || strcmp(files[i].name, name) != 0))
        i++;
    return i < count;
}

/* Print a key of a plugin, as "spacing.mm" of [preprocess] or "nnunet.heads" of [loss]. */
static pons_status print_plugin_key(const section_table *t, const char *part, pons_error *err)
{
    const char *dot = strchr(part, '.');
    char name[PONS_NAME_SIZE];
    const pons_option *row;
    const plugin *p;

    snprintf(name, sizeof name, "%.*s", (int)(dot - part), part);
    if (plugin_load((pons_kind)section_names_kind(t), name, 0, NULL, &p, err) != PONS_OK)
        return err->status;
    row = option_find(p->descriptor->options, dot + 1);
    if (row == NULL)
        return pons_fail(err, PONS_USAGE, "no help on '%s.%s'\nhint: pons help %s.%s", t->name,
                         part, t->name, name);
    printf("%s %s\n\n", plugin_kind_name((pons_kind)p->descriptor->kind), name);
    usage_print_option(stdout, row);
    return PONS_OK;
}

/* Print a topic like "train.epochs" or "train epochs", or a plugin like "preprocess.spacing". */
static pons_status print_part(const section_table *t, const char *key, pons_error *err)
{
    const pons_option *row = option_find(t->options, key);
    plugin_file *files;
    int count;

    if (row != NULL) {
        printf("[%s]\n\n", t->name);
        usage_print_option(stdout, row);
        return section_key_kind(t, key) != 0 ? print_names(section_key_kind(t, key), err) : PONS_OK;
    }
    if (strchr(key, '.') != NULL && section_names_kind(t) != 0)
        return print_plugin_key(t, key, err);
    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    if (is_plugin(files, count, section_names_kind(t), key))
        print_plugin(section_names_kind(t), key, err);
    else
        refuse_key(t, key, err);
    plugin_list_free(files, count);
    return err->status;
}

/* Print a topic that is the name of a plugin of any kind, or else all that mentions it. */
static pons_status print_named(const char *name, pons_error *err)
{
    plugin_file *files;
    int count, found = -1, others = 0;

    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++) {
        if (strcmp(files[i].name, name) != 0 || files[i].problem != NULL)
            continue;
        others += found >= 0;
        found = i;
    }
    if (others > 0)
        pons_fail(err, PONS_USAGE, "%d plugins have the name '%s'\nhint: pons help %s %s",
                  others + 1, name, plugin_kind_name(files[found].kind), name);
    else if (found >= 0)
        print_plugin((int)files[found].kind, name, err);
    else if (strlen(name) < SEARCH_LETTERS || help_search_print(name) == 0)
        refuse_topic(name, err);
    plugin_list_free(files, count);
    return err->status;
}

static pons_status print_topic(const char *first, const char *second, pons_error *err)
{
    const command *c = find_command(first, second);
    const section_table *t = find_section(first);
    const char *dot = strchr(first, '.');
    const section_table *whole = dot != NULL ? find_part(first, (size_t)(dot - first)) : NULL;
    int kind = kind_of_topic(first);

    /* 'train' and 'predict' each name a command and a section. */
    if (c != NULL)
        usage_print(stdout, c);
    if (c != NULL && t != NULL && second == NULL)
        printf("\n");
    if (c != NULL && (t == NULL || second != NULL))
        return PONS_OK;
    if (second != NULL && t != NULL && (kind == 0 || option_find(t->options, second) != NULL))
        return print_part(t, second, err);
    if (second != NULL && kind != 0)
        return print_plugin(kind, second, err);
    if (second != NULL && whole != NULL && section_names_kind(whole) != 0) {
        char part[2 * PONS_NAME_SIZE];
        snprintf(part, sizeof part, "%s.%s", dot + 1, second);
        return print_part(whole, part, err);
    }
    if (second != NULL)
        return refuse_topic(second, err);
    if (whole != NULL)
        return print_part(whole, dot + 1, err);
    if (t != NULL)
        return print_section(t, err);
    for (const command *const *g = commands; *g != NULL; g++) {
        if (strncmp((*g)->name, first, strlen(first)) == 0 && (*g)->name[strlen(first)] == ' ') {
            usage_print_group(stdout, first);
            return PONS_OK;
        }
    }
    if (kind == 0 && print_key(first) > 0)
        return PONS_OK;
    return kind != 0 ? print_names(kind, err) : print_named(first, err);
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const help_flags *f = given;

    if (f->list && f->manual != NULL)
        return pons_fail(err, PONS_USAGE, "--list and --manual exclude each other");
    if ((f->list || f->manual != NULL) && call->argument_count > 0)
        return pons_fail(err, PONS_USAGE, "--%s takes no topic, found '%s'",
                         f->list ? "list" : "manual", call->argument[0]);
    if (f->manual != NULL)
        return manual_write(f->manual, err);
    if (f->list)
        return options_list(err);
    if (call->argument_count == 0) {
        print_topics();
        return PONS_OK;
    }
    return print_topic(call->argument[0], call->argument_count > 1 ? call->argument[1] : NULL, err);
}

const command command_help = {
    "help", "commands, sections, plugins and their options", "[TOPIC [PLUGIN]]", flags,
    sizeof(help_flags), "", 0, 2, run
};
