/*
 * cuda.h - what the files of the cuda device share: the device, and its compiled kernels.
 */
#ifndef PLUGINS_DEVICES_CUDA_CUDA_H
#define PLUGINS_DEVICES_CUDA_CUDA_H

#include "cuda/cublaslt/cublaslt.h"
#include "cuda/cudnn/cudnn.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/nvtx.h"
#include "cuda/driver/nvml.h"
#include "cuda/codegen/codegen.h"
#include "cuda/autotune.h"

/* A function that was compiled, or will be with the next translation unit. */
typedef struct cuda_kernel {
    char name[48];
    char *text;            /* NULL once compiled                                                  */
    cuda_function function; /* NULL before                                                        */
} cuda_kernel;

typedef struct cuda_unit cuda_unit;

/* Kernels in the order in which they came: compiled ones, those of 'unit', and those that wait. */
typedef struct cuda_library {
    int count, room, ready, begun;
    cuda_kernel **kernel;
    int module_count;
    cuda_module *module;
    cuda_unit *unit;       /* under way; NULL: none                                               */
} cuda_library;

typedef struct cuda_timer cuda_timer;

typedef struct cuda_device {
    cuda_driver driver;
    cuda_compiler compiler;
    cuda_dnn dnn;
    cuda_blas blas;
    int ordinal, device, architecture; /* 90: sm_90                                               */
    int toolkit;           /* CUDA of libraries that go with both the driver and the card         */
    int threads;           /* as asked for: kernels do not depend on it                           */
    bool retained, deterministic;
    size_t workspace_limit; /* of a library's kernel                                              */
    cuda_context context;
    cuda_stream queue[PONS_STREAM_COUNT];
    cuda_stream sums;      /* of a communicator; NULL before it was asked for                     */
    cuda_event behind;     /* where kernels were when 'sums' was told to follow them              */
    cuda_timer *timer;     /* NULL before it was asked for                                        */
    int mark_count;
    cuda_event *mark;
    char *cache_dir;       /* NULL: compiled kernels are not kept                                 */
    cuda_library library;
    cuda_sensors *sensors; /* NULL before they were asked for                                     */
    const pons_autotune_cache *tuning; /* NULL: nothing is chosen by timing                       */
} cuda_device;

/* PONS_DEVICE with what failed and the driver's words, unless 'result' is 0. */
pons_status cuda_check(const cuda_device *d, int result, const char *what, pons_error *err);

/* module_cache.c: the kernel of a launch, the same one for the same text; NULL: out of memory. */
cuda_kernel *cuda_library_add(cuda_library *l, const cuda_launch *launch);
/* What waits, as one translation unit. */
void cuda_library_write(const cuda_library *l, text *t);
/* Begin to compile what waits. Without memory for it nothing begins before it is needed. */
void cuda_compile_waiting(void *device);
/* Return when 'k' has its function; what no unit has yet is one then. */
pons_status cuda_library_need(cuda_device *d, const cuda_kernel *k, pons_error *err);
void cuda_library_free(cuda_device *d);

/*
 * compile_job.c: compile 'source', or read what it became from cache_dir, and load it, beside the
 * thread that calls. The unit frees the source; NULL: out of memory, it is the caller's still.
 */
cuda_unit *cuda_unit_begin(const cuda_device *d, text *source);
/* Wait for that. The unit is no more. */
pons_status cuda_unit_end(cuda_unit *u, cuda_module *module, pons_error *err);

/* cuda_kernel.c: who computes a request, and our own generated kernels. */
pons_status cuda_prepare(void *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err);
pons_status cuda_prepare_own(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err);

/* cudnn_convolution.c, cublaslt_product.c */
pons_status cuda_prepare_dnn(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err);
pons_status cuda_prepare_blas(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                              bool *supported, pons_error *err);

/*
 * cudnn_choose.c: the plan for a convolution, by timing where the device is to; none fits: no plan.
 */
pons_status cuda_choose_plan(cuda_device *d, const dnn_convolution *c, const dnn_wishes *wishes,
                             dnn_plan *out, pons_error *err);

/*
 * cublaslt_choose.c: which of the algorithms that the library proposes for a product, by timing
 * where the device is to; else the first.
 */
pons_status cuda_choose_algorithm(cuda_device *d, const pons_request *request,
                                  const blas_product *p, int count, const blas_choice *all,
                                  int *best, pons_error *err);

/* cuda_memory.c, cuda_stream.c: operations of the device. */
void *cuda_allocate(void *device, size_t size, pons_error *err);
void cuda_release(void *device, void *memory, size_t size);
void *cuda_allocate_host(void *device, size_t size, pons_error *err);
void cuda_release_host(void *device, void *memory, size_t size);
pons_status cuda_copy(void *device, pons_stream queue, void *to, const void *from, size_t size,
                      pons_error *err);
pons_status cuda_mark(void *device, pons_stream queue, int number, pons_error *err);
pons_status cuda_follow(void *device, pons_stream queue, int number, pons_error *err);
pons_status cuda_reach(void *device, int number, pons_error *err);
pons_status cuda_synchronise(void *device, pons_error *err);
void *cuda_sums(void *device, pons_error *err);
pons_status cuda_precede(void *device, void *stream, pons_error *err);
pons_status cuda_queues_open(cuda_device *d, pons_error *err);
void cuda_queues_close(cuda_device *d);
/* cuda_timer.c: likewise; close waits for the queue of kernels where there is a timer. */
pons_status cuda_time(void *device, pons_error *err);
pons_status cuda_timed(void *device, double *seconds, pons_error *err);
void cuda_timer_close(cuda_device *d);
/* cuda_peak.c: likewise. */
pons_status cuda_limits(void *device, pons_device_peak *limits, pons_error *err);
/* graph_capture.c: likewise. */
pons_status cuda_record(void *device, pons_error *err);
pons_status cuda_end_record(void *device, void **recording, pons_error *err);
pons_status cuda_replay(void *device, void *recording, pons_error *err);
void cuda_forget(void *device, void *recording);

extern const pons_device_operations cuda_operations;

#endif
