/*
 * alloc_probe.h - probes of memory and threads, before calls of libraries that crash or end the
 * process when a small allocation fails.
 */
#ifndef PLUGINS_DEVICES_CPU_ALLOC_PROBE_H
#define PLUGINS_DEVICES_CPU_ALLOC_PROBE_H

#include <pons/device.h>

/*
 * Check that 'size' more bytes can be allocated for 'what'; PONS_DEVICE if not. The bytes are freed
 * again. After a success the probes of other threads wait until alloc_probe_end.
 */
pons_status alloc_probe_begin(size_t size, const char *what, pons_error *err);
void alloc_probe_end(void);
/* Start the OpenMP threads of the calling thread, which then stay. */
pons_status alloc_probe_start_threads(int threads, pons_error *err);

#endif
