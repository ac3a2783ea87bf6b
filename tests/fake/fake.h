/*
 * fake.h - NVIDIA's driver, its runtime compiler, cuBLASLt, cuDNN, NCCL, NVML and CUPTI on machines
 * without a GPU: libraries with the names and the functions of the real ones, as far as pons calls
 * them. Who breaks a rule of the real ones (a call without a context, a buffer of the host, a
 * workspace that is not aligned, a call while another one is in progress) is refused.
 *
 * A stream is a thread with a queue, an event an edge between queues. Kernels are compiled by the
 * host's compiler. Memory of the GPU has addresses that this process cannot touch; kernels, copies
 * and collectives reach it at others. Whatever they touch is compared with what other streams
 * touch: two that meet, one of them writing, with no edge between them, end the process with a
 * line, and so does this process when it touches memory of a copy that it has not waited for.
 *
 * FAKE_CUDA       none: no GPU is found; N: that many (2)
 * FAKE_CUDA_CLOCK kHz of processors from the second question for them on (1000000)
 * FAKE_CUDA_VERSION  what cuDriverGetVersion says (13000); kernels of a compiler of a later CUDA
 *                 are refused
 * FAKE_CUDA_SM    the cards' architectures, as "90,70" (90); a compiler knows those of its CUDA
 * FAKE_CUDA_NAME  what all of them are called ("made-up card N")
 * FAKE_CUDA_FAIL  launch:N, load:N, allocate:N, copy:N, capture:N, graph:N: the N-th such call of
 *                 the process fails (of a kernel, of kernels, of memory, of a copy, the end of a
 *                 capture, a graph)
 * FAKE_CUDA_MOST  bytes of the largest piece of memory that there is room for
 * FAKE_CC, FAKE_CFLAGS   the compiler of kernels and its flags; FAKE_KEEP keeps its files
 * FAKE_NVRTC      beside=PATTERN: what is compiled is right only if a file of that name comes while
 *                 the compiler runs, which it does until then (30 s)
 * FAKE_NVRTC_BEGUN   a file that the compiler makes when it begins
 * FAKE_NCCL       words that go wrong, of the process that has them:
 *                   version=N     what ncclGetVersion says
 *                   init-never    the group never comes together
 *                   init-error    joining it fails
 *                   init-memory   the same: the GPU has no memory for it
 *                   error=N       the N-th collective fails, asynchronously
 *                   lost=N        the same, and the next rank is to blame
 *                   mute          the death of another process is not noticed
 *                   only=R        of rank R alone
 *                   abort-hangs   ncclCommAbort does not return, and the GPU goes on
 * FAKE_NCCL_DIR   the folder of the files (/tmp)
 * FAKE_CUBLAS, FAKE_CUDNN, FAKE_CUPTI, FAKE_NVML, FAKE_NVTX
 *                 see blas.c, dnn.c, cupti.c, nvml.c and nvtx.c
 * CUDA_INJECTION64_PATH   a library of which cuInit calls InitializeInjection
 */
#ifndef TESTS_FAKE_FAKE_H
#define TESTS_FAKE_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands before compiled kernels: their bytes, and the CUDA of their compiler. */
typedef struct fake_image {
    uint64_t size, cuda;
} fake_image;

#define FAKE_PUBLIC __attribute__((visibility("default")))

/* Required alignment of workspaces in bytes (cuBLAS on Hopper). */
enum { FAKE_WORKSPACE_ALIGNMENT = 256 };

struct CUstream_st;

/* On the stream's thread, behind what was pushed before. */
FAKE_PUBLIC void fake_stream_push(struct CUstream_st *stream, void (*run)(void *context),
                                  void *context);
/* What is pushed next reads or writes these bytes. */
FAKE_PUBLIC void fake_stream_touch(struct CUstream_st *stream, const void *memory, size_t size,
                                   bool writes);
/* Look at what shall be touched, and push it. */
typedef int stream_work(struct CUstream_st *stream, const void *what);
/* Do 'work', or keep it, with a copy of 'what', where the stream is captured. */
FAKE_PUBLIC int stream_give(struct CUstream_st *stream, stream_work *work, const void *what,
                            size_t size);
/* By a task: events of its stream come so much later than they do. */
FAKE_PUBLIC void fake_stream_spend(double seconds);
/* Where tasks of streams find the byte that callers of the driver know as 'memory'. */
FAKE_PUBLIC void *fake_reach(const void *memory);
/* Whether 'size' bytes lie in one piece of memory of the GPU. */
FAKE_PUBLIC bool fake_on_device(const void *memory, size_t size);
FAKE_PUBLIC bool fake_has_context(void);
/* Pieces of memory, events and graphs that were made and not freed. */
FAKE_PUBLIC int fake_left_over(void);

/*
 * Calls of this process so far: kernels and graphs put on streams, waits for the GPU, and copies
 * from or to memory of the host that is not fixed, for which a driver may wait.
 */
typedef enum fake_deed {
    FAKE_LAUNCHES = 0, FAKE_GRAPH_LAUNCHES, FAKE_WAITS, FAKE_PLAIN_COPIES, FAKE_DEEDS
} fake_deed;
FAKE_PUBLIC long fake_count(fake_deed deed);

/* Work of a stream that has ended; nanoseconds. */
typedef struct fake_work {
    const char *name;          /* of a kernel; NULL: a copy or a fill                             */
    int blocks, threads;
    int way;                   /* of a copy: 1 to the GPU, 2 to the host, 8 on the GPU            */
    uint64_t start, end;
} fake_work;

/* 'tell' hears of all work from now on, on the streams' threads. */
FAKE_PUBLIC void fake_watch(void (*tell)(const fake_work *work));

#endif
