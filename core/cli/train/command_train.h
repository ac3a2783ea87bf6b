/*
 * command_train.h - the training of pons train for a program in place of a command line.
 */
#ifndef CORE_CLI_TRAIN_COMMAND_TRAIN_H
#define CORE_CLI_TRAIN_COMMAND_TRAIN_H

#include "cli/train_folds.h"

#include <pons/sink.h>

/*
 * The program around a training. There are then no signals, no watchdog and no other processes.
 * 'record' is called after each step and validation, 'stop' as in trainer_observer.
 */
typedef struct train_host {
    void (*record)(void *context, const pons_record *record);
    bool (*stop)(void *context);
    void *context;
} train_host;

/* Train the run that call->argument[0] names, an INI file or NULL, with the values of call->set. */
pons_status command_train_hosted(const invocation *call, const train_flags *given,
                                 const train_host *host, pons_error *err);

#endif
