/*
 * cache_size.c - cache sizes, from the files of Linux.
 */
#include "cpu/cache_size.h"

#include <stdio.h>

enum { LEVELS = 16 }; /* more than the data and instruction caches of any processor */

/* Bytes of the cache with this index; 0: no such cache, or its size cannot be read. */
static int64_t cache_size_of(const char *folder, int index)
{
    char path[256], unit = '\0';
    long long size = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/index%d/size", folder, index);
    if ((file = fopen(path, "re")) == NULL)
        return 0;
    if (fscanf(file, "%lld%c", &size, &unit) < 1 || size < 0 || size > INT32_MAX)
        size = 0;
    fclose(file);
    return (int64_t)size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
}

int64_t cache_size_largest(const char *folder)
{
    int64_t largest = 0;

    for (int i = 0; i < LEVELS; i++) {
        int64_t size = cache_size_of(folder, i);
        if (size > largest)
            largest = size;
    }
    return largest;
}
