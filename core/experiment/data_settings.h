/*
 * data_settings.h - [data], [patch], [train] and [experiment] as settings of dataset, cache and
 * loader.
 */
#ifndef CORE_EXPERIMENT_DATA_SETTINGS_H
#define CORE_EXPERIMENT_DATA_SETTINGS_H

#include "data/loader/loader.h"

/* Settings for a single replica: M = accumulate. */
void dataset_settings_fill(config *c, const sections *s, dataset_settings *out);
/*
 * Put file, line and key before an error of dataset_open with these settings
 * (config_location_add).
 */
pons_status dataset_blame(config *c, const sections *s, pons_error *err);
/* The options of the layout 'slides'. */
slide_settings data_slide_settings(const data_options *d);
/* The path of the table that [data] labels names; NULL: none. */
const char *data_label_table(config *c, const sections *s);
/* 'window' stays empty, which the caller fills to have a smart cache. */
void cache_settings_fill(const sections *s, cache_settings *out);
/*
 * The window of an epoch for 'total' training cases, by smart_share and smart_replace. With
 * cache_share = rank each of the micro-batches of a step has a lane.
 */
case_window data_case_window(const data_options *d, int total, int micro_batches);
void loader_settings_fill(const sections *s, loader_settings *out);

#endif
