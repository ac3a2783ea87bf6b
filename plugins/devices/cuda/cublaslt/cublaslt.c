/*
 * cublaslt.c - load cuBLASLt, create its handle, and describe a matrix product to it.
 *
 * Its matrices are column-major, ours row-major. The library therefore sees the transpose of each
 * matrix, and y = a b becomes y' = b' a'.
 */
#include "cuda/cublaslt/cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

enum { ALIGNMENT = 16 };

#define BLAS_SYMBOL(result, member, symbol, parameters)                                           \
    { symbol, offsetof(cublaslt_library, member) },
static const toolkit_symbol symbols[] = { BLAS_FUNCTIONS(BLAS_SYMBOL) { NULL, 0 } };

/* ---- the library ----------------------------------------------------------------------------- */

void cublaslt_close(cublaslt_library *blas)
{
    if (blas->handle != NULL)
        blas->destroy(blas->handle);
    blas->handle = NULL;
    if (blas->library != NULL)
        dlclose(blas->library);
    blas->library = NULL;
}

static const toolkit_file places[] = {
    { 12, "libcublasLt.so.12" }, { 12, "/usr/local/cuda/lib64/libcublasLt.so.12" },
    { 13, "libcublasLt.so.13" }, { 13, "/usr/local/cuda/lib64/libcublasLt.so.13" }, { 0, NULL }
};

static bool has_functions(void *blas, const char *name, void *library, char *why, size_t size)
{
    const char *missing = toolkit_find_symbols(library, symbols, blas);

    if (missing != NULL)
        snprintf(why, size, "'%s' has no '%s'", name, missing);
    return missing == NULL;
}

static void load_library(cublaslt_library *blas, int cuda)
{
    /* The library loads others and is not made to be unloaded. */
    toolkit_search search = { .flags = RTLD_LOCAL | RTLD_NODELETE, .serves = has_functions,
                              .context = blas };
    int status;

    blas->library = toolkit_open(places, cuda, &search);
    if (blas->library == NULL) {
        snprintf(blas->missing, sizeof blas->missing, "%s", search.refused[0] != '\0'
                 ? search.refused : "there is no libcublasLt.so.12 and no libcublasLt.so.13");
        return;
    }
    status = blas->create(&blas->handle);
    if (status == 0)
        return;
    snprintf(blas->missing, sizeof blas->missing, "it does not start: %s",
             blas->status_text(status));
    blas->handle = NULL;
    cublaslt_close(blas);
}

bool cublaslt_is_available(cublaslt_library *blas, int cuda)
{
    if (!blas->searched)
        load_library(blas, cuda);
    blas->searched = true;
    return blas->handle != NULL;
}

void cublaslt_describe(cublaslt_library *blas, int cuda, char *text, size_t size)
{
    size_t version = cublaslt_is_available(blas, cuda) ? blas->version() : 0;

    if (version == 0)
        snprintf(text, size, "no cuBLASLt (%s)", blas->missing);
    else
        snprintf(text, size, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100,
                 version % 100);
}

/* ---- matrix product -------------------------------------------------------------------------- */

static int type_of(pons_type type)
{
    return type == PONS_F32 ? BLAS_F32 : type == PONS_F16 ? BLAS_F16 : type == PONS_BF16 ? BLAS_BF16
                                                                                          : -1;
}

/* The number of matrices of a tensor. */
static int64_t batch_of(pons_shape s)
{
    int64_t count = 1;

    for (int i = 0; i < s.rank - 2; i++)
        count *= s.extent[i];
    return count;
}

bool cublaslt_supports(const pons_request *r)
{
    return r->kind == PONS_KERNEL_MATMUL && r->input[0].type == r->input[1].type
        && type_of(r->input[0].type) >= 0
        && (r->output[0].type == PONS_F32 || r->output[0].type == r->input[0].type)
        && batch_of(r->output[0].shape) <= INT_MAX;
}

/* A matrix with 'rows' rows has that many columns for the library. */
static int layout_new(const cublaslt_library *blas, pons_tensor t, cublaslt_layout *out)
{
    const int64_t *extent = t.shape.extent + t.shape.rank - 2;
    int64_t rows = extent[0], columns = extent[1], stride = rows * columns;
    int32_t batch = (int32_t)batch_of(t.shape);
    int status = blas->layout_new(out, type_of(t.type), (uint64_t)columns, (uint64_t)rows, columns);

    if (status == 0)
        status = blas->layout_set(*out, BLAS_BATCH, &batch, sizeof batch);
    if (status == 0)
        status = blas->layout_set(*out, BLAS_BATCH_STRIDE, &stride, sizeof stride);
    return status;
}

int cublaslt_product_new(const cublaslt_library *blas, const pons_request *r, cublaslt_product *out)
{
    const pons_matmul_attributes *m = r->attributes;
    const pons_tensor matrix[3] = { r->input[1], r->input[0], r->output[0] };
    int32_t first = m->transpose_b, second = m->transpose_a;
    bool rounded = r->tf32 && r->input[0].type == PONS_F32;
    int status;

    *out = (cublaslt_product){ NULL };
    status = blas->operation_new(&out->operation, rounded ? BLAS_SUMS_TF32 : BLAS_SUMS_F32,
                                 BLAS_F32);
    if (status == 0)
        status = blas->operation_set(out->operation, BLAS_TRANSPOSE_FIRST, &first, sizeof first);
    if (status == 0)
        status = blas->operation_set(out->operation, BLAS_TRANSPOSE_SECOND, &second, sizeof second);
    for (int i = 0; i < 3 && status == 0; i++)
        status = layout_new(blas, matrix[i], &out->layout[i]);
    return status;
}

void cublaslt_product_free(const cublaslt_library *blas, cublaslt_product *p)
{
    for (int i = 0; i < 3; i++)
        if (p->layout[i] != NULL)
            blas->layout_free(p->layout[i]);
    if (p->operation != NULL)
        blas->operation_free(p->operation);
    *p = (cublaslt_product){ NULL };
}

/*
 * Split sums are added as floats in a fixed order: neither rounded to 16 bits nor added in place.
 */
static int set_preference(const cublaslt_library *blas, cublaslt_preference p, uint64_t workspace)
{
    static const int alignments[] = { BLAS_ALIGNMENT_FIRST, BLAS_ALIGNMENT_SECOND,
                                      BLAS_ALIGNMENT_ADDED, BLAS_ALIGNMENT_RESULT };
    const uint32_t reductions = BLAS_REDUCTION_AS_FLOAT, alignment = ALIGNMENT;
    int status = blas->preference_set(p, BLAS_WORKSPACE, &workspace, sizeof workspace);

    if (status == 0)
        status = blas->preference_set(p, BLAS_REDUCTIONS, &reductions, sizeof reductions);
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments && status == 0; i++)
        status = blas->preference_set(p, alignments[i], &alignment, sizeof alignment);
    return status;
}

int cublaslt_product_choose(const cublaslt_library *blas, const cublaslt_product *p,
                            size_t workspace, int most, cublaslt_choice *out, int *count)
{
    cublaslt_preference preference = NULL;
    int found = 0, status = blas->preference_new(&preference);

    /*
     * An algorithm is identified by all of its bytes, so those that the library does not write must
     * be zero.
     */
    memset(out, 0, (size_t)most * sizeof *out);
    if (status == 0)
        status = set_preference(blas, preference, workspace);
    if (status == 0)
        status = blas->choose(blas->handle, p->operation, p->layout[0], p->layout[1], p->layout[2],
                              p->layout[2], preference, most, out, &found);
    if (preference != NULL)
        blas->preference_free(preference);
    *count = 0;
    for (int i = 0; i < found && status == 0; i++)
        if (out[i].status == 0)
            out[(*count)++] = out[i];
    return status == BLAS_NOT_SUPPORTED ? 0 : status;
}

int cublaslt_product_run(const cublaslt_library *blas, const cublaslt_product *p,
                         const cublaslt_choice *by,
                         void *const operand[3], void *workspace, cuda_stream stream)
{
    static const float one = 1, zero = 0;
    const cublaslt_layout *layout = p->layout;

    return blas->multiply(blas->handle, p->operation, &one, operand[1], layout[0], operand[0],
                          layout[1], &zero, operand[2], layout[2], operand[2], layout[2],
                          &by->algorithm, workspace, by->workspace, stream);
}
