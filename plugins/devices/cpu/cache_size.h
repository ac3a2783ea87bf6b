/*
 * cache_size.h - what the system says of a processor's caches.
 */
#ifndef PLUGINS_DEVICES_CPU_CACHE_SIZE_H
#define PLUGINS_DEVICES_CPU_CACHE_SIZE_H

#include <stdint.h>

/*
 * Bytes of the largest cache of a processor, of which 'folder' tells as Linux does
 * (/sys/devices/system/cpu/cpuN/cache): indexK/size, "32768K" or "1M". 0: it does not say. sysconf
 * is no substitute: within a virtual machine it adds up the caches of the whole host.
 */
int64_t caches_largest(const char *folder);

#endif
