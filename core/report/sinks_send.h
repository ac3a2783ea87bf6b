/*
 * sinks_send.h - deliver what a run's sinks have left in its folder.
 */
#ifndef CORE_REPORT_SINKS_SEND_H
#define CORE_REPORT_SINKS_SEND_H

#include "base/log.h"
#include "pons/plugin.h"

/* Load the sinks of 'run'/resolved.ini, and let those send that can. None that can is an error. */
pons_status sinks_send(const char *run, logger *l, pons_error *err);

#endif
