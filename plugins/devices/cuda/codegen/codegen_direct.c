/*
 * codegen_direct.c - the plan of a direct convolution, and how it reads channels.
 */
#include "cuda/codegen/codegen_direct.h"

direct_plan direct_plan_of(const pons_request *r)
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
    p.most = source_count(p.x);
    p.most = source_count(p.w) > p.most ? source_count(p.w) : p.most;
    p.most = source_count(p.y) > p.most ? source_count(p.y) : p.most;
    return p;
}

int direct_divisor(int64_t n, int64_t most)
{
    int64_t d = most < 1 ? 1 : most < n ? most : n;

    while (d > 1 && n % d != 0)
        d--;
    return (int)d;
}

/*
 * 'count' numbers, of which up to eight go at a time; what is read or written begins at a multiple.
 */
static void move(text *t, const char *indent, bool loads, pons_type type, int count,
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

void direct_load(text *t, const char *indent, pons_type type, int count, const char *from,
                 const char *to)
{
    move(t, indent, true, type, count, from, to);
}

void direct_store(text *t, const char *indent, pons_type type, int count, const char *from,
                  const char *to)
{
    move(t, indent, false, type, count, from, to);
}
