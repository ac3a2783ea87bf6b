/*
 * curves_table.h - the numbers of runs as a wide table for spreadsheets and scripts.
 */
#ifndef CORE_REPORT_HISTORY_CURVES_TABLE_H
#define CORE_REPORT_HISTORY_CURVES_TABLE_H

#include <pons/plugin.h>

/*
 * Write CSV (RFC 4180): a row for each record of metrics.jsonl and a column for each name, empty
 * where a record lacks it. The first columns are kind, step and epoch; before them, of several
 * runs, the run as it is given in 'run'. PONS_DATA: a run has no metrics.jsonl. The file is
 * complete or not written.
 */
pons_status curves_table_write(int count, const char *const *run, const char *path,
                               pons_error *err);

#endif
