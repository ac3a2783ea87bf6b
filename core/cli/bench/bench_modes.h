/*
 * bench_modes.h - pons bench --modes: one measurement with one and with several replicas, in one
 * and in several processes.
 */
#ifndef CORE_CLI_BENCH_BENCH_MODES_H
#define CORE_CLI_BENCH_BENCH_MODES_H

#include "cli/command.h"
#include "config/sections.h"

/*
 * Run 'pons bench' with 'words' for each mode and number of devices, in sequence. 'words' are
 * NULL-terminated and begin with "bench"; --json is among them. Print an array of the results, or a
 * table. Arrangements that the file does not allow (PONS_CONFIG) are left out with a warning.
 */
pons_status bench_modes(const char *const *words, const sections *s, bool json, logger *l,
                        pons_error *err);

#endif
