/*
 * errno_status.h - the status of a failed system call.
 */
#ifndef CORE_BASE_ERRNO_STATUS_H
#define CORE_BASE_ERRNO_STATUS_H

#include <pons/plugin.h>

/*
 * PONS_DEVICE where the process or the machine has run out of descriptors, memory, processes or
 * locks: the file is not to blame. Otherwise 'status', the caller's status for a bad file.
 */
pons_status errno_status(int problem, pons_status status);

#endif
