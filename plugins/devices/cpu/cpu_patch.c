/*
 * cpu_patch.c - extract patches from resident cases row by row, fill patches with normal random
 * numbers, and accumulate patches.
 */
#include "cpu/cpu.h"

#include <pons/transform.h>

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { BLOCK = 4096 }; /* normal random numbers of a task */

typedef struct patch_kernel {
    const pons_request *request;
    int64_t extent[5], columns; /* extent of the patches; columns of input 1 */
    int threads;
} patch_kernel;

typedef struct patch_run {
    const patch_kernel *k;
    const pons_call *call;
    int64_t patch;              /* index of the patch to accumulate */
} patch_run;

/* ---- voxels ---------------------------------------------------------------------------------- */

/*
 * A row of the patch along W. Its voxel w is at 'base' + along[w]; a negative along[w] means a
 * zero.
 */
typedef struct patch_row {
    const int32_t *along;
    int64_t base, count, channels;
    const void *values;
    const float *table;
} patch_row;

#define READ_ROW(TYPE, VALUE)                                                                     \
    for (int64_t w = 0; w < r->count; w++) {                                                      \
        bool inside = r->along[w] >= 0;                                                           \
        int64_t voxel = inside ? r->base + r->along[w] : 0;                                       \
        const TYPE *from = (const TYPE *)r->values + voxel * r->channels;                         \
        for (int64_t c = 0; c < r->channels; c++)                                                 \
            to[w * r->channels + c] = inside ? (VALUE) : 0;                                       \
    }

static void read_codes8(const patch_row *r, float *restrict to)
{
    READ_ROW(uint8_t, r->table[from[c]])
}

static void read_codes16(const patch_row *r, float *restrict to)
{
    READ_ROW(uint16_t, r->table[from[c]])
}

static void read_floats(const patch_row *r, float *restrict to)
{
    READ_ROW(float, from[c])
}

static void read_bytes(const patch_row *r, uint8_t *restrict to)
{
    READ_ROW(uint8_t, from[c])
}

static void extract_row(void *context, int64_t i, int thread)
{
    const patch_run *run = context;
    const int64_t *e = run->k->extent;
    int64_t h = i % e[2], d = i / e[2] % e[1], n = i / (e[1] * e[2]);
    const int32_t *row = (const int32_t *)run->call->input[1] + n * run->k->columns;
    const int32_t *place = row + PONS_PATCH_COORDINATES;
    const char *held = run->call->input[0];
    int32_t at[] = { place[d], place[e[1] + h] };
    patch_row r = { place + e[1] + e[2], (int64_t)at[0] + at[1], e[3], e[4],
                    held + (int64_t)row[PONS_PATCH_VALUES] * PONS_PATCH_UNIT,
                    (const float *)(held + (int64_t)row[PONS_PATCH_TABLE] * PONS_PATCH_UNIT) };
    int64_t first = i * e[3] * e[4], count = e[3] * e[4];
    bool bytes = run->k->request->output[0].type == PONS_U8;
    float *image = (float *)run->call->output[0] + first;

    if (bytes && (at[0] < 0 || at[1] < 0))
        memset((uint8_t *)run->call->output[0] + first, 0, (size_t)count);
    else if (bytes)
        read_bytes(&r, (uint8_t *)run->call->output[0] + first);
    else if (at[0] < 0 || at[1] < 0)
        memset(image, 0, (size_t)count * sizeof *image);
    else if (row[PONS_PATCH_CODE_SIZE] == 1)
        read_codes8(&r, image);
    else if (row[PONS_PATCH_CODE_SIZE] == 2)
        read_codes16(&r, image);
    else
        read_floats(&r, image);
}

static pons_status extract_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const patch_kernel *k = kernel->state;
    patch_run run = { k, call, 0 };

    cpu_parallel_for(k->threads, k->extent[0] * k->extent[1] * k->extent[2], extract_row, &run);
    return PONS_OK;
}

/* ---- normal random numbers ------------------------------------------------------------------- */

static int64_t patch_size(const patch_kernel *k)
{
    return k->extent[1] * k->extent[2] * k->extent[3] * k->extent[4];
}

static void draw_block(void *context, int64_t i, int thread)
{
    const patch_run *run = context;
    int64_t size = patch_size(run->k), blocks = ceil_div_i64(size, BLOCK);
    int64_t n = i / blocks, first = i % blocks * BLOCK;
    int64_t count = min_i64(size - first, BLOCK);
    const int32_t *row = (const int32_t *)run->call->input[0] + n * PONS_PATCH_KEY_SIZE;
    uint64_t high = (uint32_t)row[PONS_PATCH_KEY_HIGH];
    float *to = (float *)run->call->output[0] + n * size + first;

    if (row[PONS_PATCH_KEY_WANTED] == 0)
        memset(to, 0, (size_t)count * sizeof *to);
    else
        pons_voxel_normals(high << 32 | (uint32_t)row[PONS_PATCH_KEY_LOW], (uint64_t)first, count,
                           to);
}

static pons_status draw_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const patch_kernel *k = kernel->state;
    int64_t blocks = ceil_div_i64(patch_size(k), BLOCK);
    patch_run run = { k, call, 0 };

    cpu_parallel_for(k->threads, k->extent[0] * blocks, draw_block, &run);
    return PONS_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void accumulate_row(void *context, int64_t i, int thread)
{
    const patch_run *run = context;
    const int64_t *e = run->k->extent;
    int64_t h = i % e[2], d = i / e[2];
    const int32_t *row = (const int32_t *)run->call->input[1] + run->patch * run->k->columns;
    const int32_t *place = row + PONS_PATCH_COORDINATES, *age = place + e[1] + e[2] + e[3];
    const int32_t *along = place + e[1] + e[2], *age_along = age + e[1] + e[2];
    const float *weight = (const float *)run->call->input[2] + i * e[3];
    const float *x = (const float *)run->call->input[3]
                   + (run->patch * e[1] * e[2] + i) * e[3] * e[4];
    bool fresh = age[d] != 0 && age[e[1] + h] != 0;
    char *held = run->call->output[0];
    float *sums;

    if (place[d] < 0 || place[e[1] + h] < 0)
        return;
    sums = (float *)(held + (int64_t)row[PONS_PATCH_VALUES] * PONS_PATCH_UNIT);
    for (int64_t w = 0; w < e[3]; w++, x += e[4]) {
        if (along[w] < 0)
            continue;
        float *sum = sums + ((int64_t)place[d] + place[e[1] + h] + along[w]) * e[4];
        if (fresh && age_along[w] != 0)
            memset(sum, 0, (size_t)e[4] * sizeof *sum);
        for (int64_t c = 0; c < e[4]; c++)
            sum[c] += weight[w] * x[c];
    }
}

/* Patches are accumulated one by one, as they may overlap. */
static pons_status accumulate_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const patch_kernel *k = kernel->state;
    patch_run run = { k, call, 0 };

    for (; run.patch < k->extent[0]; run.patch++)
        cpu_parallel_for(k->threads, k->extent[1] * k->extent[2], accumulate_row, &run);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void kernel_free(pons_kernel *kernel)
{
    free(kernel->state);
}

static bool is_supported(const pons_request *r)
{
    pons_type type = r->output[0].type;

    switch (r->kind) {
    case PONS_KERNEL_PATCH: return type == PONS_F32 || type == PONS_U8;
    case PONS_KERNEL_PATCH_ACCUMULATE:
        return r->input[2].type == PONS_F32 && r->input[3].type == PONS_F32;
    default: return type == PONS_F32;
    }
}

pons_status patch_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                          bool *supported, pons_error *err)
{
    bool adds = request->kind == PONS_KERNEL_PATCH_ACCUMULATE;
    bool extracts = request->kind == PONS_KERNEL_PATCH;
    const pons_tensor *patches = adds ? &request->input[3] : &request->output[0];
    patch_kernel *k;

    *supported = is_supported(request);
    if (!*supported)
        return PONS_OK;
    k = malloc(sizeof *k);
    if (k == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    *k = (patch_kernel){ .request = request, .threads = device->threads,
                         .columns = extracts || adds ? request->input[1].shape.extent[1] : 0 };
    memcpy(k->extent, patches->shape.extent, sizeof k->extent);
    *kernel = (pons_kernel){ .run = adds ? accumulate_run : extracts ? extract_run : draw_run,
                             .free = kernel_free,
                             .state = k, .implementation = "patch" };
    return PONS_OK;
}
