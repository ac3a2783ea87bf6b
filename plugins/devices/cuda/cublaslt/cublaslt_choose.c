/*
 * cublaslt_choose.c - the algorithm for a matrix product by timing ([device] autotune), of those
 * that the library proposes. An algorithm is opaque: its bytes are its name, which means something
 * to one version of the library alone, and so the key has that.
 */
#include "cuda/cuda.h"

#include <string.h>

enum { NAME_SIZE = sizeof "algorithm " + 2 * sizeof(blas_algorithm) };
_Static_assert((int)NAME_SIZE <= (int)CUDA_NAME_SIZE, "an algorithm's name is too long to be kept");

static void write_name(const blas_choice *c, char name[NAME_SIZE])
{
    const unsigned char *byte = (const unsigned char *)&c->algorithm;
    int at = sprintf(name, "algorithm ");

    for (size_t i = 0; i < sizeof c->algorithm; i++)
        at += sprintf(name + at, "%02x", byte[i]);
}

static void put_matrix(FILE *to, const char *name, pons_shape shape, bool transposed)
{
    fputs(transposed ? " transposed" : "", to);
    cuda_put_numbers(to, name, shape.rank, shape.extent);
}

/* All that an algorithm's time may depend on, but for the card. The result's shape follows. */
static bool write_key(const cuda_blas *blas, const pons_request *r, char *key, size_t size)
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

/* Which of them has a name; -1: none. */
static int find_name(int count, const blas_choice *all, const char *name)
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
    const blas_product *product;
    const blas_choice *all;
} algorithms;

static int run(void *context, int i, void *const *operand, void *workspace)
{
    const algorithms *a = context;

    return blas_product_run(&a->device->blas, a->product, &a->all[i], operand, workspace,
                            a->device->queue[PONS_STREAM_KERNELS]);
}

/* Time them and keep the fastest; the library's first where none of them runs. */
static pons_status choose(cuda_device *d, const pons_request *r, algorithms *a, const char *key,
                          int count, int *best, pons_error *err)
{
    char name[NAME_SIZE] = "";
    cuda_trial t = {
        .device = d, .request = r->name, .kind = "algorithms", .count = count,
        .operand = { r->input[0], r->input[1], r->output[0] }, .run = run, .context = a
    };
    double seconds;

    for (int i = 0; i < count; i++)
        t.workspace[i] = a->all[i].workspace;
    if (cuda_try(&t, best, &seconds, err) != PONS_OK)
        return err->status;
    if (*best >= 0)
        write_name(&a->all[*best], name);
    else
        *best = 0;
    return cuda_keep_choice(d, key, name, seconds, err);
}

pons_status cuda_choose_algorithm(cuda_device *d, const pons_request *r, const blas_product *p,
                                  int count, const blas_choice *all, int *best, pons_error *err)
{
    algorithms a = { d, p, all };
    char key[PONS_AUTOTUNE_ENTRY_SIZE], name[CUDA_NAME_SIZE];
    cuda_found found;

    *best = 0;
    if (d->tuning == NULL || !write_key(&d->blas, r, key, sizeof key))
        return PONS_OK;
    found = cuda_find_choice(d, key, name);
    if (found == CUDA_FOUND_UNTIMED)
        return PONS_OK;
    *best = found == CUDA_FOUND ? find_name(count, all, name) : -1;
    if (*best < 0 && d->tuning->keep != NULL)
        return choose(d, r, &a, key, count, best, err);
    *best = *best < 0 ? 0 : *best;
    return PONS_OK;
}
