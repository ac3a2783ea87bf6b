/*
 * command_plugin_new.c - pons plugin new: the source of a plugin, which trains as written.
 *
 * The sources are those of docs/kinds, under the name of the new plugin. A Makefile, an
 * experiment and a test are written beside them.
 */
#include "cli/plugin/command_plugin_new.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file/file.h"
#include "base/text/shell_word.h"
#include "cli/command.h"
#include "plugin/plugin_file.h"
#include "plugin/plugin_search.h"

/* A source for 'pons plugin new KIND'. The first of a kind is the plugin itself. */
typedef struct plugin_template {
    const char *wanted;        /* KIND                                                            */
    const char *kind, *name;   /* of the plugin that the source makes                             */
    const char *const *line;   /* ends with NULL                                                  */
} plugin_template;

#include "core/cli/plugin/plugin_templates.h"

typedef struct plugin_new_flags {
    const char *output;
} plugin_new_flags;

static const pons_option flags[] = {
    PONS_TEXT(plugin_new_flags, output, "", "The folder to write; not given: NAME."),
    PONS_OPTIONS_END
};

typedef struct job {
    const char *kind, *name, *folder;
    const plugin_template *first;
    arena *memory;
} job;

/* ---- names ----------------------------------------------------------------------------------- */

static const plugin_template *find_template(const char *kind)
{
    for (const plugin_template *t = templates; t->wanted != NULL; t++)
        if (strcmp(t->wanted, kind) == 0)
            return t;
    return NULL;
}

const char *plugin_new_kind(int number)
{
    for (const plugin_template *t = templates; t->wanted != NULL; t++)
        if (find_template(t->wanted) == t && number-- == 0)
            return t->wanted;
    return NULL;
}

/* The kinds that have a template: "loss, model, ...". */
static const char *list_kinds(arena *memory)
{
    const char *list = "";

    for (int i = 0; plugin_new_kind(i) != NULL; i++)
        list = arena_format(memory, "%s%s%s", list, i > 0 ? ", " : "", plugin_new_kind(i));
    return list;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether 'text' has the word 'name'. */
static bool has_word(const char *text, const char *name)
{
    size_t size = strlen(name);

    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name))
        if ((at == text || !in_word(at[-1])) && !in_word(at[size]))
            return true;
    return false;
}

/* Whether the struct of this name would have a name of C, or one that the sources use. */
static bool is_taken(const job *j)
{
    static const char words[] =
        "auto bool break case char complex const continue default do double else enum errno extern "
        "false float for goto if inline int long register restrict return short signed sizeof "
        "static struct switch true typedef union unsigned void volatile while "
        "abort abs exit exp floor free log main malloc pow printf sqrt strlen time";

    for (const plugin_template *t = templates; t->wanted != NULL; t++)
        for (const char *const *line = t->line; *line != NULL; line++)
            if (strcmp(t->wanted, j->kind) == 0 && strcmp(t->name, j->name) != 0
                && has_word(*line, j->name))
                return true;
    return has_word(words, j->name);
}

/* Refuse the name of a plugin that the new one would hide. */
static pons_status check_free(const job *j, pons_error *err)
{
    plugin_file *files;
    int count;

    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++)
        if (strcmp(files[i].name, j->name) == 0
            && strcmp(plugin_kind_name(files[i].kind), j->kind) == 0)
            pons_fail(err, PONS_USAGE, "there is a %s '%s' in '%s', expected another name", j->kind,
                      j->name, files[i].path);
    plugin_list_free(files, count);
    return err->status;
}

static pons_status check_names(job *j, pons_error *err)
{
    pons_kind kind;

    j->first = find_template(j->kind);
    if (j->first == NULL && plugin_kind_named(j->kind, &kind))
        return pons_fail(err, PONS_USAGE, "there is no template of kind '%s', expected one of %s\n"
                         "hint: the header pons/%s.h has the interface", j->kind,
                         list_kinds(j->memory), j->kind);
    if (j->first == NULL)
        return pons_fail(err, PONS_USAGE, "unknown kind '%s', expected one of %s", j->kind,
                         list_kinds(j->memory));
    if (!plugin_name_valid(j->name) || !islower((unsigned char)j->name[0])
        || strlen(j->name) + strlen("_net") >= PONS_NAME_SIZE)
        return pons_fail(err, PONS_USAGE, "the name '%s' cannot be a plugin's, expected a small "
                         "letter, then small letters, digits and '_', at most %d", j->name,
                         (int)(PONS_NAME_SIZE - 1 - strlen("_net")));
    if (is_taken(j))
        return pons_fail(err, PONS_USAGE, "'%s' is a word of the source, expected another name",
                         j->name);
    return check_free(j, err);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* 'text' with the new name in place of the template's, also where it begins a word as NAME_net. */
static const char *renamed(const job *j, const char *text)
{
    const char *old = j->first->name;
    size_t size = strlen(old);
    const char *out = "";

    for (const char *at = text; *at != '\0'; ) {
        const char *end = at;
        bool named;

        while (in_word(*end))
            end++;
        named = strncmp(at, old, size) == 0 && (end == at + size || (end > at && at[size] == '_'));
        end += end == at;
        out = named ? arena_format(j->memory, "%s%s%.*s", out, j->name, (int)(end - at - (int)size),
                                   at + size)
                    : arena_format(j->memory, "%s%.*s", out, (int)(end - at), at);
        at = end;
    }
    return out;
}

static void print_source(FILE *f, const job *j, const plugin_template *t)
{
    for (const char *const *line = t->line; *line != NULL; line++)
        fprintf(f, "%s\n", renamed(j, *line));
}

/* ---- the files beside them ------------------------------------------------------------------- */

/* KIND/NAME of the plugin that 't' makes. */
static const char *path_of(const job *j, const plugin_template *t)
{
    return arena_format(j->memory, "%s/%s", t->kind, renamed(j, t->name));
}

static bool is_wanted(const job *j, const plugin_template *t)
{
    return strcmp(t->wanted, j->kind) == 0;
}

static void print_makefile(FILE *f, const job *j)
{
    fprintf(f, "# Build plugins with the installed pons, which pkg-config finds.\n"
            "CFLAGS = -std=c11 -O2 -fPIC -Wall -Wextra $(shell pkg-config --cflags pons)\n"
            "LDLIBS = $(shell pkg-config --libs pons) -lm\n\nall:");
    for (const plugin_template *t = templates; t->wanted != NULL; t++)
        if (is_wanted(j, t))
            fprintf(f, " plugins/%s.so", path_of(j, t));
    fprintf(f, "\n\n");
    for (const plugin_template *t = templates; t->wanted != NULL; t++)
        if (is_wanted(j, t))
            fprintf(f, "plugins/%s.so: %s.c\n\tmkdir -p $(@D)\n"
                    "\t$(CC) $(CFLAGS) -shared -o $@ $< $(LDFLAGS) $(LDLIBS)\n\n", path_of(j, t),
                    renamed(j, t->name));
    fprintf(f, "# The conformance test, and a training on a phantom.\ncheck: all\n\tsh check.sh\n\n"
            "clean:\n\trm -rf plugins phantom runs\n\n.PHONY: all check clean\n");
}

static void print_test(FILE *f, const job *j)
{
    fprintf(f, "#!/bin/sh\n"
            "# The plugin passes the conformance test, and the loss falls in a training with it.\n"
            "set -eu\ncd \"$(dirname \"$0\")\"\n"
            "export PONS_PLUGIN_PATH=\"$PWD/plugins${PONS_PLUGIN_PATH:+:$PONS_PLUGIN_PATH}\"\n");
    for (const plugin_template *t = templates; t->wanted != NULL; t++)
        if (is_wanted(j, t))
            fprintf(f, "pons plugin check plugins/%s.so\n", path_of(j, t));
    fprintf(f, "[ -d phantom ] || pons data phantom -o phantom --cases 3 --extent 16,16,16\n"
            "pons train --fresh %s.ini\n"
            "awk -F'\"loss\":' '$2 { split($2, v, \",\"); if (!first) first = v[1]; last = v[1] }\n"
            "    END { print \"loss \" first \" to \" last; exit !(last < first) }' "
            "runs/%s/metrics.jsonl\n", j->name, j->name);
}

/* A line of the experiment. A kind of plugin replaces 'value', and ends what belongs to it. */
typedef struct ini_row {
    const char *section, *key, *value;
    const char *kind;          /* the template that has 'own' in its place, or NULL               */
    const char *own;           /* NULL: the line is left out; NAME is the template's              */
} ini_row;

static void print_experiment(FILE *f, const job *j)
{
    const char *name = j->name, *net = arena_format(j->memory, "%s_net", name);
    const char *model = strcmp(j->kind, "op") == 0 ? "op" : "model";
    const ini_row rows[] = {
        { "experiment", "name", name, NULL, NULL },
        { "data", "source", "phantom", NULL, NULL },
        { "data", "validation", "last:1", NULL, NULL },
        { "preprocess", "steps", "normalize", "transform",
          arena_format(j->memory, "normalize %s", name) },
        { "patch", "extent", "16 16 16", NULL, NULL },
        { "model", "plugin", "unet", model, model[0] == 'o' ? net : name },
        { "model", "channels", "4 8", model, NULL },
        { "model", "strides", "2", model, NULL },
        { "loss", "plugin", "dice_ce", "loss", name },
        { "optimizer", "plugin", "adam", "optimizer", name },
        { "optimizer", "lr", "1e-2", NULL, NULL },
        { "schedule", "plugin", "constant", "schedule", name },
        { "train", "steps", "20", NULL, NULL },
        { "log", "sinks", "csv", "sink", arena_format(j->memory, "csv %s", name) }
    };
    const char *section = "";

    fprintf(f, "; Train with the %s %s on a phantom.\n", j->kind, name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool own = rows[i].kind != NULL && strcmp(rows[i].kind, j->kind) == 0;
        const char *value = own ? rows[i].own : rows[i].value;

        if (value == NULL)
            continue;
        if (strcmp(section, rows[i].section) != 0)
            fprintf(f, "[%s]\n", rows[i].section);
        section = rows[i].section;
        fprintf(f, "%s = %s\n", rows[i].key, value);
    }
}

/* ---- write ----------------------------------------------------------------------------------- */

typedef struct new_file {
    const char *name;
    const plugin_template *source;               /* NULL: 'print' writes it                       */
    void (*print)(FILE *f, const job *j);
} new_file;

static pons_status write_file(const job *j, const new_file *n, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, arena_format(j->memory, "%s/%s", j->folder, n->name), err) != PONS_OK)
        return err->status;
    if (n->source != NULL)
        print_source(f.file, j, n->source);
    else
        n->print(f.file, j);
    return safe_file_commit(&f, err);
}

static pons_status write_files(const job *j, pons_error *err)
{
    const new_file beside[] = {
        { arena_format(j->memory, "%s.ini", j->name), NULL, print_experiment },
        { "Makefile", NULL, print_makefile }, { "check.sh", NULL, print_test }
    };

    if (mkdir(j->folder, 0777) != 0 && errno == EEXIST)
        return pons_fail(err, PONS_USAGE, "'%s' exists, expected a new folder\n"
                         "hint: -o FOLDER names another", j->folder);
    if (folder_make(j->folder, err) != PONS_OK)
        return err->status;
    for (const plugin_template *t = templates; t->wanted != NULL && err->status == PONS_OK; t++)
        if (is_wanted(j, t))
            write_file(j, &(new_file){ arena_format(j->memory, "%s.c", renamed(j, t->name)), t,
                                       NULL }, err);
    for (size_t i = 0; i < sizeof beside / sizeof *beside && err->status == PONS_OK; i++)
        write_file(j, &beside[i], err);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const plugin_new_flags *f = given;
    job j = { .kind = call->argument[0], .name = call->argument[1], .memory = arena_new() };
    char word[sizeof err->text];

    if (j.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    j.folder = f->output != NULL && f->output[0] != '\0' ? f->output : j.name;
    if (check_names(&j, err) == PONS_OK && write_files(&j, err) == PONS_OK)
        log_line(call->log, "wrote %s/%s.c, %s.ini, Makefile and check.sh\nhint: make -C %s check",
                 j.folder, j.name, j.name, shell_word_bare(word, sizeof word, j.folder));
    arena_free(j.memory);
    return err->status;
}

const command command_plugin_new = {
    "plugin new", "write the source of a plugin, which trains as it is", "KIND NAME", flags,
    sizeof(plugin_new_flags), "o=output", 2, 2, run
};
