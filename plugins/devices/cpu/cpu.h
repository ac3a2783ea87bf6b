/*
 * cpu.h - what the files of the cpu device share: the device, its threads, a kernel of each kind.
 */
#ifndef PLUGINS_DEVICES_CPU_CPU_H
#define PLUGINS_DEVICES_CPU_CPU_H

#include <pons/device.h>

#include <sched.h>

#include "cpu/map/map_kernel.h"

typedef struct cpu_device {
    pons_device_settings settings;
    int threads;
    cpu_set_t share;       /* processors; of the thread that opened the device                    */
    const map_lanes *lanes;
    bool compiles_maps;    /* where jit.h can                                             */
    int64_t past_size;     /* bytes: maps write outputs from this size on past the caches         */
    const struct narrow_lanes *narrow;
    const struct direct_lanes *direct;
    const struct rows_lanes *rows;
    const struct wide_unit *wide; /* NULL: bf16_gemm.h does not run */
    struct onednn *library; /* NULL: built without oneDNN */
} cpu_device;

/* Declines with *supported = false; as in pons_device_operations. */
typedef pons_status (*cpu_prepare)(cpu_device *device, const pons_request *request,
                                   pons_kernel *kernel, bool *supported, pons_error *err);

pons_status map_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                        bool *supported, pons_error *err);

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err);
pons_status matmul_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err);

pons_status arg_max_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                            bool *supported, pons_error *err);
pons_status extreme_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                            bool *supported, pons_error *err);
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

/* Where element i of a padded axis comes from, or -1: a zero. 'n' is the extent before. */
int64_t cpu_pad_source(const pons_pad_attributes *p, int axis, int64_t i, int64_t n);

/* The k-th of 'count' contiguous shares of n things; more shares than things share them. */
void cpu_share(int index, int count, int n, int *first, int *end);

/*
 * body(context, i, thread) for i = 0 .. count - 1 on at most 'threads' threads, in any order. What
 * a body computes must not depend on 'thread', which only names memory to work in.
 */
void cpu_parallel(int threads, int64_t count, void (*body)(void *context, int64_t i, int thread),
                  void *context);

/* For tests: the row of map_lanes_row that kernels prepared from now on use. */
void cpu_device_choose_row(void *device, int row);
/* And that maps are not compiled, as where the system lets no memory be run that was written. */
void cpu_device_interpret(void *device);
/* And that maps write all outputs past the caches that can go there, of whatever size. */
void cpu_device_write_past(void *device);
extern const pons_device_operations cpu_operations;

#endif
