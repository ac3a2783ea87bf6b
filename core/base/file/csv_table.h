/*
 * csv_table.h - parse CSV (RFC 4180) or TSV: rows of cells, with the line on which each row begins.
 *
 * Cells in "quotes" may hold delimiters, line breaks and doubled quotes. Other cells lose the
 * blanks around them. Lines end with \n, \r\n or \r; empty lines are no rows. A byte order mark
 * is skipped.
 */
#ifndef CORE_BASE_FILE_CSV_TABLE_H
#define CORE_BASE_FILE_CSV_TABLE_H

#include "base/arena.h"

#include <pons/plugin.h>

typedef struct csv_row {
    int line;                  /* from 1                                                          */
    int count;
    const char **cell;
} csv_row;

typedef struct csv_table {
    int count;
    csv_row *row;
} csv_table;

/*
 * Read a file. Tabs divide the cells of a .tsv file; else that one of comma, semicolon and tab that
 * occurs most often in the first line. A malformed file is PONS_DATA. Everything lies in 'memory'.
 */
pons_status csv_table_read(arena *memory, const char *path, csv_table *out, pons_error *err);

#endif
