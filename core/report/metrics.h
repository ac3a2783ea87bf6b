/*
 * metrics.h - the metrics of a run: metrics.jsonl, and the plugins of [log] sinks.
 */
#ifndef CORE_REPORT_METRICS_H
#define CORE_REPORT_METRICS_H

#include <pons/sink.h>

#include "experiment/experiment.h"

typedef struct metrics metrics;

/*
 * Open folder/metrics.jsonl and the experiment's sinks; the experiment must outlive it. Records
 * after 'keep' are removed (metrics_resume.h).
 */
pons_status metrics_open(const char *folder, pons_sink_kept keep, const experiment *e,
                         metrics **out, pons_error *err);
/* Write a record as one line; a name 'dice.spleen' becomes member 'spleen' of object 'dice'. */
pons_status metrics_write(metrics *m, const pons_record *record, pons_error *err);
/* Flush all records to disk, before a checkpoint. */
pons_status metrics_sync(metrics *m, pons_error *err);
/* Tell the sinks how the run ends, before metrics_close; 'm' may be NULL. */
void metrics_end(metrics *m, pons_status status);
void metrics_close(metrics *m);

#endif
