/*
 * cache_size.h - the cache sizes that the system reports.
 */
#ifndef PLUGINS_DEVICES_CPU_CACHE_SIZE_H
#define PLUGINS_DEVICES_CPU_CACHE_SIZE_H

#include <stdint.h>

/*
 * Bytes of the largest cache that 'folder' describes, or 0 if it has no size. Linux has one folder
 * for each processor (/sys/devices/system/cpu/cpuN/cache) with files indexK/size, such as "32768K"
 * or "1M". sysconf is no substitute: in a virtual machine it adds up the caches of the whole host.
 */
int64_t cache_size_largest(const char *folder);

#endif
