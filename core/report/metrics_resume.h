/*
 * metrics_resume.h - remove the records of metrics.jsonl that a resumed run will repeat (R31).
 */
#ifndef CORE_REPORT_METRICS_RESUME_H
#define CORE_REPORT_METRICS_RESUME_H

#include <pons/sink.h>

#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * 'file' is open at 'path' for reading and appending. Records after 'keep' and a line that was cut
 * off are removed. A line that is no record is moved to 'path'.damaged, with a warning that names
 * it; no record behind it is lost. So is a record after 'keep' that a kept record follows.
 * *replaced: 'path' is another file, which must be opened again.
 */
pons_status metrics_resume(FILE *file, const char *path, pons_sink_kept keep, logger *l,
                           bool *replaced, pons_error *err);

#endif
