/*
 * codegen.c - the table of generators, and the parts that all kernels have in common.
 */
#include "cuda/codegen/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static const struct {
    const char *name;
    bool (*make)(codegen *s);
} writers[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_MAP] = { "map", codegen_map },
    [PONS_KERNEL_CONVOLUTION] = { "convolution", codegen_convolution },
    [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = { "convolution_input", codegen_convolution },
    [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = { "convolution_weight", codegen_weight_gradient },
    [PONS_KERNEL_MATMUL] = { "matmul", codegen_matmul },
    [PONS_KERNEL_POOL] = { "pool", codegen_pool },
    [PONS_KERNEL_POOL_GRADIENT] = { "pool_gradient", codegen_pool },
    [PONS_KERNEL_RESIZE] = { "resize", codegen_gather },
    [PONS_KERNEL_RESIZE_GRADIENT] = { "resize_gradient", codegen_gather },
    [PONS_KERNEL_TRANSPOSE] = { "transpose", codegen_gather },
    [PONS_KERNEL_FLIP] = { "flip", codegen_gather },
    [PONS_KERNEL_CROP] = { "crop", codegen_gather },
    [PONS_KERNEL_PAD] = { "pad", codegen_gather },
    [PONS_KERNEL_PAD_GRADIENT] = { "pad_gradient", codegen_gather },
    [PONS_KERNEL_CONCATENATE] = { "concatenate", codegen_gather },
    [PONS_KERNEL_GATHER] = { "gather", codegen_gather },
    [PONS_KERNEL_COPY] = { "copy", codegen_gather },
    [PONS_KERNEL_ARG_MAX] = { "arg_max", codegen_argmax },
    [PONS_KERNEL_REDUCE_MINMAX_GRADIENT] = { "extreme_gradient", codegen_argmax },
    [PONS_KERNEL_PATCH] = { "patch", codegen_patch },
    [PONS_KERNEL_PATCH_NORMAL] = { "patch_normal", codegen_patch },
    [PONS_KERNEL_PATCH_ACCUMULATE] = { "patch_add", codegen_patch },
};

static bool has_double(const pons_request *r)
{
    for (int i = 0; i < r->input_count; i++)
        if (r->input[i].type == PONS_F64)
            return true;
    for (int i = 0; i < r->output_count; i++)
        if (r->output[i].type == PONS_F64)
            return true;
    return false;
}

bool codegen_make(codegen *s, const pons_request *request)
{
    bool known = request->kind > 0 && request->kind < PONS_KERNEL_KIND_COUNT
              && writers[request->kind].make != NULL && !has_double(request);

    *s = (codegen){ .request = request };
    if (!known)
        return false;
    s->kind = writers[request->kind].name;
    if (!writers[request->kind].make(s))
        return false;
    for (int i = 0; i < s->launch_count; i++)
        s->failed = s->failed || s->launch[i].body.failed;
    return !s->failed;
}

void codegen_free(codegen *s)
{
    for (int i = 0; i < s->launch_count; i++)
        text_free(&s->launch[i].body);
    for (int i = 0; i < s->table_count; i++)
        free(s->table[i].data);
    *s = (codegen){ .request = NULL };
}

int codegen_parameters(const codegen *s)
{
    return s->request->input_count + s->request->output_count + 1 + s->table_count + 1;
}

void *codegen_table(codegen *s, const char *type, int64_t count, int *number)
{
    cuda_table *t = &s->table[s->table_count];
    size_t size = 4 * (size_t)(count > 0 ? count : 1);
    void *data = s->table_count < CUDA_TABLES ? calloc(1, size) : NULL;

    if (data == NULL) {
        s->failed = true;
        return NULL;
    }
    *t = (cuda_table){ type, data, size };
    *number = s->table_count++;
    return data;
}

text *codegen_begin(codegen *s, int64_t blocks)
{
    cuda_launch *l = &s->launch[s->launch_count++];

    if (s->launch_count == CUDA_LAUNCHES)
        abort(); /* a map has at most 64 tensors */
    l->blocks = blocks;
    return &l->body;
}

/* True for resident memory, whose tensor has one byte: its size is not known here. */
static bool is_resident(const pons_request *r, int number, bool output)
{
    return number == 0
        && (r->kind == PONS_KERNEL_PATCH_ACCUMULATE || (r->kind == PONS_KERNEL_PATCH && !output));
}

static void write_parameters(const codegen *s, text *t)
{
    const pons_request *r = s->request;

    text_add(t, "(");
    for (int i = 0; i < r->input_count; i++)
        text_add(t, "const %s *in%d /* %lld%s */, ", text_type(r->input[i].type), i,
                 (long long)codegen_count(r->input[i].shape), is_resident(r, i, false) ? "+" : "");
    for (int i = 0; i < r->output_count; i++)
        text_add(t, "%s *out%d /* %lld%s */, ", text_type(r->output[i].type), i,
                 (long long)codegen_count(r->output[i].shape), is_resident(r, i, true) ? "+" : "");
    text_add(t, "float *scratch /* %zu */", s->scratch_size / sizeof(float));
    for (int i = 0; i < s->table_count; i++)
        text_add(t, ", const %s *table%d /* %zu */", s->table[i].type, i, s->table[i].size / 4);
    if (s->random)
        text_add(t, ", const u64 *moment /* 3 */");
    text_add(t, ")\n{\n");
    if (s->random)
        text_add(t, "    const u64 seed = moment[0], step = moment[1], micro_batch = "
                 "moment[2];\n");
}

/*
 * The parameters are written last: the size of the scratch memory is known at the end of the block.
 */
void codegen_end(codegen *s)
{
    cuda_launch *l = &s->launch[s->launch_count - 1];
    text whole = { .at = NULL };

    write_parameters(s, &whole);
    text_add(&whole, "%s}\n", l->body.at != NULL ? l->body.at : "");
    whole.failed = whole.failed || l->body.failed;
    text_free(&l->body);
    l->body = whole;
    if (l->body.at == NULL)
        return;
    snprintf(l->name, sizeof l->name, "%s_%016llx", s->kind,
             (unsigned long long)text_hash(l->body.at, TEXT_HASH));
}

size_t codegen_scratch(codegen *s, size_t size)
{
    size_t at = s->scratch_size;

    s->scratch_size += round_up_size(size, 16);
    return at;
}

void codegen_point(text *t, const char *name, int64_t count, int64_t most)
{
    const char *index = text_index(most);

    text_add(t, "    const %s %s = (%s)blockIdx.x * %d + (int)threadIdx.x;\n", index, name, index,
             CUDA_THREADS);
    text_add(t, "    if (%s >= %lld)\n        return;\n", name, (long long)count);
}

void codegen_coordinates(text *t, const char *from, const char *prefix, int rank,
                         const int64_t *extent, int64_t most)
{
    int64_t below = 1;

    for (int a = 0; a < rank; a++)
        below *= extent[a];
    for (int a = 0; a < rank; a++) {
        below /= extent[a] > 0 ? extent[a] : 1;
        text_add(t, "    const %s %s%d = ", text_index(most), prefix, a);
        if (extent[a] == 1)
            text_add(t, "0;\n");
        else if (below == 1)
            text_add(t, a > 0 ? "%s %% %lld;\n" : "%s;\n", from, (long long)extent[a]);
        else
            text_add(t, a > 0 ? "%s / %lld %% %lld;\n" : "%s / %lld;\n", from, (long long)below,
                     (long long)extent[a]);
    }
}
