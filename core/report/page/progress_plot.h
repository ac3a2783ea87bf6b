/*
 * progress_plot.h - progress.png: the loss and the validation metric of a run, the time of its
 * steps and the learning rate, one below the other, as nnU-Net draws them.
 */
#ifndef CORE_REPORT_PAGE_PROGRESS_PLOT_H
#define CORE_REPORT_PAGE_PROGRESS_PLOT_H

#include "report/page/report_run.h"

/*
 * Write a PNG. The metric of [train] best has an axis at the right, with dots for the validations
 * and a line for their moving average a = 0.9 a + 0.1 x, which begins at the first value.
 * PONS_CONFIG in a build without libpng.
 */
pons_status progress_plot_write(const report_run *r, const char *path, pons_error *err);

#endif
