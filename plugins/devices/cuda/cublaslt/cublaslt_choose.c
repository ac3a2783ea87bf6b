/*
 * cublaslt_choose.c - autotune the algorithm of a matrix product ([device] autotune), among those
 * that the library proposes. An algorithm is opaque: its bytes are its name, which is valid for one
 * version of the library. The key therefore contains the version.
 */
#include "cuda/cuda.h"

#include <string.h>

#include "base/integer.h"

enum { NAME_SIZE = sizeof "algorithm " + 2 * sizeof(cublaslt_algorithm) };
_Static_assert((int)NAME_SIZE <= (int)AUTOTUNE_NAME_SIZE,
               "an algorithm's name is too long to be kept");

static void write_name(const cublaslt_choice *c, char name[NAME_SIZE])
{
    const unsigned char *byte = (const unsigned char *)&c->algorithm;
    int at = sprintf(name, "algorithm ");

    for (size_t i = 0; i < sizeof c->algorithm; i++)
        at += sprintf(name + at, "%02x", byte[i]);
}

static void put_matrix(FILE *to, const char *name, pons_shape shape, bool transposed)
{
    fputs(transposed ? " transposed" : "", to);
    autotune_put_numbers(to, name, shape.rank, shape.extent);
}

/*
 * Everything that an algorithm's time depends on, except for the GPU. The result's shape follows.
 */
static bool write_key(const cublaslt_library *blas, const pons_request *r, char *key, size_t size)
{
    static const char *const types[] = {
        [PONS_F32] = "fp32", [PONS_F16] = "fp16", [PONS_BF16] = "bf16"
    };
    const pons_matmul_attributes *m = r->attributes;
    bool rounded = r->tf32 && r->input[0].type == PONS_F32;
    FILE *to = fmemopen(key, size - 1, "w");

    key[size - 1] = '\0';
    if (to == NULL)
        return false;
    fprintf(to, "product cuBLASLt %zu %s to %s", blas->version(),
            rounded ? "tf32" : types[r->input[0].type], types[r->output[0].type]);
    put_matrix(to, "a", r->input[0].shape, m->transpose_a);
    put_matrix(to, "b", r->input[1].shape, m->transpose_b);
    return fclose(to) == 0;
}

/* The index of the algorithm with this name; -1: none. */
static int find_name(int count, const cublaslt_choice *all, const char *name)
{
    char own[NAME_SIZE];

    for (int i = 0; i < count; i++) {
        write_name(&all[i], own);
        if (strcmp(own, name) == 0)
            return i;
    }
    return -1;
}

typedef struct algorithms {
    const cuda_device *device;
    const cublaslt_product *product;
    const cublaslt_choice *all;
} algorithms;

static int run(void *context, int i, void *const *operand, void *workspace)
{
    const algorithms *a = context;

    return cublaslt_product_run(&a->device->blas, a->product, &a->all[i], operand, workspace,
                                a->device->stream[PONS_STREAM_KERNELS]);
}

/* Time the algorithms and store the fastest; the library's first if none of them runs. */
static pons_status autotune_algorithm(cuda_device *d, const pons_request *r, algorithms *a,
                                      const char *key, int count, int *best, pons_error *err)
{
    char name[NAME_SIZE] = "";
    autotune_trial t = {
        .device = d, .request = r->name, .kind = "algorithms", .count = count,
        .operand = { r->input[0], r->input[1], r->output[0] }, .run = run, .context = a
    };
    double seconds;

    for (int i = 0; i < count; i++)
        t.workspace[i] = a->all[i].workspace;
    if (autotune_run(&t, best, &seconds, err) != PONS_OK)
        return err->status;
    if (*best >= 0)
        write_name(&a->all[*best], name);
    else
        *best = 0;
    return autotune_keep(d, key, name, seconds, err);
}

pons_status cublaslt_choose_algorithm(cuda_device *d, const pons_request *r,
                                      const cublaslt_product *p,
                                      int count, const cublaslt_choice *all, int *best,
                                          pons_error *err)
{
    algorithms a = { d, p, all };
    char key[PONS_AUTOTUNE_ENTRY_SIZE], name[AUTOTUNE_NAME_SIZE];
    autotune_found found;

    *best = 0;
    if (d->autotune == NULL || !write_key(&d->blas, r, key, sizeof key))
        return PONS_OK;
    found = autotune_find(d, key, name);
    if (found == AUTOTUNE_FOUND_UNTIMED)
        return PONS_OK;
    *best = found == AUTOTUNE_FOUND ? find_name(count, all, name) : -1;
    if (*best < 0 && d->autotune->keep != NULL)
        return autotune_algorithm(d, r, &a, key, count, best, err);
    *best = max_int(*best, 0);
    return PONS_OK;
}
