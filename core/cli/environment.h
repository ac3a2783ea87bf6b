/*
 * environment.h - the environment and the limits that the process runs under.
 */
#ifndef CORE_CLI_ENVIRONMENT_H
#define CORE_CLI_ENVIRONMENT_H

#include <pons/plugin.h>

/* Hide what libraries of kernels would read from the environment (R20). */
void environment_prepare(void);
/* Check the limits that no command survives. It writes the line about one to stderr by itself. */
pons_status environment_check(void);

#endif
