/*
 * train.h - train a network from a program: an INI file, or the same values from memory.
 *
 *     const char *set[] = { "experiment.name=liver", "data.source=Task03_Liver", ... };
 *     pons_training t = { .size = sizeof t, .set_count = 12, .set = set, .record = show };
 *     pons_error err = PONS_ERROR_INIT;
 *
 *     if (pons_train(&t, &err) == PONS_INTERRUPTED)
 *         ...                                    'stop' ended it; the next call goes on
 *
 * It is 'pons train': it writes the run folder OUTPUT/NAME with its checkpoints, which
 * pons/predict.h opens, and a second call goes on from the newest one. The bits are those of the
 * command with the same values.
 *
 * Threads, process, errors and structs are as in pons/predict.h. Several trainings may run at once,
 * in folders of their own. [distribute] mode = ddp starts processes, and is PONS_CONFIG here.
 */
#ifndef CORE_PONS_TRAIN_H
#define CORE_PONS_TRAIN_H

#include <pons/sink.h>

PONS_C_BEGIN

typedef struct pons_training {
    uint32_t size;
    const char *file;         /* INI file; NULL: 'set' has all values                             */
    int set_count;            /* values that replace those of the file: "section.key=value"       */
    const char *const *set;   /* relative paths start at the file's folder, else the current one  */
    const char *resume;       /* another run's folder or checkpoint to go on from; NULL: none     */
    bool fresh;               /* start anew; an earlier run's folder is renamed                   */
    /*
     * Called after each step and each validation with what metrics.jsonl holds of it: kind "step"
     * has loss, lr, grad_norm, seconds (of the step), data_seconds (waiting) and memory (peak bytes
     * of the process); kind "validation" has METRIC.mean and METRIC.CLASS, and cases. The record
     * lives during the call. May be NULL.
     */
    void (*record)(void *context, const pons_record *record);
    /*
     * Called between steps and between batches of a validation. Once it has returned true, training
     * writes a checkpoint and ends with PONS_INTERRUPTED. May be NULL.
     */
    bool (*stop)(void *context);
    /* Called with each line that 'pons train' writes to a terminal. May be NULL. */
    void (*line)(void *context, const char *line);
    void *context;
} pons_training;

/*
 * Train until the run is finished. PONS_OK: it is, or was before. PONS_CONFIG: a value, with file
 * and line; PONS_DATA: a case; PONS_DEVICE: memory or disk; PONS_PLUGIN; PONS_FAILURE: the loss is
 * not finite. A checkpoint written before an error stays.
 */
pons_status pons_train(const pons_training *training, pons_error *err);

PONS_C_END

#endif
