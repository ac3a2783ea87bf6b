/*
 * schedule.h - a schedule plugin: the factor on the base learning rate at time t of total.
 *
 * A pure function: t = 0, 1, ... counts attempted steps (or epochs, [schedule] unit). Warm-up is
 * the core's: for t < warmup the factor is multiplier + (1 - multiplier) t / max(1, warmup), and
 * the plugin is then asked for (t - warmup, total - warmup).
 */
#ifndef CORE_PONS_SCHEDULE_H
#define CORE_PONS_SCHEDULE_H

#include <pons/plugin.h>

PONS_C_BEGIN

typedef struct pons_schedule_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    double (*factor)(const void *config, double t, double total);
} pons_schedule_operations;

#define PONS_SCHEDULE(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                \
    PONS_PLUGIN_DEFINE_(PONS_KIND_SCHEDULE, pons_schedule_operations, NAME, VERSION, SUMMARY,     \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
