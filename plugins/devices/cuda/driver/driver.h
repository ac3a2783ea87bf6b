/*
 * driver.h - NVIDIA's driver and runtime compiler, loaded when the device is opened.
 *
 * No CUDA library is linked and no CUDA header is needed. The functions are declared here as in the
 * driver API since CUDA 11.4, and looked up by name.
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_DRIVER_H
#define PLUGINS_DEVICES_CUDA_DRIVER_DRIVER_H

#include "cuda/driver/toolkit.h"

#include <pons/device.h>

typedef struct cuda_context_object *cuda_context;
typedef struct cuda_stream_object *cuda_stream;
typedef struct cuda_event_object *cuda_event;
typedef struct cuda_module_object *cuda_module;
typedef struct cuda_function_object *cuda_function;
typedef struct cuda_graph_object *cuda_graph;
typedef struct cuda_executable_object *cuda_executable;
typedef struct nvrtc_program_object *nvrtc_program;
typedef unsigned long long cuda_address;

/* Device attributes. */
enum {
    CUDA_CLOCK = 13, CUDA_PROCESSORS = 16, CUDA_MEMORY_CLOCK = 36, CUDA_MEMORY_BITS = 37,
    CUDA_CAPABILITY_MAJOR = 75, CUDA_CAPABILITY_MINOR = 76
};
enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_EVENT_NO_TIMING = 2, CUDA_CAPTURE_THREAD_LOCAL = 1 };

#define CUDA_DRIVER_FUNCTIONS(X)                                                                  \
    X(init, "cuInit", (unsigned flags))                                                           \
    X(version, "cuDriverGetVersion", (int *version))                                              \
    X(error_name, "cuGetErrorName", (int result, const char **name))                              \
    X(error_text, "cuGetErrorString", (int result, const char **text))                            \
    X(count, "cuDeviceGetCount", (int *count))                                                    \
    X(get, "cuDeviceGet", (int *device, int ordinal))                                             \
    X(name, "cuDeviceGetName", (char *name, int size, int device))                                \
    X(address, "cuDeviceGetPCIBusId", (char *address, int size, int device))                      \
    X(memory, "cuDeviceTotalMem_v2", (size_t *size, int device))                                  \
    X(attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                 \
    X(retain, "cuDevicePrimaryCtxRetain", (cuda_context *context, int device))                    \
    X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                                      \
    X(use, "cuCtxSetCurrent", (cuda_context context))                                             \
    X(stream_new, "cuStreamCreate", (cuda_stream *stream, unsigned flags))                        \
    X(stream_free, "cuStreamDestroy_v2", (cuda_stream stream))                                    \
    X(stream_wait, "cuStreamSynchronize", (cuda_stream stream))                                   \
    X(stream_follow, "cuStreamWaitEvent", (cuda_stream stream, cuda_event event, unsigned flags)) \
    X(call_host, "cuLaunchHostFunc", (cuda_stream stream, void (*function)(void *context),        \
                                      void *context))                                             \
    X(capture, "cuStreamBeginCapture_v2", (cuda_stream stream, int mode))                         \
    X(end_capture, "cuStreamEndCapture", (cuda_stream stream, cuda_graph *graph))                 \
    X(graph_free, "cuGraphDestroy", (cuda_graph graph))                                           \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (cuda_executable *executable,             \
                                                         cuda_graph graph,                        \
                                                         unsigned long long flags))               \
    X(graph_launch, "cuGraphLaunch", (cuda_executable executable, cuda_stream stream))            \
    X(executable_free, "cuGraphExecDestroy", (cuda_executable executable))                        \
    X(event_new, "cuEventCreate", (cuda_event *event, unsigned flags))                            \
    X(event_free, "cuEventDestroy_v2", (cuda_event event))                                        \
    X(event_record, "cuEventRecord", (cuda_event event, cuda_stream stream))                      \
    X(event_wait, "cuEventSynchronize", (cuda_event event))                                       \
    X(event_time, "cuEventElapsedTime", (float *milliseconds, cuda_event from, cuda_event to))    \
    X(allocate, "cuMemAlloc_v2", (cuda_address *memory, size_t size))                             \
    X(free, "cuMemFree_v2", (cuda_address memory))                                                \
    X(clear, "cuMemsetD8_v2", (cuda_address memory, unsigned char value, size_t size))            \
    X(host_new, "cuMemHostAlloc", (void **memory, size_t size, unsigned flags))                   \
    X(host_free, "cuMemFreeHost", (void *memory))                                                 \
    X(upload, "cuMemcpyHtoD_v2", (cuda_address to, const void *from, size_t size))                \
    X(copy, "cuMemcpyAsync", (cuda_address to, cuda_address from, size_t size,                    \
                              cuda_stream stream))                                                \
    X(module_load, "cuModuleLoadData", (cuda_module *module, const void *image))                  \
    X(module_free, "cuModuleUnload", (cuda_module module))                                        \
    X(function, "cuModuleGetFunction", (cuda_function *function, cuda_module module,              \
                                        const char *name))                                        \
    X(launch, "cuLaunchKernel", (cuda_function function, unsigned grid_x, unsigned grid_y,        \
                                 unsigned grid_z, unsigned block_x, unsigned block_y,             \
                                 unsigned block_z, unsigned shared, cuda_stream stream,           \
                                 void **parameters, void **extra))

#define CUDA_COMPILER_FUNCTIONS(X)                                                                \
    X(get_version, "nvrtcVersion", (int *major, int *minor))                                      \
    X(count_known, "nvrtcGetNumSupportedArchs", (int *count))                                     \
    X(get_known, "nvrtcGetSupportedArchs", (int *architectures))                                  \
    X(create, "nvrtcCreateProgram", (nvrtc_program *program, const char *text, const char *name,  \
                                     int headers, const char *const *header,                      \
                                     const char *const *header_name))                             \
    X(destroy, "nvrtcDestroyProgram", (nvrtc_program *program))                                   \
    X(compile, "nvrtcCompileProgram", (nvrtc_program program, int options,                        \
                                       const char *const *option))                                \
    X(log_size, "nvrtcGetProgramLogSize", (nvrtc_program program, size_t *size))                  \
    X(log, "nvrtcGetProgramLog", (nvrtc_program program, char *log))                              \
    X(binary_size, "nvrtcGetCUBINSize", (nvrtc_program program, size_t *size))                    \
    X(binary, "nvrtcGetCUBIN", (nvrtc_program program, char *binary))                             \
    X(ptx_size, "nvrtcGetPTXSize", (nvrtc_program program, size_t *size))                         \
    X(ptx, "nvrtcGetPTX", (nvrtc_program program, char *ptx))

#define CUDA_MEMBER(name, symbol, parameters) int(*name) parameters;
typedef struct cuda_driver {
    void *library;
    int cuda;                  /* CUDA version: 13                                                */
    CUDA_DRIVER_FUNCTIONS(CUDA_MEMBER)
} cuda_driver;

typedef struct cuda_compiler {
    void *library;
    int major, minor;          /* version of NVRTC                                                */
    int target;                /* target architecture                                             */
    bool translated;           /* the target is older than the GPU, as PTX for the driver */
    CUDA_COMPILER_FUNCTIONS(CUDA_MEMBER)
} cuda_compiler;
#undef CUDA_MEMBER

/* PONS_DEVICE with one line ("no driver: ...") if there is no driver. */
pons_status cuda_driver_open(cuda_driver *d, pons_error *err);
void cuda_driver_close(cuda_driver *d);
/*
 * Find a compiler for GPU 'ordinal' of this architecture (90: sm_90) and a driver of CUDA version
 * 'cuda'. If no compiler supports the GPU, one not newer than the driver compiles for the newest
 * older architecture that it supports. If there is none either, PONS_DEVICE with one line that
 * lists what each compiler supports.
 */
pons_status cuda_compiler_open(cuda_compiler *c, int cuda, int ordinal, int architecture,
                               pons_error *err);
void cuda_compiler_close(cuda_compiler *c);

/* The bits equal the cpu device's: products and sums are fused only where the source says so. */
#define CUDA_FUSING "--fmad=false"
#define CUDA_LANGUAGE "--std=c++17"

/*
 * Compile 'source' for 'architecture' (90 for sm_90), or to PTX if the compiler's target is
 * translated. *binary is malloc'ed. An error has the compiler's first error line. 'log' is NULL, or
 * receives ptxas's report of each kernel, malloc'ed.
 */
pons_status cuda_compile(const cuda_compiler *c, const char *source, int architecture,
                         char **binary, size_t *size, char **log, pons_error *err);

#endif
