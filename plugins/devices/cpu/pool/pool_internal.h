/*
 * pool_internal.h - the windows of a pool, and the gradient of a maximum pool.
 */
#ifndef PLUGINS_DEVICES_CPU_POOL_POOL_INTERNAL_H
#define PLUGINS_DEVICES_CPU_POOL_POOL_INTERNAL_H

#include "cpu/cpu.h"

/*
 * The part of window 'i' inside an axis of n elements. Returns the size of the window with its
 * padding.
 */
int64_t pool_span(const pons_pool *p, int axis, int64_t n, int64_t i, int64_t *begin,
                    int64_t *end);

pons_status pool_gradient_prepare(cpu_device *device, const pons_request *request,
                                  pons_kernel *kernel, pons_error *err);

#endif
