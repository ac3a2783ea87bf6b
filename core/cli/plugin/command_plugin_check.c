/*
 * command_plugin_check.c - pons plugin check: the conformance test.
 *
 * Loading verifies the file, the note, the descriptor and the option table. Each kind then has
 * checks of its own.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/subprocess.h"
#include "base/text/shell_word.h"
#include "cli/command.h"
#include "cli/plugin/plugin_check.h"
#include "plugin/plugin_search.h"

/* A shorter stage shows no progress. */
static const double SILENT_SECONDS = 1;

typedef struct plugin_check_flags {
    int64_t timeout;
} plugin_check_flags;

static const pons_option flags[] = {
    PONS_INTEGER(plugin_check_flags, timeout, "120", 1, 86400,
                 "Seconds that the loading and the operations may compute each; a busy machine "
                 "gives them more."),
    PONS_OPTIONS_END
};

/* Refuse the name of a plugin, and name its file. */
static pons_status refuse_name(const char *name, pons_error *err)
{
    char word[sizeof err->text], file[sizeof err->text];
    plugin_file *files;
    int count;

    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++)
        if (strcmp(files[i].name, name) == 0)
            pons_fail(err, PONS_PLUGIN, "there is no file '%s'\nhint: it takes a file: pons plugin "
                      "check %.2000s", name, shell_word_bare(word, sizeof word, files[i].path));
    plugin_list_free(files, count);
    if (strchr(name, '.') != NULL)
        return pons_fail(err, PONS_PLUGIN, "there is no file '%s'", name);
    snprintf(file, sizeof file, "./%s.so", name);
    return pons_fail(err, PONS_PLUGIN, "there is no file '%s'\nhint: it takes a file, as in pons "
                     "plugin check %.2000s", name, shell_word_bare(word, sizeof word, file));
}

/* Check the name of the file, by which a run finds the plugin. No code of the file has run. */
static pons_status check_file_name(const char *path, pons_error *err)
{
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    plugin_file p;

    if (plugin_verify(path, &p, err) != PONS_OK)
        return err->status;
    if (strncmp(file, p.name, strlen(p.name)) != 0 || strcmp(file + strlen(p.name), ".so") != 0)
        pons_fail(err, PONS_PLUGIN, "'%s' holds %s '%s', expected the file name '%s.so'", path,
                  plugin_kind_name(p.kind), p.name, p.name);
    plugin_file_clear(&p);
    return err->status;
}

/* Refuse --set for a plugin without options. */
static pons_status check_set(const plugin *p, const invocation *call, pons_error *err)
{
    if (p->descriptor->options != NULL || call->set_count == 0)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "'--set %s': %s '%s' has no options", call->set[0],
                     plugin_kind_name((pons_kind)p->descriptor->kind), p->descriptor->name);
}

/* Erase the line of progress, which the other process has drawn on a terminal. */
static void erase_waiting(const invocation *call)
{
    call->log->shown = 1;
    log_block(call->log, "");
}

/* Print what holds at once, since the next stage may end the process. */
static void print_passed(const invocation *call, const plugin *p, const char *text)
{
    erase_waiting(call);
    printf("%s %s: %s\n", plugin_kind_name((pons_kind)p->descriptor->kind), p->descriptor->name,
           text);
    fflush(stdout);
}

static pons_status check_stages(const invocation *call, subprocess_child *child, pons_error *err)
{
    const plugin *p;
    const plugin_check *check;

    subprocess_stage(child, "its loading");
    if (plugin_load_file(call->argument[0], 0, &p, err) != PONS_OK ||
        check_set(p, call, err) != PONS_OK)
        return err->status;
    print_passed(call, p, "file, note, descriptor and options are in order");
    for (check = plugin_checks; check->run != NULL; check++) {
        if (check->kind != (int)p->descriptor->kind)
            continue;
        subprocess_stage(child, "%s of %s %s", check->operations,
                         plugin_kind_name((pons_kind)p->descriptor->kind), p->descriptor->name);
        if (check->run(p, call, err) != PONS_OK)
            return err->status;
        print_passed(call, p, check->passed);
    }
    return PONS_OK;
}

/* Check a plugin in a child process, because a faulty plugin may end its process. */
static pons_status check_plugin(const void *context, subprocess_child *child, pons_error *err)
{
    const invocation *call = context;

    check_stages(call, child, err);
    subprocess_stage(child, "%s", "");
    erase_waiting(call);
    return err->status;
}

static void show_waiting(const void *context, const char *stage, double seconds)
{
    const invocation *call = context;

    if (stage[0] != '\0' && seconds >= SILENT_SECONDS)
        log_progress(call->log, "checking %s, %.0f s", stage, seconds);
}

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    const plugin_check_flags *f = flags;
    const subprocess_terms terms = { call->argument[0], (int)f->timeout, false, show_waiting };

    if (strchr(call->argument[0], '/') == NULL && access(call->argument[0], F_OK) != 0)
        return refuse_name(call->argument[0], err);
    return check_file_name(call->argument[0], err) == PONS_OK
           ? subprocess_run(check_plugin, call, &terms, err) : err->status;
}

const command command_plugin_check = {
    "plugin check", "the conformance test of a plugin", "FILE.so", flags,
    sizeof(plugin_check_flags), "", 1, 1, run
};
