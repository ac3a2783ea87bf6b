/*
 * codegen_pool.c - pooling and its gradient, with one thread for each element of the result.
 *
 * The gradient of a maximum visits all windows that contain the element. It adds the gradient of
 * each window whose first maximum is the element.
 */
#include "cuda/codegen/codegen.h"

#include "base/integer.h"

/* Write "const int begin0 = ..., end0 = ...;": the window of y's position inside x. */
static void write_window(const pons_pool *p, pons_shape x, const char *indent, text *t)
{
    for (int a = 0; a < 3; a++) {
        long long n = (long long)x.extent[1 + a], low = p->pad_low[a], high = p->pad_high[a];
        text_add(t, "%sconst int first%d = y%d * %d - %lld;\n", indent, a, 1 + a, p->stride[a],
                 low);
        text_add(t, "%sconst int last%d = first%d + %d < %lld ? first%d + %d : %lld;\n", indent, a,
                 a, p->kernel[a], n + high, a, p->kernel[a], n + high);
        text_add(t, "%sconst int begin%d = first%d < 0 ? 0 : first%d;\n", indent, a, a, a);
        text_add(t, "%sconst int end%d = last%d < %lld ? last%d : %lld;\n", indent, a, a, n, a, n);
    }
}

static void write_address(pons_shape s, const char *d, const char *h, const char *w, text *t)
{
    text_add(t, "(((n * %lldll + %s) * %lld + %s) * %lld + %s) * %lld + c", (long long)s.extent[1],
             d, (long long)s.extent[2], h, (long long)s.extent[3], w, (long long)s.extent[4]);
}

static void write_loops(const char *indent, text *t)
{
    text_add(t, "%sfor (int d = begin0; d < end0; d++)\n%sfor (int h = begin1; h < end1; h++)\n"
             "%sfor (int w = begin2; w < end2; w++) {\n", indent, indent, indent);
}

static const char window_size[] = "(float)((last0 - first0) * (last1 - first1) * (last2 - first2))";

static void write_pool(codegen *s)
{
    const pons_request *r = s->request;
    const pons_pool *p = r->attributes;
    pons_shape x = r->input[0].shape, y = r->output[0].shape;
    int64_t count = codegen_count(y);
    text *t = codegen_begin(s, codegen_blocks(count));
    bool mean = p->mode == PONS_POOL_MEAN;

    codegen_point(t, "point", count, max_i64(count, codegen_count(x)));
    codegen_coordinates(t, "point", "y", 5, y.extent, count);
    text_add(t, "    const int n = y0, c = y4;\n");
    write_window(p, x, "    ", t);
    text_add(t, mean ? "    float result = 0.0f;\n"
                     : "    float result = 0.0f;\n    int found = 0;\n");
    write_loops("    ", t);
    text_add(t, "        const float v = number_%s(in0[", text_word(r->input[0].type));
    write_address(x, "d", "h", "w", t);
    text_add(t, "]);\n");
    text_add(t, mean ? "        result += v;\n    }\n"
                     : "        result = !found || v > result || (v != v && result == result) ? v "
                       ": result;\n        found = 1;\n    }\n");
    text_add(t, "    out0[point] = stored_%s(result%s%s);\n", text_word(r->output[0].type),
             mean ? " / " : "", mean ? window_size : "");
    codegen_end(s);
}

/* Write the loops over the windows of y that contain position i1, i2, i3 of x. */
static void write_readers(const pons_pool *p, pons_shape y, text *t)
{
    for (int a = 0; a < 3; a++) {
        int k = p->kernel[a], st = p->stride[a], low = p->pad_low[a];
        text_add(t, "    const int from%d = i%d + %d < %d ? 0 : (i%d + %d) / %d;\n", a, 1 + a,
                 low, k, 1 + a, low - k + st, st);
        text_add(t, "    const int to%d = (i%d + %d) / %d < %lld ? (i%d + %d) / %d : %lld;\n", a,
                 1 + a, low, st, (long long)y.extent[1 + a] - 1, 1 + a, low, st,
                 (long long)y.extent[1 + a] - 1);
    }
    for (int a = 0; a < 3; a++)
        text_add(t, "    for (int y%d = from%d; y%d <= to%d; y%d++)\n", 1 + a, a, 1 + a, a, 1 + a);
    text_add(t, "    {\n");
}

/* Write the test whether this element is the first maximum of the window. */
static void write_is_first(const pons_request *r, pons_shape x, text *t)
{
    text_add(t, "        int best = -1;\n        float most = 0.0f;\n");
    write_loops("        ", t);
    text_add(t, "            const float v = number_%s(in0[", text_word(r->input[0].type));
    write_address(x, "d", "h", "w", t);
    text_add(t, "]);\n            if (best < 0 || v > most || (v != v && most == most)) {\n"
             "                best = (d * %lld + h) * %lld + w;\n                most = v;\n"
             "            }\n        }\n", (long long)x.extent[2], (long long)x.extent[3]);
    text_add(t, "        if (best == (i1 * %lld + i2) * %lld + i3)\n            result += dy;\n",
             (long long)x.extent[2], (long long)x.extent[3]);
}

static void write_gradient(codegen *s)
{
    const pons_request *r = s->request;
    const pons_pool *p = r->attributes;
    pons_shape x = r->output[0].shape, y = r->input[1].shape;
    int64_t count = codegen_count(x);
    text *t = codegen_begin(s, codegen_blocks(count));

    codegen_point(t, "point", count, max_i64(count, codegen_count(y)));
    codegen_coordinates(t, "point", "i", 5, x.extent, count);
    text_add(t, "    const int n = i0, c = i4;\n    float result = 0.0f;\n");
    write_readers(p, y, t);
    write_window(p, x, "        ", t);
    text_add(t, "        const float dy = number_%s(in1[", text_word(r->input[1].type));
    write_address(y, "y1", "y2", "y3", t);
    text_add(t, "]);\n        if (i1 < begin0 || i1 >= end0 || i2 < begin1 || i2 >= end1 "
             "|| i3 < begin2 || i3 >= end2)\n            continue;\n");
    if (p->mode == PONS_POOL_MEAN)
        text_add(t, "        result += dy / %s;\n", window_size);
    else
        write_is_first(r, x, t);
    text_add(t, "    }\n    out0[point] = stored_%s(result);\n", text_word(r->output[0].type));
    codegen_end(s);
}

bool codegen_pool(codegen *s)
{
    if (s->request->kind == PONS_KERNEL_POOL)
        write_pool(s);
    else
        write_gradient(s);
    return true;
}
