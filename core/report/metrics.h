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
/* The most cases whose pictures one of the experiment's sinks takes after a validation. */
int metrics_picture_count(const experiment *e);
/* Give a picture to the sinks that take it; one thread at a time, beside that of the records. */
void metrics_picture(metrics *m, const pons_picture *picture);
/* Whether a sink takes the network. */
bool metrics_takes_network(const metrics *m);
/* Give the network to the sinks that take it, before the first record. */
void metrics_network(metrics *m, const pons_network *network);
/* Flush all records to disk, before a checkpoint. */
pons_status metrics_sync(metrics *m, pons_error *err);
/* Tell the sinks how the run ends, before metrics_close; 'm' may be NULL. */
void metrics_end(metrics *m, pons_status status);
void metrics_close(metrics *m);

#endif
