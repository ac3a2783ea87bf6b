/*
 * usage.c - the output of --help and help, from the tables of commands and options.
 */
#include "cli/usage.h"

#include <string.h>

#include "cli/command.h"
#include "config/sections.h"

const usage_row usage_common_flags[] = {
    { "--set section.key=value", "a value that wins over the file's; may be repeated" },
    { "-v, --verbose", "more lines about what is done" },
    { "-q, --quiet", "warnings and errors only" },
    { "--color auto|always|never", "auto: not with NO_COLOR, nor where TERM is dumb" },
    { "--debug", "train only: few cases, few steps, checks on, in NAME-debug" },
    { "-h, --help", "the command and its flags" },
    { NULL, NULL }
};

const usage_row usage_exit_codes[] = {
    { "0", "done" }, { "1", "failure" }, { "2", "usage" }, { "3", "configuration" },
    { "4", "data" }, { "5", "device or memory" }, { "6", "plugin" }, { "7", "communication" },
    { "75", "interrupted and resumable" }, { NULL, NULL }
};

static void print_common_flags(FILE *to)
{
    fprintf(to, "Common flags:\n");
    for (const usage_row *r = usage_common_flags; r->name != NULL; r++)
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
    print_common_flags(to);
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

void usage_print_option(FILE *to, const pons_option *o, const char *prefix)
{
    char expected[512], name[64], lack[256];

    snprintf(name, sizeof name, "%s%s", prefix, o->name);
    for (char *p = name; *prefix != '\0' && *p != '\0'; p++)
        *p = *p == '_' ? '-' : *p;
    option_expected(o, expected, sizeof expected);
    if (*prefix != '\0' && o->type == PONS_OPTION_FLAG)
        fprintf(to, "  %s\n", name);
    else
        fprintf(to, "  %s = %s\n      %s\n", name, usage_default(o), expected);
    if (*prefix != '\0' && list_form(o) != NULL)
        fprintf(to, "      All of them as one word, in quotes: %s %s\n", name, list_form(o));
    fprintf(to, "      %s\n", o->help);
    if (*sections_lack(o, lack, sizeof lack) != '\0')
        fprintf(to, "      Not in this build: %s\n", lack);
}

void usage_print_options(FILE *to, const pons_option *options, const char *prefix)
{
    for (const pons_option *o = options; o != NULL && o->name != NULL; o++)
        usage_print_option(to, o, prefix);
}

static void print_letters(FILE *to, const char *letters)
{
    for (const char *p = letters; p != NULL && *p != '\0'; p += strcspn(p, " "), p += *p == ' ')
        fprintf(to, "  -%c is --%.*s\n", *p, (int)strcspn(p + 2, " "), p + 2);
}

void usage_print(FILE *to, const command *c)
{
    fprintf(to, "pons %s - %s\n\nUsage: pons %s%s%s%s\n\n", c->name, c->summary, c->name,
            *c->usage != '\0' ? " " : "", c->usage, c->flags != NULL ? " [FLAG...]" : "");
    if (c->flags != NULL) {
        fprintf(to, "Flags:\n");
        usage_print_options(to, c->flags, "--");
        print_letters(to, c->letters);
        fprintf(to, "\n");
    }
    print_common_flags(to);
}
