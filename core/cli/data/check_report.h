/*
 * check_report.h - the findings of pons data check, as tables or as one JSON object.
 */
#ifndef CORE_CLI_DATA_CHECK_REPORT_H
#define CORE_CLI_DATA_CHECK_REPORT_H

#include <stdio.h>

#include "base/log.h"
#include "data/check/dataset_check.h"

/* Print layout, cases, channels and regions to the standard output. */
void check_report_print_dataset(const dataset *d);
/*
 * Print labels, geometry and problems to the standard output; LOG_VERBOSE: also a row for each id,
 * LOG_QUIET: problems alone.
 */
void check_report_print(const dataset *d, const dataset_report *r, log_level level);
/*
 * {"layout":..,"classes":[..],"extent":{..},"cases":[..],"problems":[..],"errors":..}. Numbers of
 * an axis are in the order i j k.
 */
void check_report_print_json(const dataset *d, const dataset_report *r, FILE *to);
/* The class of a label id; "(ignored)" or "(not listed)" if it is of none. */
const char *check_report_class(const dataset *d, int64_t id);

#endif
