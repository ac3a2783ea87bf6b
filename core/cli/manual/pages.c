/*
 * pages.c - the man pages of the commands and of the INI file.
 */
#include "cli/manual/pages.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/command_text.h"
#include "cli/manual/roff.h"
#include "cli/usage.h"
#include "config/sections.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static void put_name(FILE *to, const char *name, const char *summary)
{
    roff_heading(to, "NAME");
    fprintf(to, "%s \\- ", name);
    roff_line(to, summary);
}

/* Rows of a table; of common flags those that the command takes. */
static void put_rows(FILE *to, const char *title, const usage_row *rows, const command *c)
{
    if (rows->name != NULL)
        roff_heading(to, title);
    for (; rows->name != NULL; rows++)
        if (c == NULL || usage_has_common(c, rows->name))
            roff_term(to, rows->name, NULL, rows->text);
}

/* A line about what this build lacks for an option. */
static void put_lack(FILE *to, const pons_option *o)
{
    char lack[256];

    if (*sections_lack(o, lack, sizeof lack) != '\0')
        roff_break(to, "Not in this build: ", lack);
}

/* A key of the INI file: its default, its sentence, its values. */
static void put_key(FILE *to, const pons_option *o)
{
    char rest[256], expected[512];

    snprintf(rest, sizeof rest, "= %s", usage_default(o));
    roff_term(to, o->name, rest, o->help);
    roff_break(to, "Value: ", option_expected(o, expected, sizeof expected));
    put_lack(to, o);
}

/* A flag with the name of its value. */
static void put_flag(FILE *to, const command *c, const pons_option *o)
{
    char name[64], letter[8] = "", value[256], values[640];

    if (arguments_letter(c, o) != 0)
        snprintf(letter, sizeof letter, ", -%c", arguments_letter(c, o));
    usage_flag(o, name, sizeof name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "%s", letter);
    roff_term(to, name, flag_value_name(c, o, value, sizeof value), o->help);
    if (*usage_flag_values(o, values, sizeof values) != '\0')
        roff_break(to, "", values);
    put_lack(to, o);
}

static void put_options(FILE *to, const pons_option *options)
{
    for (; options != NULL && options->name != NULL; options++)
        put_key(to, options);
}

/* ---- pons-COMMAND(1) ------------------------------------------------------------------------- */

void page_command(FILE *to, const command *c)
{
    const command_text *text = command_text_of(c);
    char name[128];

    snprintf(name, sizeof name, "pons-%s", c->name);
    for (char *p = name; *p != '\0'; p++)
        *p = *p == ' ' ? '-' : *p;
    roff_begin(to, name, "1");
    put_name(to, name, c->summary);
    roff_heading(to, "SYNOPSIS");
    fprintf(to, "\\fBpons %s\\fR\n", c->name);
    if (*c->usage != '\0')
        roff_line(to, c->usage);
    roff_line(to, "[FLAG...]");
    roff_heading(to, "DESCRIPTION");
    roff_line(to, text->description);
    put_rows(to, "ARGUMENTS", text->arguments, NULL);
    if (c->flags != NULL) {
        roff_heading(to, "OPTIONS");
        for (const pons_option *o = c->flags; o->name != NULL; o++)
            put_flag(to, c, o);
    }
    put_rows(to, "COMMON OPTIONS", usage_common_flags, c);
    put_rows(to, "EXIT STATUS", usage_exit_codes, NULL);
    roff_heading(to, "EXAMPLES");
    for (const usage_row *r = text->examples; r->name != NULL; r++) {
        char line[256];
        (r == text->examples ? roff_line : roff_paragraph)(to, r->text);
        snprintf(line, sizeof line, "%s\n", r->name);
        roff_example(to, line);
    }
    roff_heading(to, "SEE ALSO");
    fputs(".BR pons (1),\n.BR pons.ini (5)\n", to);
}

/* ---- pons(1) --------------------------------------------------------------------------------- */

static const usage_row environment[] = {
    { "PONS_PLUGIN_PATH", "Folders of plugins, absolute and separated by colons, which are "
                          "searched before that of the installation." },
    { "CUDA_VISIBLE_DEVICES", "GPUs that a process may use; empty: none." },
    { "NO_COLOR", "Not empty: no colours." },
    { "CLICOLOR_FORCE", "Neither empty nor 0: colours in a file or a pipe, too, unless NO_COLOR "
                        "is set." },
    { "TERM", "dumb: no lines that are drawn again, and no colours unless forced." },
    { NULL, NULL }
};

static const usage_row files[] = {
    { "runs/NAME/resolved.ini", "Every value of the run with its origin." },
    { "runs/NAME/log.txt", "The lines of the terminal, with date and time." },
    { "runs/NAME/metrics.jsonl", "One JSON object a step and a validation." },
    { "runs/NAME/checkpoints/", "best, last and those of steps, from which a run goes on." },
    { NULL, NULL }
};

static void put_commands(FILE *to)
{
    roff_heading(to, "COMMANDS");
    for (const command *const *c = commands; *c != NULL; c++)
        roff_term(to, (*c)->name, (*c)->usage, (*c)->summary);
}

void page_pons(FILE *to, const option_tables *tables)
{
    roff_begin(to, "pons", "1");
    put_name(to, "pons", "train and run 3D medical-image segmentation from one INI file");
    roff_heading(to, "SYNOPSIS");
    fputs(".B pons\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n", to);
    roff_heading(to, "DESCRIPTION");
    roff_line(to, "pons trains networks on volumes (NIfTI) and pictures, on one device or many, "
                  "and predicts with them. An INI file holds everything about a training. Models, "
                  "losses, optimizers, transforms and schedules are plugins.");
    roff_paragraph(to, "Each command has a page of its own, such as pons-train(1), and 'pons "
                       "COMMAND --help' says the same. 'pons help train.epochs' shows a key.");
    roff_example(to, "pons init DATASET -o liver.ini\npons train liver.ini\n"
                     "pons predict runs/liver CT.nii.gz -o segmentation.nii.gz\n");
    put_commands(to);
    put_rows(to, "COMMON OPTIONS", usage_common_flags, NULL);
    put_rows(to, "EXIT STATUS", usage_exit_codes, NULL);
    put_rows(to, "ENVIRONMENT", environment, NULL);
    put_rows(to, "FILES", files, NULL);
    roff_heading(to, "SEE ALSO");
    fputs(".BR pons.ini (5),\n.BR pons-plugin (7)\n", to);
}

void page_group(FILE *to, const char *group)
{
    char name[128], summary[128];
    size_t size = strlen(group);

    snprintf(name, sizeof name, "pons-%s", group);
    snprintf(summary, sizeof summary, "the commands of pons on %s", group);
    roff_begin(to, name, "1");
    put_name(to, name, summary);
    roff_heading(to, "SYNOPSIS");
    fprintf(to, "\\fBpons %s\\fR\n\\fICOMMAND\\fR\n[\\fIARGUMENT\\fR...]\n", group);
    roff_heading(to, "COMMANDS");
    for (const command *const *c = commands; *c != NULL; c++)
        if (strncmp((*c)->name, group, size) == 0 && (*c)->name[size] == ' ')
            roff_term(to, (*c)->name + size + 1, (*c)->usage, (*c)->summary);
    roff_paragraph(to, "Each has a page of its own, such as pons-plugin-check(1).");
    roff_heading(to, "SEE ALSO");
    fputs(".BR pons (1)\n", to);
}

/* ---- pons.ini(5) ----------------------------------------------------------------------------- */

static void put_table(FILE *to, const option_table *t)
{
    char title[256];

    if (t->plugin != NULL)
        snprintf(title, sizeof title, "[%s], with the plugin %s %s", t->place,
                 t->plugin->descriptor->name, t->plugin->descriptor->version);
    else
        snprintf(title, sizeof title, "[%s]", t->place);
    roff_subheading(to, title);
    roff_line(to, t->summary);
    put_options(to, t->options);
}

void page_ini(FILE *to, const option_tables *tables)
{
    roff_begin(to, "pons.ini", "5");
    put_name(to, "pons.ini", "the file that describes a training of pons");
    roff_heading(to, "DESCRIPTION");
    roff_line(to, "A file has sections in brackets and lines 'key = value'. A comment begins with "
                  "';' or '#'. Entries of a list are separated by blanks, numbers also by commas. "
                  "A '\\' at the end of a line continues the value on the next one. A relative "
                  "path starts at the folder of the file. '--set section.key=value' on a command "
                  "line wins over the file.");
    roff_paragraph(to, "'pons config FILE.ini' prints every value of a file with its origin. A "
                       "key that no section knows is an error.");
    roff_heading(to, "SECTIONS");
    for (int i = 0; i < tables->count; i++)
        if (tables->item[i].plugin == NULL)
            put_table(to, &tables->item[i]);
    roff_heading(to, "KEYS OF PLUGINS");
    for (int i = 0; i < tables->count; i++)
        if (tables->item[i].plugin != NULL && tables->item[i].options != NULL)
            put_table(to, &tables->item[i]);
    roff_heading(to, "SEE ALSO");
    fputs(".BR pons (1),\n.BR pons\\-config (1),\n.BR pons\\-plugin (7)\n", to);
}
