/*
 * table_file.c - check the columns of a table.
 */
#include "base/file/table_file.h"

#include <strings.h>

#include "base/text/text.h"

static pons_status check_columns(const char *path, const csv_table *t, pons_error *err)
{
    if (t->count == 0)
        return pons_fail(err, PONS_DATA, "'%s' is empty, expected a line of column names", path);
    const csv_row *header = &t->row[0];
    for (int i = 0; i < header->count; i++)
        for (int j = 0; j < i && j < 1000; j++)
            if (strcasecmp(header->cell[i], header->cell[j]) == 0)
                return pons_fail(err, PONS_DATA, "'%s' line %d: the column '%s' occurs twice", path,
                                 header->line, header->cell[i]);
    for (int r = 1; r < t->count; r++)
        if (t->row[r].count != header->count)
            return pons_fail(err, PONS_DATA, "'%s' line %d: found %d field%s, expected %d as in "
                             "the first line", path, t->row[r].line, t->row[r].count,
                             text_plural(t->row[r].count), header->count);
    return PONS_OK;
}

pons_status table_file_read(arena *memory, const char *path, table_file *out, pons_error *err)
{
    csv_table t;

    if (csv_table_read(memory, path, &t, err) != PONS_OK
        || check_columns(path, &t, err) != PONS_OK)
        return err->status;
    *out = (table_file){ .path = arena_string(memory, path), .column_count = t.row[0].count,
                         .row_count = t.count - 1, .column = t.row[0].cell, .row = t.row + 1 };
    return PONS_OK;
}

int table_file_column(const table_file *t, const char *name)
{
    for (int i = 0; i < t->column_count; i++)
        if (strcasecmp(t->column[i], name) == 0)
            return i;
    return -1;
}
