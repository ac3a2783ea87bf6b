/*
 * pons_main.c - the command line: find the command, read its flags, run it, report its error.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pons/pons.h>

#include "base/system/cxx_memory.h"
#include "base/terminal.h"
#include "base/text/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/usage.h"
#include "cluster/watchdog/status_page.h"
#include "plugin/plugin_load.h"

const char *pons_version(void)
{
    return PACKAGE_VERSION;
}

void pons_process_prepare(void)
{
    environment_prepare();
}

/* ---- find ------------------------------------------------------------------------------------ */

/* Find a command. A name of two words precedes one of one word. *used is its number of words. */
static const command *find_command(int count, char **word, int *used)
{
    char two[128] = "";

    if (count > 1)
        snprintf(two, sizeof two, "%s %s", word[0], word[1]);
    for (const command *const *c = commands; *c != NULL; c++) {
        if (strcmp((*c)->name, two) == 0) {
            *used = 2;
            return *c;
        }
    }
    for (const command *const *c = commands; *c != NULL; c++) {
        if (strcmp((*c)->name, word[0]) == 0) {
            *used = 1;
            return *c;
        }
    }
    return NULL;
}

static bool is_group(const char *word)
{
    size_t size = strlen(word);

    for (const command *const *c = commands; *c != NULL; c++)
        if (strncmp((*c)->name, word, size) == 0 && (*c)->name[size] == ' ')
            return true;
    return false;
}

/* Commands of a group share their first word, so only the second is compared. */
static pons_status refuse_in_group(const char *group, const char *word, pons_error *err)
{
    size_t size = strlen(group);
    text_guess guess = text_guess_for(word);

    for (const command *const *c = commands; *c != NULL; c++)
        if (strncmp((*c)->name, group, size) == 0 && (*c)->name[size] == ' ')
            text_guess_try(&guess, (*c)->name + size + 1);
    if (guess.best != NULL)
        return pons_fail(err, PONS_USAGE, "unknown command '%s %s'; did you mean '%s %s'?", group,
                         word, group, guess.best);
    return pons_fail(err, PONS_USAGE, "unknown command '%s %s'\nhint: pons %s --help", group, word,
                     group);
}

static pons_status refuse_command(int count, char **word, pons_error *err)
{
    text_guess guess = text_guess_for(word[0]);

    if (is_group(word[0]) && count > 1)
        return refuse_in_group(word[0], word[1], err);
    if (is_group(word[0])) {
        usage_print_group(stderr, word[0]);
        return pons_fail(err, PONS_USAGE, "'pons %s' needs a command", word[0]);
    }
    if (word[0][0] == '-')
        return pons_fail(err, PONS_USAGE, "'%s' stands before the command, expected it behind\n"
                         "hint: pons --help", word[0]);
    for (const command *const *c = commands; *c != NULL; c++)
        text_guess_try(&guess, (*c)->name);
    if (guess.best != NULL)
        return pons_fail(err, PONS_USAGE, "unknown command '%s'; did you mean '%s'?", word[0],
                         guess.best);
    return pons_fail(err, PONS_USAGE, "unknown command '%s'\nhint: pons --help", word[0]);
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status run_read(const command *c, invocation *call, void *flags, int count, char **word,
                            pons_error *err)
{
    if (arguments_read(c, count, word, call, flags, err) != PONS_OK)
        return err->status;
    if (call->help) {
        usage_print(stdout, c);
        return PONS_OK;
    }
    pons_status status = c->run(call, flags, err);
    plugin_warn_hidden(call->log);
    return status;
}

static pons_status run_command(const command *c, int count, char **word, logger *log,
                               pons_error *err)
{
    invocation call = { .command = c, .word_count = count, .word = word, .log = log };
    void *flags = calloc(1, c->flags_size + 1);
    pons_status status;

    call.argument = calloc((size_t)count + 1, sizeof *call.argument);
    call.set = calloc((size_t)count + 1, sizeof *call.set);
    if (flags == NULL || call.argument == NULL || call.set == NULL)
        status = pons_fail(err, PONS_DEVICE, "out of memory");
    else
        status = config_open(NULL, 0, NULL, &call.values, err);
    if (status == PONS_OK)
        status = run_read(c, &call, flags, count, word, err);
    config_close(call.values);
    free(call.given);
    free(call.argument);
    free(call.set);
    free(flags);
    return status;
}

static pons_status dispatch(int count, char **word, logger *log, pons_error *err)
{
    const command *c;
    int used;

    if (count == 0) {
        usage_print_all(stderr);
        return pons_fail(err, PONS_USAGE, "no command is given");
    }
    if (strcmp(word[0], "--help") == 0 || strcmp(word[0], "-h") == 0) {
        usage_print_all(stdout);
        return PONS_OK;
    }
    if (strcmp(word[0], "--version") == 0) {
        printf("pons %s\n", pons_version());
        return PONS_OK;
    }
    if (count == 2 && is_group(word[0])
        && (strcmp(word[1], "--help") == 0 || strcmp(word[1], "-h") == 0)) {
        usage_print_group(stdout, word[0]);
        return PONS_OK;
    }
    c = find_command(count, word, &used);
    if (c == NULL)
        return refuse_command(count, word, err);
    return run_command(c, count - used, word + used, log, err);
}

/* ---- main ------------------------------------------------------------------------------------ */

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && *value != '\0';
}

/* NO_COLOR wins over CLICOLOR_FORCE, which also colours what goes to a file or a pipe. */
static bool color_wanted(void)
{
    bool forced = is_set("CLICOLOR_FORCE") && strcmp(getenv("CLICOLOR_FORCE"), "0") != 0;

    return !is_set("NO_COLOR") && (forced || terminal_has_sequences(stderr));
}

static pons_status flush_output(pons_status status, pons_error *err)
{
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == PONS_OK)
        return pons_fail(err, PONS_FAILURE, "cannot write to the standard output: %s",
                         errno != 0 ? strerror(errno) : "it was closed");
    return status;
}

/* Report the end. A rank of a launcher prints nothing; the launcher prints the root cause once. */
static void say_end(logger *log, pons_status status, const pons_error *err)
{
    const char *text = status == PONS_OK ? "" : err->status != PONS_OK ? err->text
                                                                      : "something went wrong";
    status_page_slot *seat = status_page_attach(getenv(STATUS_PAGE_VARIABLE));

    status_page_report(seat, (int)status, text);
    if (status == PONS_INTERRUPTED && seat == NULL)
        log_interruption(log, text);
    else if (status != PONS_OK && seat == NULL)
        log_error(log, text);
    status_page_detach(seat);
}

/* Not inlined into pons_main, because its frame exceeds a stack that environment_check refuses. */
__attribute__((noinline)) static pons_status run_program(int argc, char **argv)
{
    logger log = { .terminal = stderr, .level = LOG_NORMAL, .color = color_wanted(),
                   .live = terminal_has_sequences(stderr) };
    pons_error err = PONS_ERROR_INIT;
    pons_status status = dispatch(argc - 1, argv + 1, &log, &err);

    status = flush_output(status, &err);
    say_end(&log, status, &err);
    return status;
}

int pons_main(int argc, char **argv)
{
    environment_prepare();
    cxx_memory_own_process();
    return environment_check() != PONS_OK ? PONS_DEVICE : (int)run_program(argc, argv);
}
