/*
 * metrics.h - a run's numbers: metrics.jsonl, and the sink plugins of [log] sinks.
 */
#ifndef CORE_REPORT_METRICS_H
#define CORE_REPORT_METRICS_H

#include <pons/sink.h>

#include "experiment/experiment.h"

typedef struct metrics metrics;

/*
 * Open folder/metrics.jsonl and the experiment's sinks, which it keeps open longer than this; what
 * comes after 'keep' is cut (metrics_resume.h).
 */
pons_status metrics_open(const char *folder, pons_sink_kept keep, const experiment *e,
                         metrics **out, pons_error *err);
/* One line; a name 'dice.spleen' becomes a member 'spleen' of the object 'dice'. */
pons_status metrics_write(metrics *m, const pons_record *record, pons_error *err);
/* All records on disk; before a checkpoint. */
pons_status metrics_sync(metrics *m, pons_error *err);
void metrics_close(metrics *m);

#endif
