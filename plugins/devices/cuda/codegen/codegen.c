/*
 * codegen.c - what the kernels of a request have in common, and who writes each kind.
 */
#include "cuda/codegen/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static const struct {
    const char *name;
    bool (*make)(cuda_source *s);
} writers[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_MAP] = { "map", map_source },
    [PONS_KERNEL_CONVOLUTION] = { "convolution", convolution_source },
    [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = { "convolution_input", convolution_source },
    [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = { "convolution_weight", weight_source },
    [PONS_KERNEL_MATMUL] = { "matmul", matmul_source },
    [PONS_KERNEL_POOL] = { "pool", pool_source },
    [PONS_KERNEL_POOL_GRADIENT] = { "pool_gradient", pool_source },
    [PONS_KERNEL_RESIZE] = { "resize", take_source },
    [PONS_KERNEL_RESIZE_GRADIENT] = { "resize_gradient", take_source },
    [PONS_KERNEL_TRANSPOSE] = { "transpose", take_source },
    [PONS_KERNEL_FLIP] = { "flip", take_source },
    [PONS_KERNEL_CROP] = { "crop", take_source },
    [PONS_KERNEL_PAD] = { "pad", take_source },
    [PONS_KERNEL_PAD_GRADIENT] = { "pad_gradient", take_source },
    [PONS_KERNEL_CONCATENATE] = { "concatenate", take_source },
    [PONS_KERNEL_GATHER] = { "gather", take_source },
    [PONS_KERNEL_COPY] = { "copy", take_source },
    [PONS_KERNEL_ARG_MAX] = { "arg_max", extreme_source },
    [PONS_KERNEL_REDUCE_MINMAX_GRADIENT] = { "extreme_gradient", extreme_source },
    [PONS_KERNEL_PATCH] = { "patch", patch_source },
    [PONS_KERNEL_PATCH_NORMAL] = { "patch_normal", patch_source },
    [PONS_KERNEL_PATCH_ACCUMULATE] = { "patch_add", patch_source },
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

bool cuda_source_make(cuda_source *s, const pons_request *request)
{
    bool known = request->kind > 0 && request->kind < PONS_KERNEL_KIND_COUNT
              && writers[request->kind].make != NULL && !has_double(request);

    *s = (cuda_source){ .request = request };
    if (!known)
        return false;
    s->kind = writers[request->kind].name;
    if (!writers[request->kind].make(s))
        return false;
    for (int i = 0; i < s->launch_count; i++)
        s->failed = s->failed || s->launch[i].body.failed;
    return !s->failed;
}

void cuda_source_free(cuda_source *s)
{
    for (int i = 0; i < s->launch_count; i++)
        text_free(&s->launch[i].body);
    for (int i = 0; i < s->table_count; i++)
        free(s->table[i].data);
    *s = (cuda_source){ .request = NULL };
}

int cuda_source_parameters(const cuda_source *s)
{
    return s->request->input_count + s->request->output_count + 1 + s->table_count + 1;
}

void *source_table(cuda_source *s, const char *type, int64_t count, int *number)
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

text *source_begin(cuda_source *s, int64_t blocks)
{
    cuda_launch *l = &s->launch[s->launch_count++];

    if (s->launch_count == CUDA_LAUNCHES)
        abort(); /* maps have at most 64 tensors */
    l->blocks = blocks;
    return &l->body;
}

/* Of memory that the device holds the tensor tells of one byte: there are more. */
static bool is_held(const pons_request *r, int number, bool output)
{
    return number == 0
        && (r->kind == PONS_KERNEL_PATCH_ACCUMULATE || (r->kind == PONS_KERNEL_PATCH && !output));
}

static void write_parameters(const cuda_source *s, text *t)
{
    const pons_request *r = s->request;

    text_add(t, "(");
    for (int i = 0; i < r->input_count; i++)
        text_add(t, "const %s *in%d /* %lld%s */, ", text_type(r->input[i].type), i,
                 (long long)source_count(r->input[i].shape), is_held(r, i, false) ? "+" : "");
    for (int i = 0; i < r->output_count; i++)
        text_add(t, "%s *out%d /* %lld%s */, ", text_type(r->output[i].type), i,
                 (long long)source_count(r->output[i].shape), is_held(r, i, true) ? "+" : "");
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

/* How much scratch memory there is by now is known behind what was written. */
void source_end(cuda_source *s)
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

size_t source_scratch(cuda_source *s, size_t size)
{
    size_t at = s->scratch_size;

    s->scratch_size += round_up_size(size, 16);
    return at;
}

void source_point(text *t, const char *name, int64_t count, int64_t most)
{
    const char *index = text_index(most);

    text_add(t, "    const %s %s = (%s)blockIdx.x * %d + (int)threadIdx.x;\n", index, name, index,
             CUDA_THREADS);
    text_add(t, "    if (%s >= %lld)\n        return;\n", name, (long long)count);
}

void source_place(text *t, const char *from, const char *prefix, int rank, const int64_t *extent,
                  int64_t most)
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
