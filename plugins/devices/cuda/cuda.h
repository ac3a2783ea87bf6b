/*
 * cuda.h - declarations shared by the cuda device: the device and its compiled kernels.
 */
#ifndef PLUGINS_DEVICES_CUDA_CUDA_H
#define PLUGINS_DEVICES_CUDA_CUDA_H

#include "cuda/cublaslt/cublaslt.h"
#include "cuda/cudnn/cudnn.h"
#include "cuda/driver/dcgm.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/nvtx.h"
#include "cuda/driver/nvml.h"
#include "cuda/codegen/codegen.h"
#include "cuda/autotune.h"

/* A kernel function, compiled or waiting for the next translation unit. */
typedef struct cuda_kernel {
    char name[48];
    char *text;            /* source; NULL once compiled                                          */
    cuda_function function; /* NULL until compiled                                                */
} cuda_kernel;

typedef struct compile_job compile_job;

/*
 * Kernels in the order of their requests: compiled ones up to 'ready', those of 'job' up to
 * 'begun', then those that wait.
 */
typedef struct module_cache {
    int count, room, ready, begun;
    cuda_kernel **kernel;
    int module_count;
    cuda_module *module;
    compile_job *job;      /* translation unit that is being compiled, or NULL                    */
} module_cache;

typedef struct cuda_timer cuda_timer;

typedef struct cuda_device {
    cuda_driver driver;
    cuda_compiler compiler;
    cudnn_library dnn;
    cublaslt_library blas;
    int ordinal, device, architecture; /* 90 means sm_90                                          */
    int toolkit;          /* CUDA version for libraries: supported by both the driver and the GPU */
    int threads;           /* as requested; kernels do not depend on it                           */
    bool retained, deterministic;
    size_t workspace_limit; /* most bytes of a library's kernel                                   */
    cuda_context context;
    cuda_stream stream[PONS_STREAM_COUNT];
    cuda_stream comm_stream;      /* stream of a communicator; NULL until requested               */
    cuda_event kernels_event;     /* recorded in the kernel stream, awaited by 'comm_stream'      */
    cuda_timer *timer;     /* NULL until used                                                     */
    int event_count;
    cuda_event *event;
    char *cache_dir;       /* NULL: compiled kernels are not cached                               */
    module_cache cache;
    nvml_sensors *sensors; /* NULL until used                                                     */
    dcgm_fields *fields;   /* NULL: not there                                                     */
    bool fields_asked;
    const pons_autotune_cache *autotune; /* NULL: no autotuning                                   */
} cuda_device;

/* PONS_DEVICE with the failed action and the driver's error text, unless 'result' is 0. */
pons_status cuda_check(const cuda_device *d, int result, const char *what, pons_error *err);

/*
 * module_cache.c: the kernel of a launch, shared by launches of equal source. NULL: out of memory.
 */
cuda_kernel *module_cache_add(module_cache *l, const cuda_launch *launch);
/* Write all waiting kernels as one translation unit. */
void module_cache_write(const module_cache *l, text *t);
/*
 * Start to compile the waiting kernels. If memory is short, compilation starts when a kernel is
 * needed.
 */
void module_cache_compile(void *device);
/* Wait until 'k' is compiled. If no translation unit contains 'k' yet, one is started. */
pons_status module_cache_need(cuda_device *d, const cuda_kernel *k, pons_error *err);
void module_cache_free(cuda_device *d);

/*
 * compile_job.c: compile 'source' on a thread of its own, or read the result from cache_dir, and
 * load it. The job owns the source. NULL: out of memory, and the caller still owns the source.
 */
compile_job *compile_job_begin(const cuda_device *d, text *source);
/* Wait for the job and free it. */
pons_status compile_job_end(compile_job *u, cuda_module *module, pons_error *err);

/* cuda_kernel.c: select the implementation of a request; our own generated kernels. */
pons_status cuda_prepare(void *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err);
pons_status cuda_prepare_own(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err);

/* cudnn_convolution.c, cublaslt_product.c */
pons_status cudnn_prepare(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                          bool *supported, pons_error *err);
pons_status cublaslt_prepare(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err);

/*
 * cudnn_choose.c: the plan for a convolution, autotuned if the device is set to. out->plan is NULL
 * if no engine fits.
 */
pons_status cudnn_choose_plan(cuda_device *d, const cudnn_convolution *c,
                              const cudnn_constraints *constraints,
                              cudnn_plan *out, pons_error *err);

/*
 * cublaslt_choose.c: the index of the best algorithm that the library proposes, autotuned if the
 * device is set to; else the first.
 */
pons_status cublaslt_choose_algorithm(cuda_device *d, const pons_request *request,
                                      const cublaslt_product *p, int count,
                                          const cublaslt_choice *all,
                                      int *best, pons_error *err);

/* cuda_memory.c, cuda_stream.c: operations of the device. */
void *cuda_allocate(void *device, size_t size, pons_error *err);
void cuda_release(void *device, void *memory, size_t size);
void *cuda_allocate_host(void *device, size_t size, pons_error *err);
void cuda_release_host(void *device, void *memory, size_t size);
pons_status cuda_copy(void *device, pons_stream stream, void *to, const void *from, size_t size,
                      pons_error *err);
pons_status cuda_event_record(void *device, pons_stream stream, int number, pons_error *err);
pons_status cuda_stream_wait_event(void *device, pons_stream stream, int number, pons_error *err);
pons_status cuda_event_synchronize(void *device, int number, pons_error *err);
pons_status cuda_synchronize(void *device, pons_error *err);
void *cuda_comm_stream(void *device, pons_error *err);
pons_status cuda_stream_wait_stream(void *device, void *stream, pons_error *err);
pons_status cuda_streams_open(cuda_device *d, pons_error *err);
void cuda_streams_close(cuda_device *d);
/* cuda_timer.c: likewise. cuda_timer_close waits for the kernel stream if there is a timer. */
pons_status cuda_timer_start(void *device, pons_error *err);
pons_status cuda_timer_stop(void *device, double *seconds, pons_error *err);
void cuda_timer_close(cuda_device *d);
/* cuda_peak.c: likewise. */
pons_status cuda_peak_read(void *device, pons_device_peak *peak, pons_error *err);
/* graph_capture.c: likewise. */
pons_status cuda_capture_begin(void *device, pons_error *err);
pons_status cuda_capture_end(void *device, void **captured, pons_error *err);
pons_status cuda_graph_launch(void *device, void *captured, pons_error *err);
void cuda_graph_destroy(void *device, void *captured);

extern const pons_device_operations cuda_operations;

#endif
