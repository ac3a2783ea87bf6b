/*
 * environment.h - the environment and the limits of the process.
 */
#ifndef CORE_CLI_ENVIRONMENT_H
#define CORE_CLI_ENVIRONMENT_H

#include <pons/plugin.h>

/* Hide the variables of kernel libraries (R20). */
void environment_prepare(void);
/* Check the limits that no command survives. The function itself writes an error to stderr. */
pons_status environment_check(void);

#endif
