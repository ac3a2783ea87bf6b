/*
 * source_direct.c - the plan of a direct convolution, and how it reads channels.
 */
#include "source_direct.h"

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

/* Of what begins at a multiple of 'count': how many go at a time. */
static int width_of(int count)
{
    int width = 8;

    while (count % width != 0)
        width /= 2;
    return width;
}

void direct_load(text *t, const char *indent, pons_type type, int count, const char *from,
                 const char *to)
{
    int width = width_of(count);

    for (int at = 0; at < count; at += width)
        if (width > 1)
            text_add(t, "%sload%d_%s(%s + %d, %s + %d);\n", indent, width, text_word(type), from, at,
                     to, at);
        else
            text_add(t, "%s%s[%d] = number_%s(%s[%d]);\n", indent, to, at, text_word(type), from,
                     at);
}

void direct_store(text *t, const char *indent, pons_type type, int count, const char *from,
                  const char *to)
{
    int width = width_of(count);

    for (int at = 0; at < count; at += width)
        if (width > 1)
            text_add(t, "%sstore%d_%s(%s + %d, %s + %d);\n", indent, width, text_word(type), to, at,
                     from, at);
        else
            text_add(t, "%s%s[%d] = stored_%s(%s[%d]);\n", indent, to, at, text_word(type), from,
                     at);
}
