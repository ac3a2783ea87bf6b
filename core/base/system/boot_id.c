/*
 * boot_id.c - the number that a kernel gives itself when it starts; containers of a machine
 * have the same. Where it cannot be read, the name of the host.
 */
#include "base/system/boot_id.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void kernel_name(char out[KERNEL_NAME_SIZE])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    memset(out, 0, KERNEL_NAME_SIZE);
    if (file == NULL || fgets(out, KERNEL_NAME_SIZE, file) == NULL)
        gethostname(out, KERNEL_NAME_SIZE - 1);
    if (file != NULL)
        fclose(file);
}
