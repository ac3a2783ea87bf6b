/*
 * train_view.h - the block of lines that shows a training on a terminal (log_block): place in the
 * run, time left, speed, memory, loss, and the last validation class by class.
 */
#ifndef CORE_REPORT_LIVE_TRAIN_VIEW_H
#define CORE_REPORT_LIVE_TRAIN_VIEW_H

#include "train/signals.h"
#include "train/trainer.h"

typedef struct train_view train_view;

/*
 * Open the view of a training on a terminal that 'l' redraws. NULL for another terminal, and
 * without memory: the training goes on without it. The functions below accept NULL. A line tells
 * that one of 'asked' has come; it may be NULL, and is closed after the view.
 */
train_view *train_view_open(const experiment *e, signals *asked, logger *l);
/* Any thread. */
void train_view_progress(train_view *v, const trainer_progress *p);
void train_view_record(train_view *v, const pons_record *record);
void train_view_devices(train_view *v, int count, const device_reading *reading);
/* A case of the validation under way is done; any thread. */
void train_view_case(train_view *v);
/* Erase the block. */
void train_view_close(train_view *v);

#endif
