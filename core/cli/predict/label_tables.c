/*
 * label_tables.c - colour tables of 3D Slicer, label descriptions of ITK-SNAP, look-up tables of
 * BIDS.
 */
#include "cli/predict/label_tables.h"

#include <string.h>

#include "base/file/file.h"

/* ---- colours --------------------------------------------------------------------------------- */

typedef struct colour {
    int r, g, b;
} colour;

/* Hues in steps of the golden angle, so that neighbours differ, with full saturation and value. */
static colour colour_of(int position)
{
    enum { GOLDEN_ANGLE = 137, CIRCLE = 360, SECTOR = 60 };
    int hue = position * GOLDEN_ANGLE % CIRCLE, rise = hue % SECTOR * 255 / SECTOR;
    const colour wheel[] = { { 255, rise, 0 }, { 255 - rise, 255, 0 }, { 0, 255, rise },
                             { 0, 255 - rise, 255 }, { rise, 0, 255 }, { 255, 0, 255 - rise } };

    return wheel[hue / SECTOR];
}

/* A name with 'to' in place of each character of 'from'. */
static const char *replaced(arena *memory, const char *name, const char *from, char to)
{
    char *copy = arena_string(memory, name);

    for (char *c = copy; *c != '\0'; c++)
        if (strchr(from, *c) != NULL)
            *c = to;
    return copy;
}

/* ---- formats --------------------------------------------------------------------------------- */

static void put_slicer(arena *memory, FILE *to, int count, const label_entry *entry)
{
    fprintf(to, "# Color table file\n# %d values\n", count);
    for (int i = 0; i < count; i++) {
        colour c = colour_of(i);
        const char *name = replaced(memory, entry[i].name, " \t", '_');
        if (entry[i].id == 0)
            fprintf(to, "0 %s 0 0 0 0\n", name);
        else
            fprintf(to, "%d %s %d %d %d 255\n", entry[i].id, name, c.r, c.g, c.b);
    }
}

static void put_itksnap(arena *memory, FILE *to, int count, const label_entry *entry)
{
    fputs("################################################\n"
          "# ITK-SnAP Label Description File\n"
          "# File format:\n"
          "# IDX   -R-  -G-  -B-  -A--  VIS MSH  LABEL\n"
          "################################################\n", to);
    for (int i = 0; i < count; i++) {
        colour c = colour_of(i);
        bool shown = entry[i].id != 0;
        fprintf(to, "%5d %5d %4d %4d %8d %2d %2d    \"%s\"\n", entry[i].id, shown ? c.r : 0,
                shown ? c.g : 0, shown ? c.b : 0, shown, shown, shown,
                replaced(memory, entry[i].name, "\"", '\''));
    }
}

static void put_bids(arena *memory, FILE *to, int count, const label_entry *entry)
{
    fputs("index\tname\tcolor\n", to);
    for (int i = 0; i < count; i++) {
        colour c = entry[i].id != 0 ? colour_of(i) : (colour){ 0, 0, 0 };
        fprintf(to, "%d\t%s\t#%02x%02x%02x\n", entry[i].id,
                replaced(memory, entry[i].name, "\t", ' '), (unsigned)c.r, (unsigned)c.g,
                (unsigned)c.b);
    }
}

static const struct {
    const char *name, *ending;
    void (*put)(arena *memory, FILE *to, int count, const label_entry *entry);
} formats[] = {
    { "slicer", ".ctbl", put_slicer }, { "itksnap", ".label", put_itksnap },
    { "bids", ".tsv", put_bids }
};

pons_status label_table_write(arena *memory, const char *format, const char *stem, int count,
                              const label_entry *entry, pons_error *err)
{
    safe_file file;
    size_t f = 0;

    while (f < sizeof formats / sizeof *formats - 1 && strcmp(formats[f].name, format) != 0)
        f++;
    if (safe_file_open(&file, arena_format(memory, "%s%s", stem, formats[f].ending), err)
        != PONS_OK)
        return err->status;
    formats[f].put(memory, file.file, count, entry);
    return safe_file_commit(&file, err);
}
