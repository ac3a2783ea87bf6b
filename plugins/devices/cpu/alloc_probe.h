/*
 * alloc_probe.h - memory for those who cannot do without: libraries that crash or end the process
 * where a small block of theirs is refused.
 */
#ifndef PLUGINS_DEVICES_CPU_ALLOC_PROBE_H
#define PLUGINS_DEVICES_CPU_ALLOC_PROBE_H

#include <pons/device.h>

/*
 * PONS_DEVICE unless so many bytes more can be had now; 'what' wants them. Nothing is kept, but
 * other threads wait with theirs until headroom_end, which follows a success.
 */
pons_status headroom_begin(size_t size, const char *what, pons_error *err);
void headroom_end(void);
/* Start the OpenMP threads of this one, which then stay. */
pons_status headroom_start_threads(int threads, pons_error *err);

#endif
