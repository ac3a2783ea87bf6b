/*
 * disk_preload.h - preload disk_shim.h's failing or slow disk into programs that a test starts.
 */
#ifndef TESTS_DISK_PRELOAD_H
#define TESTS_DISK_PRELOAD_H

#include "support/asserts.h"

#include <stdlib.h>

/*
 * 'fault' is "PATH CALL NUMBER ERROR SHORTEN DELAY_MS"; NULL removes the fault. 'gate' is the file
 * that a call waits for, or NULL. The first call is made in the build folder.
 */
void preload_disk(const char *fault, const char *gate);

#endif
