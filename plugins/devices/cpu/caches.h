/*
 * caches.h - what the system says of a processor's caches.
 */
#ifndef CPU_CACHES_H
#define CPU_CACHES_H

#include <stdint.h>

/*
 * Bytes of the largest cache of a processor, of which 'folder' tells as Linux does
 * (/sys/devices/system/cpu/cpuN/cache): indexK/size, "32768K" or "1M". 0: it does not say. sysconf
 * is no substitute: within a virtual machine it adds up the caches of the whole host.
 */
int64_t caches_largest(const char *folder);

#endif
