/*
 * blas.c - a libcublasLt: descriptors of a product, algorithms that differ as the real ones do, and
 * plain sums on the stream.
 *
 * A call is refused if it brings an attribute of another size, matrices that make no product,
 * another product's algorithm, or memory that is not the GPU's or not aligned.
 *
 * FAKE_CUBLAS   words that choose a fault: start: no handle is made; run=N: the N-th product does
 *               not run; refuses-A: products by algorithm A are refused;
 *               takes-A=N: a product by algorithm A takes N ms more, on the clock of events alone
 */
#include "fake.h"
#include "named.h"

#include "../plugins/devices/cuda/cublaslt/cublaslt.h"
#include "graph/reference/reference_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_INITIALIZED = 1, INVALID = 7, FAILED = 13 };

#pragma GCC visibility push(default)
const char *cublasLtGetStatusString(int status);
size_t cublasLtGetVersion(void);
int cublasLtCreate(cublaslt_handle *handle);
int cublasLtDestroy(cublaslt_handle handle);
int cublasLtMatmulDescCreate(cublaslt_operation *out, int sums, int scale);
int cublasLtMatmulDescSetAttribute(cublaslt_operation o, int attribute, const void *value,
                                   size_t size);
int cublasLtMatmulDescDestroy(cublaslt_operation o);
int cublasLtMatrixLayoutCreate(cublaslt_layout *out, int type, uint64_t rows, uint64_t columns,
                               int64_t stride);
int cublasLtMatrixLayoutSetAttribute(cublaslt_layout l, int attribute, const void *value,
                                     size_t size);
int cublasLtMatrixLayoutDestroy(cublaslt_layout l);
int cublasLtMatmulPreferenceCreate(cublaslt_preference *out);
int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference p, int attribute, const void *value,
                                         size_t size);
int cublasLtMatmulPreferenceDestroy(cublaslt_preference p);
int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_operation o,
                                   cublaslt_layout first,
                                   cublaslt_layout second, cublaslt_layout added,
                                       cublaslt_layout result,
                                   cublaslt_preference p, int wanted, cublaslt_choice *out,
                                       int *found);
int cublasLtMatmul(cublaslt_handle handle, cublaslt_operation o, const void *alpha,
                   const void *first,
                   cublaslt_layout first_layout, const void *second, cublaslt_layout second_layout,
                   const void *beta, const void *added, cublaslt_layout added_layout, void *result,
                   cublaslt_layout result_layout, const cublaslt_algorithm *algorithm,
                       void *workspace,
                   size_t size, cuda_stream stream);
long fake_blas_executed(int algorithm);
#pragma GCC visibility pop

/* The number of "word=N", 0 for the word alone, -1 without the word. */
static int fault(const char *word)
{
    const char *text = getenv("FAKE_CUBLAS"), *at = text != NULL ? strstr(text, word) : NULL;

    return at == NULL ? -1 : at[strlen(word)] == '=' ? atoi(at + strlen(word) + 1) : 0;
}

static int fault_of(const char *word, int algorithm)
{
    char text[32];

    snprintf(text, sizeof text, "%s-%d", word, algorithm);
    return fault(text);
}

const char *cublasLtGetStatusString(int status)
{
    return status == NOT_INITIALIZED ? "the card does not answer"
         : status == FAILED ? "a kernel of the library ended" : "an argument is wrong";
}

size_t cublasLtGetVersion(void)
{
    return 10000 * (size_t)named_version((const void *)cublasLtGetVersion) + 2;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

struct cublaslt_handle_object { int used; };
struct cublaslt_operation_object { int sums; int32_t transpose[2]; };
struct cublaslt_layout_object { int type; int64_t rows, columns, stride,
    batch_stride; int32_t batch; };
struct cublaslt_preference_object { uint64_t workspace; uint32_t reductions, alignment[4]; };

int cublasLtCreate(cublaslt_handle *handle)
{
    if (fault("start") == 0 || !fake_has_context())
        return NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? OK : NOT_INITIALIZED;
}

int cublasLtDestroy(cublaslt_handle handle)
{
    free(handle);
    return OK;
}

int cublasLtMatmulDescCreate(cublaslt_operation *out, int sums, int scale)
{
    if ((sums != BLAS_SUMS_F32 && sums != BLAS_SUMS_TF32) || scale != BLAS_F32)
        return INVALID;
    *out = calloc(1, sizeof **out);
    (*out)->sums = sums;
    return OK;
}

/* Store an attribute of the right size. */
static int keep(void *to, size_t room, const void *value, size_t size)
{
    if (size != room)
        return INVALID;
    memcpy(to, value, size);
    return OK;
}

int cublasLtMatmulDescSetAttribute(cublaslt_operation o, int attribute, const void *value,
                                   size_t size)
{
    if (attribute != BLAS_TRANSPOSE_FIRST && attribute != BLAS_TRANSPOSE_SECOND)
        return INVALID;
    return keep(&o->transpose[attribute - BLAS_TRANSPOSE_FIRST], sizeof *o->transpose, value, size);
}

int cublasLtMatmulDescDestroy(cublaslt_operation o)
{
    free(o);
    return OK;
}

int cublasLtMatrixLayoutCreate(cublaslt_layout *out, int type, uint64_t rows, uint64_t columns,
                               int64_t stride)
{
    if ((type != BLAS_F32 && type != BLAS_F16 && type != BLAS_BF16) || rows == 0 || columns == 0
        || stride < (int64_t)rows)
        return INVALID;
    *out = calloc(1, sizeof **out);
    **out = (struct cublaslt_layout_object){ type, (int64_t)rows, (int64_t)columns, stride, 0, 1 };
    return OK;
}

int cublasLtMatrixLayoutSetAttribute(cublaslt_layout l, int attribute, const void *value,
                                     size_t size)
{
    if (attribute == BLAS_BATCH)
        return keep(&l->batch, sizeof l->batch, value, size);
    return attribute == BLAS_BATCH_STRIDE
         ? keep(&l->batch_stride, sizeof l->batch_stride, value, size) : INVALID;
}

int cublasLtMatrixLayoutDestroy(cublaslt_layout l)
{
    free(l);
    return OK;
}

int cublasLtMatmulPreferenceCreate(cublaslt_preference *out)
{
    *out = calloc(1, sizeof **out);
    **out = (struct cublaslt_preference_object){ 0, 7, { 256, 256, 256, 256 } };
    return OK;
}

int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference p, int attribute, const void *value,
                                         size_t size)
{
    int operand = attribute - BLAS_ALIGNMENT_FIRST;

    if (attribute == BLAS_WORKSPACE)
        return keep(&p->workspace, sizeof p->workspace, value, size);
    if (attribute == BLAS_REDUCTIONS)
        return keep(&p->reductions, sizeof p->reductions, value, size);
    return operand >= 0 && operand < 4
         ? keep(&p->alignment[operand], sizeof *p->alignment, value, size) : INVALID;
}

int cublasLtMatmulPreferenceDestroy(cublaslt_preference p)
{
    free(p);
    return OK;
}

/* ---- algorithms ------------------------------------------------------------------------------ */

typedef struct algorithm {
    unsigned reduction;        /* 0: the sum has no parts                                         */
    size_t workspace;
} algorithm;

/*
 * The algorithms in the library's order. Those whose parts are not summed in float have an error of
 * a tenth.
 */
static const algorithm algorithms[] = {
    { BLAS_REDUCTION_AS_RESULT, 0 }, { BLAS_REDUCTION_IN_PLACE, 64 },
    { BLAS_REDUCTION_AS_FLOAT, 4096 }, { 0, 256 },
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };
static long executed[ALGORITHMS];

long fake_blas_executed(int algorithm)
{
    return __atomic_load_n(&executed[algorithm], __ATOMIC_RELAXED);
}

/* The key of a product: an algorithm is valid for one product. */
typedef struct product {
    int algorithm, alignment;
    int64_t rows, columns, depth, batch;
} product;
_Static_assert(sizeof(product) <= sizeof(cublaslt_algorithm), "no room for a product");

static int product_of(const struct cublaslt_operation_object *o,
                      const struct cublaslt_layout_object *a,
                      const struct cublaslt_layout_object *b,
                          const struct cublaslt_layout_object *y,
                      product *out)
{
    int64_t a_rows = o->transpose[0] ? a->columns : a->rows;
    int64_t a_columns = o->transpose[0] ? a->rows : a->columns;
    int64_t b_rows = o->transpose[1] ? b->columns : b->rows;
    int64_t b_columns = o->transpose[1] ? b->rows : b->columns;

    if (a_rows != y->rows || a_columns != b_rows || b_columns != y->columns || a->type != b->type
        || (y->type != a->type && y->type != BLAS_F32) || a->batch != b->batch
        || a->batch != y->batch || a->batch < 1)
        return INVALID;
    *out = (product){ .rows = y->rows, .columns = y->columns, .depth = a_columns,
                      .batch = a->batch };
    return OK;
}

int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_operation o,
                                   cublaslt_layout first,
                                   cublaslt_layout second, cublaslt_layout added,
                                       cublaslt_layout result,
                                   cublaslt_preference p, int wanted, cublaslt_choice *out,
                                       int *found)
{
    product what;
    int status = product_of(o, first, second, result, &what);

    *found = 0;
    if (status != OK || handle == NULL || added == NULL || wanted < 1 || !fake_has_context())
        return INVALID;
    for (int i = 0; i < ALGORITHMS && *found < wanted; i++) {
        const algorithm *a = &algorithms[i];
        if (a->workspace > p->workspace || (a->reduction & p->reductions) != a->reduction)
            continue;
        what.algorithm = i;
        what.alignment = (int)p->alignment[3];
        out[*found] = (cublaslt_choice){ .workspace = a->workspace, .waves = 1 };
        memcpy(&out[(*found)++].algorithm, &what, sizeof what);
    }
    return *found > 0 ? OK : BLAS_NOT_SUPPORTED;
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct operand {
    struct cublaslt_layout_object layout;
    void *at;
} operand;

typedef struct task {
    product what;
    struct cublaslt_operation_object operation;
    operand first, second, result;
    void *workspace;
    size_t workspace_size;
} task;

static pons_type type_of(int type)
{
    return type == BLAS_F32 ? PONS_F32 : type == BLAS_F16 ? PONS_F16 : PONS_BF16;
}

static double load(const operand *o, int64_t batch, int64_t row, int64_t column, bool rounded)
{
    float value = (float)number_load(type_of(o->layout.type), o->at, batch * o->layout.batch_stride
                                     + column * o->layout.stride + row);
    uint32_t bits;

    if (!rounded || o->layout.type != BLAS_F32)
        return value;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + (UINT32_C(1) << 12)) >> 13 << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double element(const task *k, int64_t batch, int64_t row, int64_t column)
{
    bool rounded = k->operation.sums == BLAS_SUMS_TF32;
    double sum = 0;

    for (int64_t l = 0; l < k->what.depth; l++)
        sum += load(&k->first, batch, k->operation.transpose[0] ? l : row,
                    k->operation.transpose[0] ? row : l, rounded)
             * load(&k->second, batch, k->operation.transpose[1] ? column : l,
                    k->operation.transpose[1] ? l : column, rounded);
    return sum;
}

static void run(void *context)
{
    task *k = context;
    unsigned reduction = algorithms[k->what.algorithm].reduction;
    double factor = reduction == 0 || reduction == BLAS_REDUCTION_AS_FLOAT ? 1 : 1.1;
    const struct cublaslt_layout_object *y = &k->result.layout;

    if (k->workspace_size > 0)
        memset(k->workspace, 0xa5, k->workspace_size);
    for (int64_t n = 0; n < k->what.batch; n++)
        for (int64_t column = 0; column < k->what.columns; column++)
            for (int64_t row = 0; row < k->what.rows; row++)
                number_store(type_of(y->type), k->result.at,
                             n * y->batch_stride + column * y->stride + row,
                             factor * element(k, n, row, column));
    if (fault_of("takes", k->what.algorithm) > 0)
        fake_stream_spend(1e-3 * fault_of("takes", k->what.algorithm));
    free(k);
}

/* Resolve memory that a stream may touch: it belongs to the GPU, and no other stream uses it. */
static bool take(struct CUstream_st *stream, void **at, size_t size, bool writes)
{
    if (size == 0)
        return true;
    if (!fake_on_device(*at, size))
        return false;
    fake_stream_touch(stream, *at, size, writes);
    *at = fake_reach(*at);
    return true;
}

static bool take_operand(struct CUstream_st *stream, operand *o, bool writes)
{
    int64_t last = (o->layout.batch - 1) * o->layout.batch_stride
                 + (o->layout.columns - 1) * o->layout.stride + o->layout.rows;

    return take(stream, &o->at, (size_t)last * (o->layout.type == BLAS_F32 ? 4 : 2), writes);
}

static int give(struct CUstream_st *stream, const void *what)
{
    task *k = malloc(sizeof *k);

    if (k == NULL)
        abort();
    memcpy(k, what, sizeof *k);
    if (!take(stream, &k->workspace, k->workspace_size, true)
        || !take_operand(stream, &k->first, false) || !take_operand(stream, &k->second, false)
        || !take_operand(stream, &k->result, true)) {
        free(k);
        return INVALID;
    }
    fake_stream_push(stream, run, k);
    return OK;
}

static bool is_aligned(const void *at, int alignment)
{
    return (uintptr_t)at % (uintptr_t)alignment == 0;
}

int cublasLtMatmul(cublaslt_handle handle, cublaslt_operation o, const void *alpha,
                   const void *first,
                   cublaslt_layout first_layout, const void *second, cublaslt_layout second_layout,
                   const void *beta, const void *added, cublaslt_layout added_layout, void *result,
                   cublaslt_layout result_layout, const cublaslt_algorithm *algorithm,
                       void *workspace,
                   size_t size, cuda_stream stream)
{
    static int runs;
    task k = { .operation = *o, .first = { *first_layout, (void *)first },
               .second = { *second_layout, (void *)second }, .result = { *result_layout, result },
               .workspace = workspace };
    product asked;

    memcpy(&k.what, algorithm, sizeof k.what);
    if (handle == NULL || stream == NULL || !fake_has_context()
        || product_of(o, first_layout, second_layout, result_layout, &asked) != OK)
        return INVALID;
    asked.algorithm = k.what.algorithm;
    asked.alignment = k.what.alignment;
    k.workspace_size = algorithms[k.what.algorithm].workspace;
    if (memcmp(&asked, &k.what, sizeof asked) != 0 || size < k.workspace_size
        || *(const float *)alpha != 1 || *(const float *)beta != 0 || added != result
        || added_layout != result_layout
        || (k.workspace_size > 0 && !is_aligned(workspace, FAKE_WORKSPACE_ALIGNMENT))
        || !is_aligned(first, asked.alignment)
        || !is_aligned(second, asked.alignment) || !is_aligned(result, asked.alignment))
        return INVALID;
    if (__atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED) == fault("run")
        || fault_of("refuses", k.what.algorithm) >= 0)
        return FAILED;
    __atomic_fetch_add(&executed[k.what.algorithm], 1, __ATOMIC_RELAXED);
    return stream_give((struct CUstream_st *)stream, give, &k, sizeof k) == OK ? OK : FAILED;
}
