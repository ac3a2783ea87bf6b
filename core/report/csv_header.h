/*
 * csv_header.h - the first line of a run's tables, which says what their columns are.
 */
#ifndef CORE_REPORT_CSV_HEADER_H
#define CORE_REPORT_CSV_HEADER_H

#include <pons/plugin.h>

#include "base/log.h"

/*
 * Check the table at 'path' before a run goes on with it. A table whose first line is not 'header'
 * (line end included) is renamed to PATH.damaged, with a warning. An empty one stays.
 */
pons_status csv_header_check(const char *path, const char *header, logger *l, pons_error *err);

#endif
