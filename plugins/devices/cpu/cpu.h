/*
 * cpu.h - declarations shared by the cpu device: the device itself, its threads and one prepare
 * function for each kind of kernel.
 */
#ifndef PLUGINS_DEVICES_CPU_CPU_H
#define PLUGINS_DEVICES_CPU_CPU_H

#include <pons/device.h>

#include <sched.h>

#include "cpu/isa.h"
#include "cpu/isa_rows.h"
#include "cpu/map/map_internal.h"

typedef struct cpu_device {
    pons_device_settings settings;
    int threads;
    cpu_set_t share;       /* processors of this replica, among those of the opening thread       */
    isa isa;               /* instruction set by which kernels are selected                       */
    const map_lanes *lanes;
    bool compiles_maps;    /* true unless a test chose the interpreter                        */
    int64_t non_temporal_size;     /* bytes from which map outputs are stored non-temporally      */
    const struct few_channels_loops *few_channels;
    const struct direct_lanes *direct;
    const struct row_loops *rows;
    struct onednn *library; /* NULL: built without oneDNN */
} cpu_device;

/*
 * Prepare a kernel, or set *supported = false to decline the request, as in pons_device_operations.
 */
typedef pons_status (*cpu_prepare)(cpu_device *device, const pons_request *request,
                                   pons_kernel *kernel, bool *supported, pons_error *err);

pons_status map_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                        bool *supported, pons_error *err);

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err);
pons_status matmul_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err);

pons_status argmax_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err);
pons_status argmax_axes_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err);
pons_status move_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err);

pons_status pad_gradient_prepare(cpu_device *device, const pons_request *request,
                                 pons_kernel *kernel, bool *supported, pons_error *err);
pons_status pool_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err);
pons_status resize_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err);

pons_status op_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                       bool *supported, pons_error *err);

pons_status patch_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                          bool *supported, pons_error *err);

/*
 * Source index of element i of a padded axis, or -1 for a zero. 'n' is the extent before padding.
 */
int64_t cpu_pad_source(const pons_pad_attributes *p, int axis, int64_t i, int64_t n);

/*
 * Range [*first, *end) of the index-th of 'count' contiguous shares of n items. With more shares
 * than items, shares overlap.
 */
void cpu_threads_share(int index, int count, int n, int *first, int *end);

/*
 * Call body(context, i, thread) for i = 0 .. count - 1 on at most 'threads' threads, in any order.
 * The result of a body must not depend on 'thread', which only selects work memory.
 */
void cpu_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i,
                                                               int thread),
                      void *context);

extern const pons_device_operations cpu_operations;

#endif
