/*
 * shim.h - the CUDA C features of generated kernels, for the host's compiler.
 *
 * Kernels of a module run one at a time, so that the position of a thread and shared memory are
 * plain variables. The executor (module.c) fills 'shim' in.
 */
#include <math.h>
#include <string.h>

struct shim_place {
    unsigned x, y, z;
};

struct shim_state {
    struct shim_place thread, block;
    void (*barrier)(void);                      /* of the block                                   */
    float (*shuffle_down)(float x, unsigned offset);
};

struct shim_parameter {
    const char *name;
    int memory, writes, more;
    size_t size;                                /* bytes; 'more': and those behind                */
};

struct shim_state shim;

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static
#define threadIdx shim.thread
#define blockIdx shim.block
#define __syncthreads() shim.barrier()
#define __shfl_down_sync(mask, x, offset) shim.shuffle_down(x, offset)

static inline float __int_as_float(int bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int __float_as_int(float x)
{
    int bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}
