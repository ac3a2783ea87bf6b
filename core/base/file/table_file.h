/*
 * table_file.h - read a CSV or TSV file whose first row has the names of the columns.
 */
#ifndef CORE_BASE_FILE_TABLE_FILE_H
#define CORE_BASE_FILE_TABLE_FILE_H

#include "base/file/csv_table.h"

typedef struct table_file {
    const char *path;
    int column_count, row_count;
    const char *const *column; /* the names                                                       */
    const csv_row *row;        /* with a cell for each column                                     */
} table_file;

/* Read a table. The message about a bad one has file, line and numbers. */
pons_status table_file_read(arena *memory, const char *path, table_file *out, pons_error *err);
/* The number of the column 'name', in small or capital letters; -1: none. */
int table_file_column(const table_file *t, const char *name);

#endif
