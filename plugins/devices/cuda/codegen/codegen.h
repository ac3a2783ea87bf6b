/*
 * codegen.h - a request as CUDA C: one kernel or several, run one after the other.
 *
 * Every kernel of a request has the same parameters: the inputs, the outputs, the scratch memory,
 * the tables (numbers that were computed here, once) and, where it draws random numbers, the
 * moment; behind a pointer stands how many elements it has (1+: one, and what follows). Extents and
 * strides are literals; kernels that come out equal are one kernel, so no name of the request is in
 * the text. Blocks are 256 threads.
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_H

#include "cuda/codegen/code_text.h"

#include "base/integer.h"

enum { CUDA_THREADS = 256, CUDA_LAUNCHES = 80, CUDA_TABLES = 24 };

typedef struct cuda_launch {
    text body;             /* behind the function's name: parameters and block                    */
    char name[48];
    int64_t blocks;
} cuda_launch;

typedef struct cuda_table {
    const char *type;      /* "int", "float"                                                      */
    void *data;
    size_t size;
} cuda_table;

typedef struct cuda_source {
    const pons_request *request;
    const char *kind;      /* begins the kernels' names                                           */
    bool random, failed;
    int launch_count, table_count;
    cuda_launch launch[CUDA_LAUNCHES];
    cuda_table table[CUDA_TABLES];
    size_t scratch_size;
    uint64_t share;        /* as in pons_kernel                                                   */
} cuda_source;

/*
 * Write the kernels of 'request'. False: there are none for it, or memory ran out ('failed'). The
 * source is cleared with cuda_source_free in either case.
 */
bool cuda_source_make(cuda_source *s, const pons_request *request);
void cuda_source_free(cuda_source *s);

/* Parameters of a call, all of them pointers; the last one, the moment, is read where 'random'. */
int cuda_source_parameters(const cuda_source *s);

/* ---- for the files that write kernels -------------------------------------------------------- */

/* A table of 'count' numbers of 4 bytes to fill; NULL: out of memory. Before any text. */
void *source_table(cuda_source *s, const char *type, int64_t count, int *number);
/*
 * Begin a kernel: what is written is its block. End it: the parameters, the braces, and its name.
 */
text *source_begin(cuda_source *s, int64_t blocks);
void source_end(cuda_source *s);
/*
 * Bytes of scratch memory at a multiple of 16; where they begin. Before the end of who uses them.
 */
size_t source_scratch(cuda_source *s, size_t size);

static inline int64_t source_count(pons_shape s)
{
    int64_t count = 1;

    for (int i = 0; i < s.rank; i++)
        count *= s.extent[i];
    return count;
}

static inline int64_t source_blocks(int64_t threads)
{
    return ceil_div_i64(threads, CUDA_THREADS);
}

/* "const int point = ...; if (point >= count) return;" */
void source_point(text *t, const char *name, int64_t count, int64_t most);
/* "const int i0 = ..., i1 = ...;" from a row-major number over 'extent'. */
void source_place(text *t, const char *from, const char *prefix, int rank, const int64_t *extent,
                  int64_t most);

/* One writer for each kind of request. */
bool map_source(cuda_source *s);
bool take_source(cuda_source *s);
bool pool_source(cuda_source *s);
bool patch_source(cuda_source *s);
bool extreme_source(cuda_source *s);
bool convolution_source(cuda_source *s);
bool weight_source(cuda_source *s);
bool matmul_source(cuda_source *s);

#endif
