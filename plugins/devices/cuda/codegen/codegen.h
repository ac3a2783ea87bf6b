/*
 * codegen.h - the CUDA C source of a request: one kernel, or several that run in order.
 *
 * Every kernel of a request has the same parameters: the inputs, the outputs, the scratch memory,
 * the tables (values computed on the host at preparation) and, if it draws random numbers, the step
 * key. A comment behind each pointer has its element count (1+: one or more). Extents and strides
 * are literals. Kernels with equal source are shared, so the source does not contain the name of
 * the request. Blocks have 256 threads.
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_H

#include "cuda/codegen/code_text.h"

#include "base/integer.h"

enum { CUDA_THREADS = 256, CUDA_LAUNCHES = 80, CUDA_TABLES = 24 };

typedef struct cuda_launch {
    text body;             /* parameters and block, after the function's name                     */
    char name[48];
    int64_t blocks;
} cuda_launch;

typedef struct cuda_table {
    const char *type;      /* element type: "int" or "float"                                      */
    void *data;
    size_t size;
} cuda_table;

typedef struct codegen {
    const pons_request *request;
    const char *kind;      /* prefix of the kernels' names                                        */
    bool random, failed;
    int launch_count, table_count;
    cuda_launch launch[CUDA_LAUNCHES];
    cuda_table table[CUDA_TABLES];
    size_t scratch_size;
    uint64_t share;        /* as in pons_kernel                                                   */
} codegen;

/*
 * Write the kernels of 'request'. False: the request has no kernel, or memory ran out ('failed').
 * codegen_free frees the source in either case.
 */
bool codegen_make(codegen *s, const pons_request *request);
void codegen_free(codegen *s);

/*
 * Number of parameters of a kernel, all of them pointers. The last one, the step key, is read if
 * 'random'.
 */
int codegen_parameters(const codegen *s);

/* ---- for the files that write kernels -------------------------------------------------------- */

/*
 * Add a table of 'count' elements of 4 bytes, for the caller to fill; NULL: out of memory. Tables
 * precede all text.
 */
void *codegen_table(codegen *s, const char *type, int64_t count, int *number);
/*
 * Begin a kernel, whose block the caller writes to the returned text. The end adds parameters,
 * braces and name.
 */
text *codegen_begin(codegen *s, int64_t blocks);
void codegen_end(codegen *s);
/*
 * Reserve scratch memory at a multiple of 16 bytes; returns its offset. It precedes the end of the
 * kernels that use it.
 */
size_t codegen_scratch(codegen *s, size_t size);

static inline int64_t codegen_count(pons_shape s)
{
    int64_t count = 1;

    for (int i = 0; i < s.rank; i++)
        count *= s.extent[i];
    return count;
}

static inline int64_t codegen_blocks(int64_t threads)
{
    return ceil_div_i64(threads, CUDA_THREADS);
}

/* Write "const int point = ...; if (point >= count) return;". */
void codegen_point(text *t, const char *name, int64_t count, int64_t most);
/* Write "const int i0 = ..., i1 = ...;": the coordinates of a row-major index over 'extent'. */
void codegen_coordinates(text *t, const char *from, const char *prefix, int rank,
                         const int64_t *extent, int64_t most);

/* One generator for each kind of request. */
bool codegen_map(codegen *s);
bool codegen_gather(codegen *s);
bool codegen_pool(codegen *s);
bool codegen_patch(codegen *s);
bool codegen_argmax(codegen *s);
bool codegen_convolution(codegen *s);
bool codegen_weight_gradient(codegen *s);
bool codegen_matmul(codegen *s);

#endif
