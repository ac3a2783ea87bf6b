/*
 * devices_file.h - a run's devices.csv: a line for each sensor reading of a device.
 */
#ifndef CORE_REPORT_DEVICES_FILE_H
#define CORE_REPORT_DEVICES_FILE_H

#include "train/trainer.h"

typedef struct devices_file devices_file;

/*
 * Open folder/devices.csv and remove lines after step 'keep' (R31); -1: all lines. A table with
 * other columns is set aside with a warning.
 */
pons_status devices_file_open(const char *folder, int64_t keep, logger *l, devices_file **out,
                              pons_error *err);
pons_status devices_file_write(devices_file *f, int count, const device_reading *reading,
                               pons_error *err);
void devices_file_close(devices_file *f); /* NULL is allowed */

#endif
