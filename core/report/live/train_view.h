/*
 * train_view.h - the block of lines that shows a training on a terminal (log_block): place in the
 * run, time left, speed, memory, loss, and the last validation class by class.
 */
#ifndef CORE_REPORT_LIVE_TRAIN_VIEW_H
#define CORE_REPORT_LIVE_TRAIN_VIEW_H

#include "train/trainer.h"

typedef struct train_view train_view;

/*
 * Open the view of a training on a terminal that 'l' redraws. NULL for another terminal, and
 * without memory: the training goes on without it. The functions below accept NULL.
 */
train_view *train_view_open(const experiment *e, logger *l);
/* Any thread. */
void train_view_progress(train_view *v, const trainer_progress *p);
void train_view_record(train_view *v, const pons_record *record);
void train_view_devices(train_view *v, int count, const device_reading *reading);
/* A case of the validation under way is done; any thread. */
void train_view_case(train_view *v);
/* A signal has asked for the end: a line says so at once. Any thread. */
void train_view_stopping(train_view *v);
/* Erase the block. */
void train_view_close(train_view *v);

#endif
