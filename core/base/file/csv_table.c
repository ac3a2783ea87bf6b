/*
 * csv_table.c - see csv_table.h. Cells are unescaped in place, in a copy of the text.
 */
#include "base/file/csv_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/text.h"

#define TABLE_SIZE_MAX ((size_t)64 << 20)

typedef struct csv_reader {
    arena *memory;
    const char *path;
    char *at;                  /* the next character; the text ends with NUL                      */
    char delimiter;
    int line;
} csv_reader;

static char find_delimiter(const char *path, const char *text)
{
    static const char candidates[] = ",;\t";
    char best = ',';
    int most = 0;

    if (text_ends_with(path, ".tsv"))
        return '\t';
    for (const char *d = candidates; *d != '\0'; d++) {
        bool quoted = false;
        int count = 0;
        for (const char *c = text; *c != '\0' && (quoted || (*c != '\n' && *c != '\r')); c++) {
            quoted = quoted != (*c == '"');
            count += !quoted && *c == *d;
        }
        if (count > most) {
            most = count;
            best = *d;
        }
    }
    return best;
}

static bool is_blank(const csv_reader *r, char c)
{
    return (c == ' ' || c == '\t') && c != r->delimiter;
}

static bool ends_cell(const csv_reader *r, char c)
{
    return c == '\0' || c == '\n' || c == '\r' || c == r->delimiter;
}

/* Unescape a cell whose opening quote was passed; r->at ends behind the closing quote. */
static pons_status read_quoted(csv_reader *r, const char **cell, pons_error *err)
{
    char *to = r->at;
    int line = r->line;

    *cell = to;
    for (;; r->at++) {
        if (*r->at == '\0')
            return pons_fail(err, PONS_DATA, "'%s' row %d: a quote does not end", r->path, line);
        if (*r->at == '"' && *++r->at != '"')
            break;
        r->line += *r->at == '\n';
        *to++ = *r->at;
    }
    while (is_blank(r, *r->at))
        r->at++;
    if (!ends_cell(r, *r->at))
        return pons_fail(err, PONS_DATA, "'%s' row %d: text follows a closing quote", r->path,
                         line);
    if (to < r->at)
        *to = '\0';
    return PONS_OK;
}

/* Read a cell; r->at ends at the character that ends it, which *end receives. */
static pons_status read_cell(csv_reader *r, const char **cell, char *end, pons_error *err)
{
    while (is_blank(r, *r->at))
        r->at++;
    if (*r->at == '"') {
        r->at++;
        if (read_quoted(r, cell, err) != PONS_OK)
            return err->status;
        *end = *r->at;
        return PONS_OK;
    }
    *cell = r->at;
    while (!ends_cell(r, *r->at))
        r->at++;
    char *last = r->at;
    while (last > *cell && is_blank(r, last[-1]))
        last--;
    *end = *r->at;
    *last = '\0';
    return PONS_OK;
}

/* A list with room for one more entry. */
static void *grow_list(arena *memory, void *list, int count, int *room, size_t size)
{
    if (count < *room)
        return list;
    *room = 2 * count + 16;
    return arena_grow(memory, list, (size_t)count * size, (size_t)*room * size);
}

static void skip_line_end(csv_reader *r, char end)
{
    r->at++;
    if (end == '\r' && *r->at == '\n')
        r->at++;
    r->line++;
}

static pons_status read_row(csv_reader *r, csv_row *row, pons_error *err)
{
    char end = '\0';
    int room = 0;

    *row = (csv_row){ .line = r->line };
    do {
        row->cell = grow_list(r->memory, row->cell, row->count, &room, sizeof *row->cell);
        if (read_cell(r, &row->cell[row->count], &end, err) != PONS_OK)
            return err->status;
        row->count++;
        if (end == r->delimiter)
            r->at++;
    } while (end == r->delimiter);
    if (end != '\0')
        skip_line_end(r, end);
    return PONS_OK;
}

static pons_status csv_table_parse(arena *memory, const char *path, const char *text, size_t size,
                                   csv_table *out, pons_error *err)
{
    size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    char *copy = arena_alloc(memory, size + 1);
    csv_reader r = { .memory = memory, .path = path, .line = 1, .at = copy };
    int room = 0;

    *out = (csv_table){ 0, NULL };
    memcpy(copy, text + mark, size - mark);
    if (strlen(copy) != size - mark)
        return pons_fail(err, PONS_DATA, "'%s' has a zero byte, expected UTF-8 text", path);
    r.delimiter = find_delimiter(path, copy);
    while (*r.at != '\0') {
        out->row = grow_list(memory, out->row, out->count, &room, sizeof *out->row);
        csv_row *row = &out->row[out->count];
        if (read_row(&r, row, err) != PONS_OK)
            return err->status;
        if (row->count > 1 || row->cell[0][0] != '\0')
            out->count++;
    }
    return PONS_OK;
}

pons_status csv_table_read(arena *memory, const char *path, csv_table *out, pons_error *err)
{
    char *text;
    size_t size;

    if (file_read(path, TABLE_SIZE_MAX, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    pons_status status = csv_table_parse(memory, path, text, size, out, err);
    free(text);
    return status;
}
