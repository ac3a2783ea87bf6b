/*
 * metrics_resume.h - which records of an earlier start stay in metrics.jsonl (R31).
 */
#ifndef CORE_REPORT_METRICS_RESUME_H
#define CORE_REPORT_METRICS_RESUME_H

#include <pons/sink.h>

#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * 'file' is open at 'path' for reading and appending. Records behind 'keep' are removed, and so is
 * a line that was cut off while it was written. A line that is no record goes to 'path'.damaged,
 * with a warning that names it; no record behind it is lost. So does a record behind 'keep' that
 * stands before one to be kept. *replaced: 'path' is another file then, to be opened again.
 */
pons_status metrics_resume(FILE *file, const char *path, pons_sink_kept keep, logger *l,
                           bool *replaced, pons_error *err);

#endif
