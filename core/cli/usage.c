/*
 * usage.c - the output of --help and help, from the tables of commands and options.
 */
#include "cli/usage.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/command_text.h"
#include "config/sections.h"

const usage_row usage_common_flags[] = {
    { "--set section.key=value", "a value that wins over the file's; may be repeated" },
    { "-v, --verbose", "more lines about what is done" },
    { "-q, --quiet", "warnings and errors only" },
    { "--color auto|always|never", "auto: on a terminal that has them, unless NO_COLOR is set" },
    { "--debug", "train only: few cases, few steps, checks on, in NAME-debug" },
    { "-h, --help", "the command and its flags" },
    { NULL, NULL }
};

const usage_row usage_exit_codes[] = {
    { "0", "done" }, { "1", "failure" }, { "2", "usage" }, { "3", "configuration" },
    { "4", "data" }, { "5", "device or memory" }, { "6", "plugin" }, { "7", "communication" },
    { "75", "interrupted and resumable" }, { NULL, NULL }
};

bool usage_has_common(const command *c, const char *flag)
{
    char name[32];
    const char *dashes = strstr(flag, "--");

    if (dashes == NULL)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(dashes + 2, " "), dashes + 2);
    return arguments_takes(c, name);
}

/* The flags of all commands, or with 'c' those that the command takes. */
static void print_common_flags(FILE *to, const command *c)
{
    fprintf(to, "Common flags:\n");
    for (const usage_row *r = usage_common_flags; r->name != NULL; r++)
        if (c == NULL || usage_has_common(c, r->name))
            fprintf(to, "  %-25s %s\n", r->name, r->text);
}

/* Print the codes as a sentence, in lines of at most 88 columns. */
static void print_exit_codes(FILE *to)
{
    int column = fprintf(to, "Exit codes:");

    for (const usage_row *r = usage_exit_codes; r->name != NULL; r++) {
        char entry[64];
        int size = snprintf(entry, sizeof entry, " %s %s%s", r->name, r->text,
                            r[1].name != NULL ? "," : ".");
        bool wraps = column + size > 88;
        if (wraps)
            fputc('\n', to);
        column = (wraps ? 0 : column) + fprintf(to, "%s", wraps ? entry + 1 : entry);
    }
    fprintf(to, "\n");
}

void usage_print_all(FILE *to)
{
    fprintf(to, "pons trains and runs 3D medical-image segmentation networks from one INI file.\n\n"
                "Usage: pons COMMAND [ARGUMENT...]\n\nCommands:\n");
    for (const command *const *c = commands; *c != NULL; c++)
        fprintf(to, "  %-16s %s\n", (*c)->name, (*c)->summary);
    fprintf(to, "\n");
    print_common_flags(to, NULL);
    fprintf(to, "\n");
    print_exit_codes(to);
    fprintf(to, "\n'pons COMMAND --help' shows a command, 'pons help' the topics.\n");
}

void usage_print_group(FILE *to, const char *group)
{
    size_t size = strlen(group);

    fprintf(to, "Usage: pons %s COMMAND [ARGUMENT...]\n\nCommands:\n", group);
    for (const command *const *c = commands; *c != NULL; c++)
        if (strncmp((*c)->name, group, size) == 0 && (*c)->name[size] == ' ')
            fprintf(to, "  %-16s %s\n", (*c)->name, (*c)->summary);
}

const char *usage_default(const pons_option *o)
{
    const char *need = sections_need(o);

    if (need != NULL)
        return need;
    return o->fallback == NULL ? "(must be given)" : *o->fallback == '\0' ? "(not given)" :
           o->fallback;
}

/* The form of a list as one shell word; NULL if the option is no list. */
static const char *list_form(const pons_option *o)
{
    switch (o->type) {
    case PONS_OPTION_TEXTS:
        return "\"A B C\"";
    case PONS_OPTION_REALS:
    case PONS_OPTION_INTEGERS:
    case PONS_OPTION_AXES:
    case PONS_OPTION_REAL_AXES:
        return "\"1 2 3\" or 1,2,3";
    default:
        return NULL;
    }
}

void usage_print_option(FILE *to, const pons_option *o)
{
    char expected[512], lack[256];

    fprintf(to, "  %s = %s\n      %s\n      %s\n", o->name, usage_default(o),
            option_expected(o, expected, sizeof expected), o->help);
    if (*sections_lack(o, lack, sizeof lack) != '\0')
        fprintf(to, "      Not in this build: %s\n", lack);
}

void usage_print_options(FILE *to, const pons_option *options)
{
    for (const pons_option *o = options; o != NULL && o->name != NULL; o++)
        usage_print_option(to, o);
}

/* ---- flags ----------------------------------------------------------------------------------- */

const char *usage_flag(const pons_option *o, char *out, size_t size)
{
    snprintf(out, size, "--%s", o->name);
    for (char *p = out; *p != '\0'; p++)
        *p = *p == '_' ? '-' : *p;
    return out;
}

const char *usage_flag_values(const pons_option *o, char *out, size_t size)
{
    bool fixed = o->fallback != NULL && *o->fallback != '\0';
    char expected[512];

    *out = '\0';
    if (o->type == PONS_OPTION_FLAG)
        return out;
    if (o->type != PONS_OPTION_TEXT)
        snprintf(out, size, "Value: %s%s%s.", option_expected(o, expected, sizeof expected),
                 fixed ? "; default " : "", fixed ? o->fallback : "");
    else if (fixed)
        snprintf(out, size, "Default: %s.", o->fallback);
    else if (o->fallback == NULL)
        snprintf(out, size, "It must be given.");
    return out;
}

/* The letter of a flag before its name, as in "-o, ". */
static void print_letter(FILE *to, const command *c, const pons_option *o)
{
    const char letter = arguments_letter(c, o);

    if (letter != 0)
        fprintf(to, "-%c, ", letter);
}

static void print_flag(FILE *to, const command *c, const pons_option *o)
{
    char name[64], value[256], values[640];

    fprintf(to, "  ");
    print_letter(to, c, o);
    usage_flag(o, name, sizeof name);
    flag_value_name(c, o, value, sizeof value);
    fprintf(to, "%s%s%s\n      %s\n", name, *value != '\0' ? " " : "", value, o->help);
    if (*usage_flag_values(o, values, sizeof values) != '\0')
        fprintf(to, "      %s\n", values);
    if (list_form(o) != NULL)
        fprintf(to, "      All of them as one word, in quotes: %s %s\n", name, list_form(o));
}

/* ---- a command ------------------------------------------------------------------------------- */

/* Print sentences in lines of at most 88 columns behind 'indent' blanks. */
static void print_wrapped(FILE *to, int indent, const char *text)
{
    int columns = 88 - indent;

    while (*text != '\0') {
        int size = (int)strlen(text);
        if (size > columns)
            for (size = columns; size > 0 && text[size] != ' '; size--)
                ;
        if (size == 0)
            size = (int)strcspn(text, " ");
        fprintf(to, "%*s%.*s\n", indent, "", size, text);
        text += size + strspn(text + size, " ");
    }
}

static void print_rows(FILE *to, const char *title, const usage_row *row)
{
    if (row->name == NULL)
        return;
    fprintf(to, "%s:\n", title);
    for (; row->name != NULL; row++) {
        fprintf(to, "  %s\n", row->name);
        print_wrapped(to, 6, row->text);
    }
    fprintf(to, "\n");
}

void usage_print(FILE *to, const command *c)
{
    const command_text *text = command_text_of(c);

    fprintf(to, "pons %s - %s\n\nUsage: pons %s%s%s%s\n\n", c->name, c->summary, c->name,
            *c->usage != '\0' ? " " : "", c->usage, c->flags != NULL ? " [FLAG...]" : "");
    print_wrapped(to, 0, text->description);
    fprintf(to, "\n");
    print_rows(to, "Arguments", text->arguments);
    if (c->flags != NULL) {
        fprintf(to, "Flags:\n");
        for (const pons_option *o = c->flags; o->name != NULL; o++)
            print_flag(to, c, o);
        fprintf(to, "\n");
    }
    print_common_flags(to, c);
    fprintf(to, "\n");
    print_rows(to, "Examples", text->examples);
}
