/*
 * codegen_patch.c - patches extracted from resident cases, with one thread for each element; normal
 * random numbers, with one thread for the four of a draw; patches accumulated into resident sums,
 * with one thread for each element and one kernel for each patch.
 */
#include "cuda/codegen/codegen.h"

#include "base/integer.h"

static void write_extract(codegen *s)
{
    const pons_request *r = s->request;
    pons_shape y = r->output[0].shape;
    int64_t count = codegen_count(y);
    text *t = codegen_begin(s, codegen_blocks(count));

    codegen_point(t, "point", count, count);
    codegen_coordinates(t, "point", "y", 5, y.extent, count);
    text_add(t, "    const int *row = in1 + (u64)y0 * %lld, *place = row + %d;\n",
             (long long)r->input[1].shape.extent[1], PONS_PATCH_COORDINATES);
    text_add(t, "    const int d = place[y1], h = place[%lld + y2], w = place[%lld + y3];\n",
             (long long)y.extent[1], (long long)(y.extent[1] + y.extent[2]));
    text_add(t, "    const u64 at = ((u64)d + h + w) * %lld + y4;\n", (long long)y.extent[4]);
    text_add(t, "    const u8 *values = in0 + (u64)row[%d] * %d;\n", PONS_PATCH_VALUES,
             PONS_PATCH_UNIT);
    text_add(t, "    if (d < 0 || h < 0 || w < 0) {\n        out0[point] = 0;\n"
             "        return;\n    }\n");
    if (r->output[0].type == PONS_U8) {
        text_add(t, "    out0[point] = values[at];\n");
    } else {
        text_add(t, "    const float *table = (const float *)(in0 + (u64)row[%d] * %d);\n",
                 PONS_PATCH_TABLE, PONS_PATCH_UNIT);
        text_add(t, "    const int size = row[%d];\n", PONS_PATCH_CODE_SIZE);
        text_add(t, "    const float value = size == 1 ? table[values[at]]\n"
                 "                      : size == 2 ? table[((const u16 *)values)[at]]\n"
                 "                      : ((const float *)values)[at];\n"
                 "    out0[point] = stored_%s(value);\n", text_word(r->output[0].type));
    }
    codegen_end(s);
}

static void write_draw(codegen *s)
{
    const pons_request *r = s->request;
    pons_shape y = r->output[0].shape;
    long long size = codegen_count(y) / y.extent[0], quads = ceil_div_i64(size, 4);
    int64_t count = quads * y.extent[0];
    text *t = codegen_begin(s, codegen_blocks(count));

    codegen_point(t, "point", count, codegen_count(y) + 4);
    text_add(t, "    const int patch = (int)(point / %lld), *row = in0 + patch * %d;\n", quads,
             PONS_PATCH_KEY_SIZE);
    text_add(t, "    const u64 key = (u64)(unsigned)row[%d] << 32 | (unsigned)row[%d];\n",
             PONS_PATCH_KEY_HIGH, PONS_PATCH_KEY_LOW);
    text_add(t, "    const u64 element = (u64)(point %% %lld) * 4;\n", quads);
    text_add(t, "    %s *to = out0 + (u64)patch * %lld + element;\n",
             text_type(r->output[0].type), size);
    text_add(t, "    EACH(k, 4)\n        if (element + k < %lld)\n            to[k] = stored_%s("
             "row[%d] != 0 ? random_normal(key, element + k, 0, 0) : 0.0f);\n", size,
             text_word(r->output[0].type), PONS_PATCH_KEY_WANTED);
    codegen_end(s);
}

/*
 * The index of the patch is a literal, because all kernels of a request have the same parameters.
 */
static void write_accumulate(codegen *s, int64_t patch)
{
    const pons_request *r = s->request;
    const int64_t *e = r->input[3].shape.extent;
    int64_t count = e[1] * e[2] * e[3] * e[4], along = e[1] + e[2] + e[3];
    text *t = codegen_begin(s, codegen_blocks(count));

    codegen_point(t, "point", count, count);
    codegen_coordinates(t, "point", "x", 4, e + 1, count);
    text_add(t, "    const int *row = in1 + %lld, *place = row + %d, *age = place + %lld;\n",
             (long long)(patch * r->input[1].shape.extent[1]),
             PONS_PATCH_COORDINATES, (long long)along);
    text_add(t, "    const int d = place[x0], h = place[%lld + x1], w = place[%lld + x2];\n",
             (long long)e[1], (long long)(e[1] + e[2]));
    text_add(t, "    if (d < 0 || h < 0 || w < 0)\n        return;\n");
    text_add(t, "    const int fresh = age[x0] && age[%lld + x1] && age[%lld + x2];\n",
             (long long)e[1], (long long)(e[1] + e[2]));
    text_add(t, "    float *sum = (float *)(out0 + (u64)row[%d] * %d) + ((u64)d + h + w) * %lld + "
             "x3;\n", PONS_PATCH_VALUES, PONS_PATCH_UNIT, (long long)e[4]);
    text_add(t, "    const float product = number_%s(in2[point / %lld]) * number_%s(in3["
             "(u64)%lld + point]);\n", text_word(r->input[2].type), (long long)e[4],
             text_word(r->input[3].type), (long long)(patch * count));
    text_add(t, "    *sum = (fresh ? 0.0f : *sum) + product;\n");
    codegen_end(s);
}

static bool write_all_accumulate(codegen *s)
{
    int64_t patches = s->request->input[3].shape.extent[0];

    for (int64_t n = 0; n < patches && patches < CUDA_LAUNCHES; n++)
        write_accumulate(s, n);
    return patches < CUDA_LAUNCHES;
}

bool codegen_patch(codegen *s)
{
    if (s->request->kind == PONS_KERNEL_PATCH_ACCUMULATE)
        return write_all_accumulate(s);
    if (s->request->kind == PONS_KERNEL_PATCH)
        write_extract(s);
    else
        write_draw(s);
    return true;
}
