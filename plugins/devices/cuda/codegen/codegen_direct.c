/*
 * codegen_direct.c - the plan of a direct convolution, and its loads and stores of channels.
 */
#include "cuda/codegen/codegen_direct.h"

#include "base/integer.h"

direct_plan codegen_direct_plan(const pons_request *r)
{
    direct_plan p = { .r = r, .c = r->attributes };

    p.x = r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT ? r->output[0].shape
                                                            : r->input[0].shape;
    p.w = r->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT ? r->output[0].shape
                                                             : r->input[1].shape;
    p.y = r->kind == PONS_KERNEL_CONVOLUTION ? r->output[0].shape
        : r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT ? r->input[0].shape
                                                            : r->input[1].shape;
    p.in = p.w.extent[4];
    p.out = p.w.extent[0] / p.c->groups;
    p.places = p.w.extent[1] * p.w.extent[2] * p.w.extent[3];
    p.most = codegen_count(p.x);
    p.most = max_i64(codegen_count(p.w), p.most);
    p.most = max_i64(codegen_count(p.y), p.most);
    return p;
}

int codegen_direct_divisor(int64_t n, int64_t most)
{
    int64_t d = most < 1 ? 1 : most < n ? most : n;

    while (d > 1 && n % d != 0)
        d--;
    return (int)d;
}

/*
 * Write accesses of up to eight elements each for 'count' elements. The address is a multiple of
 * the width.
 */
static void write_access(text *t, const char *indent, bool loads, pons_type type, int count,
                         const char *from, const char *to)
{
    int width = 8;

    while (count % width != 0)
        width /= 2;
    for (int at = 0; at < count; at += width)
        if (width > 1)
            text_add(t, "%s%s%d_%s(%s + %d, %s + %d);\n", indent, loads ? "load" : "store", width,
                     text_word(type), loads ? from : to, at, loads ? to : from, at);
        else
            text_add(t, "%s%s[%d] = %s_%s(%s[%d]);\n", indent, to, at,
                     loads ? "number" : "stored", text_word(type), from, at);
}

void codegen_direct_load(text *t, const char *indent, pons_type type, int count, const char *from,
                         const char *to)
{
    write_access(t, indent, true, type, count, from, to);
}

void codegen_direct_store(text *t, const char *indent, pons_type type, int count, const char *from,
                          const char *to)
{
    write_access(t, indent, false, type, count, from, to);
}
