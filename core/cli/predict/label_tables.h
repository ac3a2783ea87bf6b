/*
 * label_tables.h - tables of names and colours of labels, for programs that show predictions.
 */
#ifndef CORE_CLI_PREDICT_LABEL_TABLES_H
#define CORE_CLI_PREDICT_LABEL_TABLES_H

#include "base/arena.h"

#include <pons/plugin.h>

/* An entry of a table; id 0 is the background, which is transparent. */
typedef struct label_entry {
    int id;
    const char *name;
} label_entry;

/*
 * Write the table of a format: "slicer" (.ctbl), "itksnap" (.label) or "bids" (.tsv). 'stem' is the
 * path without the ending. Colours depend on the position in the table alone.
 */
pons_status label_table_write(arena *memory, const char *format, const char *stem, int count,
                              const label_entry *entry, pons_error *err);

#endif
