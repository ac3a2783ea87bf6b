/*
 * metrics.h - a run's numbers: metrics.jsonl, and the sink plugins of [log] sinks.
 */
#ifndef CORE_REPORT_METRICS_H
#define CORE_REPORT_METRICS_H

#include <pons/sink.h>

typedef struct metrics metrics;

/*
 * Open folder/metrics.jsonl and the sinks named; what comes after 'keep' is cut (R31).
 * A sink that this build lacks is PONS_CONFIG; 'where' (file:line) starts that message.
 */
pons_status metrics_open(const char *folder, pons_sink_kept keep, pons_texts sinks,
                         const char *where, metrics **out, pons_error *err);
/* One line; a name 'dice.spleen' becomes a member 'spleen' of the object 'dice'. */
pons_status metrics_write(metrics *m, const pons_record *record, pons_error *err);
/* All records on disk; before a checkpoint. */
pons_status metrics_sync(metrics *m, pons_error *err);
void metrics_close(metrics *m);

#endif
