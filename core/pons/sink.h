/*
 * sink.h - a sink plugin: where a run's numbers go besides metrics.jsonl.
 *
 * Records arrive in order from one thread. 'flush' comes from another one, also while a record is
 * being written: what was written before it began is on disk when it returns. (fflush, which holds
 * the file's own lock, and fsync do that.) On resume 'open' is told which earlier records stay:
 * what was written after the checkpoint was saved comes once more. The options of sink NAME stand
 * in [log.NAME] of the INI file; 'config' is the struct that they fill.
 */
#ifndef CORE_PONS_SINK_H
#define CORE_PONS_SINK_H

#include <pons/plugin.h>
#include <stdio.h>

typedef struct pons_metric {
    const char *name; /* "loss", "dice.spleen"                                                    */
    double value;     /* NaN: not defined                                                         */
} pons_metric;

typedef struct pons_record {
    const char *kind; /* "step" or "validation"                                                   */
    int64_t step, epoch;
    int count;
    const pons_metric *metric;
} pons_record;

/* The last step whose records stay, and the last one for the kind "validation"; -1: none.       */
typedef struct pons_sink_kept {
    int64_t step, validation;
} pons_sink_kept;

typedef struct pons_sink_operations {
    /* 'folder' is the run folder; records after 'keep' are cut.                                  */
    pons_status (*open)(const void *config, const char *folder, pons_sink_kept keep, void **sink,
                        pons_error *err);
    pons_status (*write)(void *sink, const pons_record *record, pons_error *err);
    pons_status (*flush)(void *sink, pons_error *err); /* before a checkpoint gets its name       */
    void (*close)(void *sink);
} pons_sink_operations;

/*
 * Open a file of the run folder, mode "w", "a" or "a+" as for fopen. What is no regular file itself
 * (a link, a FIFO, a device) is refused: nothing is written elsewhere, and no open waits. The
 * stream is the caller's, who closes it.
 */
pons_status pons_sink_file(const char *path, const char *mode, FILE **file, pons_error *err);

#define PONS_SINK(NAME, VERSION, SUMMARY, CONFIG_SIZE, OPTIONS, OPERATIONS)                       \
    PONS_PLUGIN_DEFINE_(PONS_KIND_SINK, NAME, CONFIG_SIZE, VERSION, SUMMARY, OPTIONS, OPERATIONS)

#endif
