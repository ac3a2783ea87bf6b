/*
 * csv_header.h - the header line of a run's tables, which names their columns.
 */
#ifndef CORE_REPORT_CSV_HEADER_H
#define CORE_REPORT_CSV_HEADER_H

#include <pons/plugin.h>

#include "base/log.h"

/*
 * Check the table at 'path' before a run resumes it. A table whose first line is not 'header'
 * (with its line end) is renamed to PATH.damaged, with a warning. An empty table stays.
 */
pons_status csv_header_check(const char *path, const char *header, logger *l, pons_error *err);

#endif
