/*
 * command_config.c - pons config: the values that a training would have, with the origin of each.
 */
#include <stdio.h>

#include "cli/command.h"
#include "train/trainer.h"

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    experiment_overrides known = { 0 };
    experiment *e = NULL;
    config *c = NULL;

    if (invocation_config(call, call->argument[0], &c, err) != PONS_OK)
        return err->status;
    if (experiment_open(c, EXPERIMENT_TRAIN, &known, call->log, &e, err) == PONS_OK)
        config_print(c, stdout);
    experiment_close(e);
    config_close(c);
    return err->status;
}

const command command_config = {
    "config", "every value of a training, and the line that it comes from", "FILE.ini", NULL, 0,
    "", 1, 1, run
};
