/*
 * apart.h - work that may end its process, in a process of its own.
 */
#ifndef CORE_BASE_APART_H
#define CORE_BASE_APART_H

#include <pons/plugin.h>

/*
 * What 'work' returns, called in a child of this process, which has one thread so far. Output goes
 * where this one's goes, memory is the child's own. PONS_PLUGIN, saying how, where the process ends
 * before 'work' returns, or badly behind it; 'who' begins that line.
 */
pons_status apart_run(pons_status (*work)(const void *context, pons_error *err),
                      const void *context, const char *who, pons_error *err);

#endif
