/*
 * headroom.h - memory for those who cannot do without: libraries that crash or end the process
 * where a small block of theirs is refused.
 */
#ifndef CPU_HEADROOM_H
#define CPU_HEADROOM_H

#include <pons/device.h>

/* PONS_DEVICE unless so many bytes more can be had now; 'what' wants them. Nothing is kept. */
pons_status headroom_check(size_t size, const char *what, pons_error *err);
/* Start the OpenMP threads of this one, which then stay. */
pons_status headroom_start_threads(int threads, pons_error *err);

#endif
