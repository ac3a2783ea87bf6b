/*
 * manual.c - man pages and completions, from the tables of commands, sections and plugins.
 */
#include "cli/manual/manual.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "cli/manual/completion.h"
#include "cli/manual/completion_words.h"
#include "cli/manual/pages.h"

typedef struct book {
    const char *folder;
    option_tables tables;
} book;

typedef void writer(FILE *to, const option_tables *tables);

/* Open FOLDER/NAME.SUFFIX, with hyphens for the blanks of the name. */
static pons_status open_file(const book *b, const char *name, const char *suffix, safe_file *f,
                             pons_error *err)
{
    char *path;
    pons_status status;

    if (asprintf(&path, "%s/%s%s", b->folder, name, suffix) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (char *p = path + strlen(b->folder); *p != '\0'; p++)
        *p = *p == ' ' ? '-' : *p;
    status = safe_file_open(f, path, err);
    free(path);
    return status;
}

static pons_status write_file(const book *b, const char *name, writer *write, pons_error *err)
{
    safe_file f;

    if (open_file(b, name, "", &f, err) != PONS_OK)
        return err->status;
    write(f.file, &b->tables);
    return safe_file_commit(&f, err);
}

/* The page of a command, or with 'c' NULL that of a group of commands. */
static pons_status write_command(const book *b, const char *name, const command *c,
                                 pons_error *err)
{
    char page[128];
    safe_file f;

    snprintf(page, sizeof page, "pons-%s", name);
    if (open_file(b, page, ".1", &f, err) != PONS_OK)
        return err->status;
    if (c != NULL)
        page_command(f.file, c);
    else
        page_group(f.file, name);
    return safe_file_commit(&f, err);
}

/* A group has a page if this command is its first. */
static pons_status write_group(const book *b, const command *const *c, pons_error *err)
{
    char group[64];

    if (!words_begins_group(c, group, sizeof group))
        return PONS_OK;
    return write_command(b, group, NULL, err);
}

static pons_status write_all(const book *b, pons_error *err)
{
    static const struct { const char *name; writer *write; } files[] = {
        { "pons.1", page_pons }, { "pons.ini.5", page_ini }, { "pons-plugin.7", page_plugin },
        { "pons", completion_bash }, { "_pons", completion_zsh },
        { "pons.fish", completion_fish }
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (write_file(b, files[i].name, files[i].write, err) != PONS_OK)
            return err->status;
    for (const command *const *c = commands; *c != NULL; c++)
        if (write_command(b, (*c)->name, *c, err) != PONS_OK || write_group(b, c, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

pons_status manual_write(const char *folder, pons_error *err)
{
    book b = { .folder = folder };

    if (folder_make(folder, err) == PONS_OK && option_tables_collect(&b.tables, err) == PONS_OK)
        write_all(&b, err);
    option_tables_free(&b.tables);
    return err->status;
}
