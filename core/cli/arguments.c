/*
 * arguments.c - the words of a command line: flags by a table, the common flags, arguments.
 */
#include "cli/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "cli/command.h"

enum { FLAG_SIZE = 64, LINE_SIZE = LIST_HINT_SIZE / 2 };

typedef struct words {
    const command *command;
    int count, next;
    char **word;
    invocation *call;
    void *flags;
    int list_end; /* index behind the value of the last flag with a list, or of the last --set    */
    int stray;    /* index of the first argument at 'list_end'; 0: none                           */
    pons_error *err;
} words;

/* ---- common flags ---------------------------------------------------------------------------- */

static pons_status take_set(words *w, const char *value)
{
    w->call->set[w->call->set_count++] = value;
    return PONS_OK;
}

static pons_status take_verbose(words *w, const char *value)
{
    w->call->log->level = LOG_VERBOSE;
    return PONS_OK;
}

static pons_status take_quiet(words *w, const char *value)
{
    w->call->log->level = LOG_QUIET;
    return PONS_OK;
}

static pons_status take_color(words *w, const char *value)
{
    if (strcmp(value, "always") == 0)
        w->call->log->color = true;
    else if (strcmp(value, "never") == 0)
        w->call->log->color = false;
    else if (strcmp(value, "auto") != 0)
        return pons_fail(w->err, PONS_USAGE, "--color '%s': expected auto, always or never", value);
    return PONS_OK;
}

static pons_status take_debug(words *w, const char *value)
{
    w->call->debug = true;
    return PONS_OK;
}

static pons_status take_help(words *w, const char *value)
{
    w->call->help = true;
    return PONS_OK;
}

static const struct common {
    const char *name;
    char letter;
    bool valued;
    pons_status (*take)(words *w, const char *value);
} common[] = {
    { "set", 0, true, take_set },     { "verbose", 'v', false, take_verbose },
    { "quiet", 'q', false, take_quiet }, { "color", 0, true, take_color },
    { "debug", 0, false, take_debug },   { "help", 'h', false, take_help },
};
enum { COMMON_COUNT = sizeof common / sizeof *common };

const char *arguments_common(int i, bool *valued)
{
    if (i >= COMMON_COUNT)
        return NULL;
    *valued = common[i].valued;
    return common[i].name;
}

static const struct common *find_common(const char *name)
{
    for (int i = 0; i < COMMON_COUNT; i++)
        if (strcmp(common[i].name, name) == 0 ||
            (common[i].letter != 0 && name[0] == common[i].letter && name[1] == '\0'))
            return &common[i];
    return NULL;
}

/* ---- flags of the command -------------------------------------------------------------------- */

/* Compare two names. "node-rank" and "node_rank" are equal. */
static bool same_name(const char *typed, const char *name)
{
    for (; *typed != '\0' && *name != '\0'; typed++, name++)
        if (*typed != *name && !(*typed == '-' && *name == '_'))
            return false;
    return *typed == *name;
}

static const pons_option *find_flag(const command *c, const char *name)
{
    for (const pons_option *o = c->flags; o != NULL && o->name != NULL; o++)
        if (same_name(name, o->name))
            return o;
    return NULL;
}

/* The name of a letter in the command's 'letters': with "o=output n=ranks", 'o' is "output". */
static bool name_of_letter(const command *c, char letter, char name[FLAG_SIZE])
{
    for (const char *p = c->letters; p != NULL && *p != '\0';
         p += strcspn(p, " "), p += *p == ' ') {
        if (p[0] == letter && p[1] == '=') {
            snprintf(name, FLAG_SIZE, "%.*s", (int)strcspn(p + 2, " "), p + 2);
            return true;
        }
    }
    return false;
}

char arguments_letter(const command *c, const pons_option *o)
{
    char name[FLAG_SIZE];

    for (const char *p = c->letters; p != NULL && *p != '\0';
         p += strcspn(p, " "), p += *p == ' ')
        if (name_of_letter(c, *p, name) && strcmp(name, o->name) == 0)
            return *p;
    return 0;
}

static bool is_number_list(pons_option_type type)
{
    return type == PONS_OPTION_REALS || type == PONS_OPTION_INTEGERS || type == PONS_OPTION_AXES ||
           type == PONS_OPTION_REAL_AXES;
}

static bool is_list(pons_option_type type)
{
    return type == PONS_OPTION_TEXTS || is_number_list(type);
}

static pons_status take_flag(words *w, const pons_option *o, const char *shown, const char *value)
{
    pons_error problem = PONS_ERROR_INIT;
    char *copy = strdup(value);
    pons_status status;

    if (copy == NULL)
        return pons_fail(w->err, PONS_DEVICE, "out of memory");
    for (char *p = copy; is_number_list(o->type) && *p != '\0'; p++)
        *p = *p == ',' ? ' ' : *p;
    status = option_parse(w->call->values, o, copy, shown, w->flags, &problem);
    free(copy);
    if (status != PONS_OK)
        return pons_fail(w->err, PONS_USAGE, "%s", problem.text);
    w->call->given[o - w->command->flags] = true;
    return PONS_OK;
}

static pons_status refuse_flag(const words *w, const char *shown, const char *name)
{
    text_guess guess = text_guess_for(name);
    char best[FLAG_SIZE] = "";

    for (const pons_option *o = w->command->flags; o != NULL && o->name != NULL; o++)
        text_guess_try(&guess, o->name);
    for (int i = 0; i < COMMON_COUNT; i++)
        text_guess_try(&guess, common[i].name);
    if (guess.best == NULL)
        return pons_fail(w->err, PONS_USAGE, "unknown flag '%s' of 'pons %s'\nhint: pons %s --help",
                         shown, w->command->name, w->command->name);
    snprintf(best, sizeof best, "%s", guess.best);
    for (char *p = best; *p != '\0'; p++)
        *p = *p == '_' ? '-' : *p;
    return pons_fail(w->err, PONS_USAGE, "unknown flag '%s' of 'pons %s'; did you mean '--%s'?",
                     shown, w->command->name, best);
}

/* ---- words ----------------------------------------------------------------------------------- */

static pons_status next_value(words *w, const char *shown, const char **value)
{
    if (*value == NULL && w->next == w->count)
        return pons_fail(w->err, PONS_USAGE, "%s needs a value", shown);
    if (*value == NULL)
        *value = w->word[w->next++];
    return PONS_OK;
}

static pons_status refuse_value(const words *w, const char *shown, const char *value)
{
    return pons_fail(w->err, PONS_USAGE, "%s takes no value, found '%s'", shown, value);
}

/* Take the flag 'name' (without dashes). If 'value' is NULL, its value is the next word. */
static pons_status take_named(words *w, const char *shown, const char *name, const char *value)
{
    const pons_option *o = find_flag(w->command, name);
    const struct common *c = o == NULL ? find_common(name) : NULL;
    bool valued = o != NULL ? o->type != PONS_OPTION_FLAG : c != NULL && c->valued;

    if (o == NULL && c == NULL)
        return refuse_flag(w, shown, name);
    if (!valued && value != NULL)
        return refuse_value(w, shown, value);
    if (valued && next_value(w, shown, &value) != PONS_OK)
        return PONS_USAGE;
    if (o != NULL ? is_list(o->type) : c->take == take_set)
        w->list_end = w->next;
    if (o != NULL)
        return take_flag(w, o, shown, valued ? value : "yes");
    return c->take(w, value);
}

static pons_status take_long(words *w, char *word)
{
    const char *equal = strchr(word, '=');
    char shown[FLAG_SIZE];

    snprintf(shown, sizeof shown, "%.*s",
             equal != NULL ? (int)(equal - word) : (int)strlen(word), word);
    return take_named(w, shown, shown + 2, equal != NULL ? equal + 1 : NULL);
}

static pons_status take_short(words *w, char *word)
{
    char name[FLAG_SIZE], shown[3] = { '-', word[1], '\0' };
    const char *value = word[2] != '\0' ? word + 2 : NULL;

    if (name_of_letter(w->command, word[1], name))
        return take_named(w, shown, name, value);
    return take_named(w, shown, shown + 1, value);
}

static pons_status take_words(words *w)
{
    bool flags = true;
    pons_status status = PONS_OK;

    while (status == PONS_OK && w->next < w->count) {
        char *word = w->word[w->next++];
        if (flags && strcmp(word, "--") == 0)
            flags = false;
        else if (flags && word[0] == '-' && word[1] == '-')
            status = take_long(w, word);
        else if (flags && word[0] == '-' && word[1] != '\0')
            status = take_short(w, word);
        else {
            w->stray = w->stray == 0 && w->next - 1 == w->list_end ? w->list_end : w->stray;
            w->call->argument[w->call->argument_count++] = word;
        }
    }
    return status;
}

/*
 * Write the flag with its list in quotes. Without quotes a shell splits the list into words, and
 * the flag takes only the first.
 */
static void quoted_list(const words *w, char *text, size_t size)
{
    const char *value = w->word[w->stray - 1];
    bool joined = strncmp(value, "--", 2) == 0; /* --flag=value */
    char list[LINE_SIZE];
    size_t flag = joined ? 0 : (size_t)snprintf(text, size, "%s ", w->word[w->stray - 2]);
    size_t used = (size_t)snprintf(list, sizeof list, "%s", value);

    for (int i = w->stray; i < w->count && w->word[i][0] != '-' && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, " %s", w->word[i]);
    if (flag >= size)
        return;
    /* Double quotes, as in the manual, protect all characters except these. */
    if (list[strcspn(list, "\"$`\\!")] == '\0')
        snprintf(text + flag, size - flag, "\"%s\"", list);
    else
        shell_word(text + flag, size - flag, list);
}

static pons_status refuse_arguments(const words *w)
{
    const command *c = w->command;
    const char *list = w->call->list_hint;
    char help[FLAG_SIZE];

    snprintf(help, sizeof help, "pons %s --help", c->name);
    return pons_fail(w->err, PONS_USAGE, "'pons %s' takes %s, found %d argument%s\nhint: %s%.500s",
                     c->name, *c->usage != '\0' ? c->usage : "no argument",
                     w->call->argument_count, w->call->argument_count == 1 ? "" : "s",
                     list[0] != '\0' ? "a list needs quotes: " : "", list[0] != '\0' ? list : help);
}

/* Commands that read no INI file. They refuse --set, which would have no effect. */
static const char *const without_file[] = {
    "data phantom", "data crop", "plugin list", "plugin show", "plugin new", "report", "devices",
    "doctor", "help"
};

bool arguments_takes(const command *c, const char *name)
{
    if (strcmp(name, "debug") == 0)
        return strcmp(c->name, "train") == 0;
    for (size_t i = 0; strcmp(name, "set") == 0 && i < sizeof without_file / sizeof *without_file;
         i++)
        if (strcmp(without_file[i], c->name) == 0)
            return false;
    return true;
}

static pons_status check_common(const words *w)
{
    if (w->call->set_count > 0 && !arguments_takes(w->command, "set"))
        return pons_fail(w->err, PONS_USAGE, "--set %s: 'pons %s' reads no INI file",
                         w->call->set[0], w->command->name);
    if (w->call->debug && !arguments_takes(w->command, "debug"))
        return pons_fail(w->err, PONS_USAGE, "--debug: only 'pons train' has a short run with "
                         "checks, not 'pons %s'", w->command->name);
    return PONS_OK;
}

/* Set flags that were not given to their defaults. A flag without a default must be given. */
static pons_status complete(words *w)
{
    const command *c = w->command;

    for (const pons_option *o = c->flags; o != NULL && o->name != NULL; o++) {
        if (w->call->given[o - c->flags])
            continue;
        if (o->fallback == NULL)
            return pons_fail(w->err, PONS_USAGE, "'pons %s' needs --%s\nhint: pons %s --help",
                             c->name, o->name, c->name);
        if (option_parse(w->call->values, o, o->fallback, o->name, w->flags, w->err) != PONS_OK)
            return w->err->status;
    }
    if (w->call->argument_count < c->argument_min ||
        (c->argument_max >= 0 && w->call->argument_count > c->argument_max))
        return refuse_arguments(w);
    return PONS_OK;
}

bool arguments_given(const invocation *call, const char *name)
{
    const pons_option *flags = call->command->flags, *row = option_find(flags, name);

    return row != NULL && call->given[row - flags];
}

pons_status arguments_read(const command *c, int count, char **word, invocation *call, void *flags,
                           pons_error *err)
{
    words w = {
        .command = c, .count = count, .word = word, .call = call, .flags = flags, .err = err
    };
    size_t rows = 1;
    pons_status status;

    for (const pons_option *o = c->flags; o != NULL && o->name != NULL; o++)
        rows++;
    call->given = calloc(rows, sizeof *call->given);
    if (call->given == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    status = take_words(&w);
    if (w.stray > 0)
        quoted_list(&w, call->list_hint, sizeof call->list_hint);
    if (status == PONS_OK && !call->help)
        status = check_common(&w);
    if (status == PONS_OK && !call->help)
        status = complete(&w);
    return status;
}
