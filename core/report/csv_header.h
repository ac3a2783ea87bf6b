/*
 * csv_header.h - the first line of a run's tables, which says what their columns are.
 */
#ifndef CORE_REPORT_CSV_HEADER_H
#define CORE_REPORT_CSV_HEADER_H

#include <pons/plugin.h>

#include "base/log.h"

/*
 * Before a run goes on with the table at 'path': one that begins with another line than 'header',
 * which has its line end, gets the name PATH.damaged, with a warning. An empty one may stay.
 */
pons_status csv_header_check(const char *path, const char *header, logger *l, pons_error *err);

#endif
