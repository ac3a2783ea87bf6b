/*
 * fake.h - NVIDIA's driver, its runtime compiler, cuBLASLt, cuDNN, NCCL, NVML and CUPTI on machines
 * without a GPU. The libraries have the names of the real ones and the functions that pons calls. A
 * call that breaks a rule of the real ones is refused: one without a context, with a buffer of the
 * host or an unaligned workspace, or while another one is in progress.
 *
 * A stream is a thread with a queue, an event an edge between queues. Kernels are compiled by the
 * host's compiler. Memory of the GPU has addresses that this process cannot touch; kernels, copies
 * and collectives reach it at others. Every access is compared with those of other streams. Two
 * accesses to the same bytes, one of them a write, without an edge between them, end the process
 * with a line. So does an access of this process to memory of a copy that it has not waited for.
 *
 * FAKE_CUDA       none: no GPU is found; N: that many (2)
 * FAKE_CUDA_CLOCK kHz of processors from the second question for them on (1000000)
 * FAKE_CUDA_VERSION  the answer of cuDriverGetVersion (13000); kernels of a later CUDA's compiler
 *                 are refused
 * FAKE_CUDA_SM    the GPUs' architectures, as "90,70" (90); a compiler knows those of its CUDA
 * FAKE_CUDA_NAME  the name of all GPUs ("made-up card N")
 * FAKE_CUDA_FAIL  launch:N, load:N, allocate:N, copy:N, capture:N, graph:N: the N-th such call of
 *                 the process fails (of a kernel, of kernels, of memory, of a copy, the end of a
 *                 capture, a graph)
 * FAKE_CUDA_MOST  bytes of the largest free piece of memory
 * FAKE_CC, FAKE_CFLAGS   the compiler of kernels and its flags; FAKE_KEEP keeps its files
 * FAKE_NVRTC      beside=PATTERN: a compilation succeeds only if a file of that name appears while
 *                 the compiler runs; it waits for the file (30 s)
 * FAKE_NVRTC_BEGUN   a file that the compiler makes when it begins
 * FAKE_NCCL       words that choose a fault of the process that has them:
 *                   version=N     the answer of ncclGetVersion
 *                   init-never    the group never forms
 *                   init-error    joining it fails
 *                   init-memory   the same: the GPU has no memory for it
 *                   error=N       the N-th collective fails, asynchronously
 *                   lost=N        the same, and the next rank is to blame
 *                   mute          the death of another process is not noticed
 *                   only=R        of rank R alone
 *                   abort-hangs   ncclCommAbort does not return, and the GPU goes on
 * FAKE_NCCL_DIR   the folder of the files (/tmp)
 * FAKE_CUBLAS, FAKE_CUDNN, FAKE_CUPTI, FAKE_DCGM, FAKE_NVML, FAKE_NVTX
 *                 see blas.c, dnn.c, cupti.c, fake_dcgm.c, fake_nvml.c and fake_nvtx.c
 * CUDA_INJECTION64_PATH   a library of which cuInit calls InitializeInjection
 */
#ifndef TESTS_FAKE_FAKE_H
#define TESTS_FAKE_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header of compiled kernels: their size in bytes, and the CUDA version of their compiler. */
typedef struct fake_image {
    uint64_t size, cuda;
} fake_image;

#define FAKE_PUBLIC __attribute__((visibility("default")))

/* Required alignment of workspaces in bytes (cuBLAS on Hopper). */
enum { FAKE_WORKSPACE_ALIGNMENT = 256 };

struct CUstream_st;

/* Run a task on the stream's thread, behind all earlier tasks. */
FAKE_PUBLIC void fake_stream_push(struct CUstream_st *stream, void (*run)(void *context),
                                  void *context);
/* The next task reads or writes these bytes. */
FAKE_PUBLIC void fake_stream_touch(struct CUstream_st *stream, const void *memory, size_t size,
                                   bool writes);
/* Check the memory that a task touches, and push the task. */
typedef int stream_work(struct CUstream_st *stream, const void *what);
/* Run 'work', or record it with a copy of 'what' if the stream is captured. */
FAKE_PUBLIC int stream_give(struct CUstream_st *stream, stream_work *work, const void *what,
                            size_t size);
/* Called by a task: events of its stream are that much later. */
FAKE_PUBLIC void fake_stream_spend(double seconds);
/* The address at which tasks of streams reach 'memory', an address of the driver's callers. */
FAKE_PUBLIC void *fake_reach(const void *memory);
/* True: all 'size' bytes lie in one allocation of the GPU. */
FAKE_PUBLIC bool fake_on_device(const void *memory, size_t size);
FAKE_PUBLIC bool fake_has_context(void);
/* Allocations, events and graphs that were made and not freed. */
FAKE_PUBLIC int fake_left_over(void);

/*
 * Counted calls of this process: launches of kernels and of graphs, waits for the GPU, and copies
 * from or to pageable host memory, for which a driver may wait.
 */
typedef enum fake_deed {
    FAKE_LAUNCHES = 0, FAKE_GRAPH_LAUNCHES, FAKE_WAITS, FAKE_PLAIN_COPIES, FAKE_DEEDS
} fake_deed;
FAKE_PUBLIC long fake_count(fake_deed deed);

/* Finished work of a stream; times in nanoseconds. */
typedef struct fake_work {
    const char *name;          /* of a kernel; NULL: a copy or a fill                             */
    int blocks, threads;
    int way;                   /* direction of a copy: 1 to the GPU, 2 to the host, 8 on it       */
    uint64_t start, end;
} fake_work;

/* Call 'tell' for all later work, on the threads of the streams. */
FAKE_PUBLIC void fake_watch(void (*tell)(const fake_work *work));

#endif
