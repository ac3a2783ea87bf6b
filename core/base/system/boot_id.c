/*
 * boot_id.c - /proc/sys/kernel/random/boot_id; the host name where that cannot be read.
 */
#include "base/system/boot_id.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void boot_id(char out[BOOT_ID_SIZE])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    memset(out, 0, BOOT_ID_SIZE);
    if (file == NULL || fgets(out, BOOT_ID_SIZE, file) == NULL)
        gethostname(out, BOOT_ID_SIZE - 1);
    if (file != NULL)
        fclose(file);
}
