/*
 * bench_modes.h - pons bench --modes: the same measurement with the devices of this machine as one
 * replica and as several, in one process and in several.
 */
#ifndef CORE_CLI_BENCH_BENCH_MODES_H
#define CORE_CLI_BENCH_BENCH_MODES_H

#include "cli/command.h"
#include "config/sections.h"

/*
 * Run 'pons bench' with 'words' (NULL-terminated, from "bench" on, --json among them) once for each
 * mode and number of devices, one after another, and print an array of what they print, or a table.
 * What cannot be with several devices (PONS_CONFIG) is left out with a warning.
 */
pons_status bench_modes(const char *const *words, const sections *s, bool json, logger *l,
                        pons_error *err);

#endif
