/*
 * source_convolution.c - direct convolutions in all three directions, and small matrix products:
 * right for every channel count, stride, dilation and group, in no library.
 *
 * x [N, D, H, W, I], w [O, kD, kH, kW, I / groups], y [N, D', H', W', O]. Forward and input
 * gradient have a thread for each element of the result, which adds up the products of one kernel
 * point before it adds that to the rest. The weight gradient is a sum over all points of y: columns
 * of input channels, pieces of points, and a second kernel that joins the pieces, as maps reduce.
 */
#include "source.h"

enum { BLOCKS = 1024, STEPS_LEAST = 8 };

typedef struct direct_plan {
    const pons_request *r;
    const pons_convolution *c;
    pons_shape x, w, y;
    int64_t in, out, most; /* channels of a group; the largest index                              */
    int width;             /* channels that are read at a time                                    */
} direct_plan;

static direct_plan plan_of(const pons_request *r)
{
    direct_plan p = { .r = r, .c = r->attributes, .width = 1 };

    p.x = r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT ? r->output[0].shape
                                                            : r->input[0].shape;
    p.w = r->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT ? r->output[0].shape
                                                             : r->input[1].shape;
    p.y = r->kind == PONS_KERNEL_CONVOLUTION ? r->output[0].shape
        : r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT ? r->input[0].shape
                                                            : r->input[1].shape;
    p.in = p.w.extent[4];
    p.out = p.w.extent[0] / p.c->groups;
    p.most = source_count(p.x);
    p.most = source_count(p.w) > p.most ? source_count(p.w) : p.most;
    p.most = source_count(p.y) > p.most ? source_count(p.y) : p.most;
    if (r->kind == PONS_KERNEL_CONVOLUTION && p.in % 4 == 0)
        p.width = p.in % 8 == 0 ? 8 : 4;
    return p;
}

/* "for (int k1 = 0; ...) {" and x's place x1 along each axis, or on to the next. */
static void write_kernel_points(const direct_plan *p, text *t)
{
    for (int a = 0; a < 3; a++) {
        text_add(t, "    for (int k%d = 0; k%d < %lld; k%d++) {\n", 1 + a, 1 + a,
                 (long long)p->w.extent[1 + a], 1 + a);
        text_add(t, "        const int x%d = y%d * %d - %d + k%d * %d;\n"
                 "        if (x%d < 0 || x%d >= %lld)\n            continue;\n", 1 + a, 1 + a,
                 p->c->stride[a], p->c->pad_low[a], 1 + a, p->c->dilation[a], 1 + a, 1 + a,
                 (long long)p->x.extent[1 + a]);
    }
}

/* The number of row (n, d, h, w) of an image, times its channels. */
static void write_row(const char *name, const char *letter, pons_shape s, const direct_plan *p,
                      text *t)
{
    text_add(t, "        const %s %s = (((%s)%s0 * %lld + %s1) * %lld + %s2) * %lld + %s3;\n",
             text_index(p->most), name, text_index(p->most), letter, (long long)s.extent[1], letter,
             (long long)s.extent[2], letter, (long long)s.extent[3], letter);
}

static void write_point_of_kernel(const direct_plan *p, text *t)
{
    text_add(t, "        const int k = (k1 * %lld + k2) * %lld + k3;\n",
             (long long)p->w.extent[2], (long long)p->w.extent[3]);
}

static int64_t kernel_points(const direct_plan *p)
{
    return p->w.extent[1] * p->w.extent[2] * p->w.extent[3];
}

static void write_forward(cuda_source *s, const direct_plan *p)
{
    const pons_request *r = p->r;
    int64_t count = source_count(p->y);
    text *t = source_begin(s, source_blocks(count));
    const char *index = text_index(p->most), *xw = text_word(r->input[0].type);
    const char *ww = text_word(r->input[1].type);

    source_point(t, "point", count, p->most);
    source_place(t, "point", "y", 5, p->y.extent, p->most);
    text_add(t, "    const int o = (int)y4, first = o / %lld * %lld, x0 = (int)y0;\n"
             "    float result = 0.0f;\n", (long long)p->out, (long long)p->in);
    write_kernel_points(p, t);
    write_row("row", "x", p->x, p, t);
    write_point_of_kernel(p, t);
    text_add(t, "        const %s *x = in0 + row * %lld + first;\n"
             "        const %s *w = in1 + ((%s)o * %lld + k) * %lld;\n        float sum = 0.0f;\n",
             text_type(r->input[0].type), (long long)p->x.extent[4], text_type(r->input[1].type),
             index, (long long)kernel_points(p), (long long)p->in);
    text_add(t, "        for (int i = 0; i < %lld; i += %d) {\n", (long long)p->in, p->width);
    if (p->width > 1)
        text_add(t, "            float a[%d], b[%d];\n            load%d_%s(x + i, a);\n"
                 "            load%d_%s(w + i, b);\n            EACH(j, %d)\n"
                 "                sum = fmaf(a[j], b[j], sum);\n", p->width, p->width, p->width, xw,
                 p->width, ww, p->width);
    else
        text_add(t, "            sum = fmaf(number_%s(x[i]), number_%s(w[i]), sum);\n", xw, ww);
    text_add(t, "        }\n        result += sum;\n    }}}\n"
             "    out0[point] = stored_%s(result);\n",
             text_word(r->output[0].type));
    source_end(s);
}

/* y's place y1 along each axis for x's place and a point of the kernel, or on to the next. */
static void write_writers(const direct_plan *p, text *t)
{
    for (int a = 0; a < 3; a++) {
        text_add(t, "    for (int k%d = 0; k%d < %lld; k%d++) {\n", 1 + a, 1 + a,
                 (long long)p->w.extent[1 + a], 1 + a);
        text_add(t, "        const int at%d = x%d + %d - k%d * %d, y%d = at%d / %d;\n"
                 "        if (at%d < 0 || at%d %% %d != 0 || y%d >= %lld)\n"
                 "            continue;\n", 1 + a, 1 + a, p->c->pad_low[a], 1 + a,
                 p->c->dilation[a], 1 + a, 1 + a, p->c->stride[a], 1 + a, 1 + a, p->c->stride[a],
                 1 + a, (long long)p->y.extent[1 + a]);
    }
}

static void write_input_gradient(cuda_source *s, const direct_plan *p)
{
    const pons_request *r = p->r;
    int64_t count = source_count(p->x), next = kernel_points(p) * p->in;
    text *t = source_begin(s, source_blocks(count));

    source_point(t, "point", count, p->most);
    source_place(t, "point", "x", 5, p->x.extent, p->most);
    text_add(t, "    const int i = (int)x4 %% %lld, first = (int)x4 / %lld * %lld, y0 = (int)x0;\n"
             "    float result = 0.0f;\n", (long long)p->in, (long long)p->in, (long long)p->out);
    write_writers(p, t);
    write_row("row", "y", p->y, p, t);
    write_point_of_kernel(p, t);
    text_add(t, "        const %s *y = in0 + row * %lld + first;\n"
             "        const %s *w = in1 + ((%s)first * %lld + k) * %lld + i;\n"
             "        float sum = 0.0f;\n        for (int o = 0; o < %lld; o++)\n"
             "            sum = fmaf(number_%s(y[o]), number_%s(w[o * %lldll]), sum);\n"
             "        result += sum;\n    }}}\n    out0[point] = stored_%s(result);\n",
             text_type(r->input[0].type), (long long)p->y.extent[4], text_type(r->input[1].type),
             text_index(p->most), (long long)kernel_points(p), (long long)p->in, (long long)p->out,
             text_word(r->input[0].type), text_word(r->input[1].type), (long long)next,
             text_word(r->output[0].type));
    source_end(s);
}

bool convolution_source(cuda_source *s)
{
    direct_plan p = plan_of(s->request);

    if (s->request->kind == PONS_KERNEL_CONVOLUTION)
        write_forward(s, &p);
    else
        write_input_gradient(s, &p);
    return true;
}

/* ---- the weight gradient --------------------------------------------------------------------- */

typedef struct weight_plan {
    int lanes;             /* columns of input channels                                           */
    int64_t columns, points, pieces, piece;
} weight_plan;

static weight_plan plan_blocks(const direct_plan *p)
{
    weight_plan b = { .lanes = 1, .points = source_count(p->y) / p->y.extent[4] };
    int64_t blocks, most;

    while (b.lanes < 32 && b.lanes < p->in)
        b.lanes *= 2;
    b.columns = (p->in + b.lanes - 1) / b.lanes;
    blocks = p->w.extent[0] * kernel_points(p) * b.columns;
    most = b.points / (CUDA_THREADS / b.lanes * STEPS_LEAST);
    b.pieces = blocks < BLOCKS ? BLOCKS / blocks : 1;
    b.pieces = b.pieces > most ? most : b.pieces;
    b.pieces = b.pieces > 0 ? b.pieces : 1;
    b.piece = (b.points + b.pieces - 1) / b.pieces;
    b.pieces = (b.points + b.piece - 1) / b.piece;
    return b;
}

/* Which weight a thread works at: o, k1, k2, k3 and i. */
static void write_weight_place(const direct_plan *p, const weight_plan *b, text *t)
{
    text_add(t, "    const int piece = (int)(blockIdx.x %% %lld);\n"
             "    const int column = (int)(blockIdx.x / %lld) %% %lld;\n"
             "    const int row = (int)(blockIdx.x / %lld), o = row / %lld;\n",
             (long long)b->pieces, (long long)b->pieces, (long long)b->columns,
             (long long)(b->pieces * b->columns), (long long)kernel_points(p));
    text_add(t, "    const int k1 = row / %lld %% %lld, k2 = row / %lld %% %lld;\n"
             "    const int k3 = row %% %lld;\n",
             (long long)(p->w.extent[2] * p->w.extent[3]), (long long)p->w.extent[1],
             (long long)p->w.extent[3], (long long)p->w.extent[2], (long long)p->w.extent[3]);
    text_add(t, "    const int i = column * %d + (int)threadIdx.x %% %d;\n"
             "    const int first = o / %lld * %lld;\n",
             b->lanes, b->lanes, (long long)p->out, (long long)p->in);
}

static void write_weight_sum(const direct_plan *p, const weight_plan *b, text *t)
{
    const pons_request *r = p->r;
    const char *index = text_index(p->most);

    text_add(t, "    const %s begin = (%s)piece * %lld;\n"
             "    const %s end = begin + %lld < %lld ? begin + %lld : %lld;\n"
             "    float result = 0.0f, part = 0.0f;\n    int turn = 0;\n", index, index,
             (long long)b->piece, index, (long long)b->piece, (long long)b->points,
             (long long)b->piece, (long long)b->points);
    text_add(t, "    for (%s point = begin + (int)threadIdx.x / %d; i < %lld && point < end; "
             "point += %d) {\n", index, b->lanes, (long long)p->in, CUDA_THREADS / b->lanes);
    source_place(t, "point", "y", 4, p->y.extent, p->most);
    text_add(t, "    const int x0 = (int)y0;\n");
    for (int a = 0; a < 3; a++)
        text_add(t, "    const int x%d = (int)y%d * %d - %d + k%d * %d;\n", 1 + a, 1 + a,
                 p->c->stride[a], p->c->pad_low[a], 1 + a, p->c->dilation[a]);
    text_add(t, "    if (x1 < 0 || x1 >= %lld || x2 < 0 || x2 >= %lld || x3 < 0 || x3 >= %lld)\n"
             "        continue;\n", (long long)p->x.extent[1], (long long)p->x.extent[2],
             (long long)p->x.extent[3]);
    write_row("from", "x", p->x, p, t);
    text_add(t, "        part = fmaf(number_%s(in0[from * %lld + first + i]),\n"
             "                    number_%s(in1[point * %lld + o]), part);\n",
             text_word(r->input[0].type), (long long)p->x.extent[4],
             text_word(r->input[1].type), (long long)p->y.extent[4]);
    text_add(t, "        if (++turn %% 16 == 0) {\n            result += part;\n"
             "            part = 0.0f;\n        }\n    }\n"
             "    result = block_sum(result + part, %d, shared);\n", b->lanes);
}

static void write_weight_join(cuda_source *s, const weight_plan *b, int64_t count)
{
    text *t = source_begin(s, (count + 31) / 32);

    text_add(t, "    __shared__ float shared[768];\n"
             "    const int at = (int)blockIdx.x * 32 + (int)threadIdx.x %% 32;\n"
             "    float x = 0.0f;\n"
             "    for (int piece = (int)threadIdx.x / 32; at < %lld && piece < %lld; piece += 8)\n"
             "        x += scratch[piece * %lldll + at];\n"
             "    x = block_sum(x, 32, shared);\n    if (threadIdx.x < 32 && at < %lld)\n"
             "        out0[at] = stored_%s(x);\n", (long long)count, (long long)b->pieces,
             (long long)count, (long long)count, text_word(s->request->output[0].type));
    source_end(s);
}

bool weight_source(cuda_source *s)
{
    direct_plan p = plan_of(s->request);
    weight_plan b = plan_blocks(&p);
    int64_t count = source_count(p.w);
    text *t = source_begin(s, p.w.extent[0] * kernel_points(&p) * b.columns * b.pieces);

    text_add(t, "    __shared__ float shared[768];\n");
    write_weight_place(&p, &b, t);
    write_weight_sum(&p, &b, t);
    text_add(t, "    if (threadIdx.x < %d && i < %lld)\n        ", b.lanes, (long long)p.in);
    if (b.pieces == 1)
        text_add(t, "out0[(%s)row * %lld + i] = stored_%s(result);\n", text_index(p.most),
                 (long long)p.in, text_word(s->request->output[0].type));
    else
        text_add(t, "scratch[piece * %lldll + row * %lldll + i] = result;\n", (long long)count,
                 (long long)p.in);
    if (b.pieces > 1)
        source_scratch(s, (size_t)(b.pieces * count) * 4);
    source_end(s);
    if (b.pieces > 1)
        write_weight_join(s, &b, count);
    return true;
}

/* ---- matrix product -------------------------------------------------------------------------- */

bool matmul_source(cuda_source *s)
{
    const pons_request *r = s->request;
    const pons_matmul_attributes *m = r->attributes;
    pons_shape y = r->output[0].shape, a = r->input[0].shape;
    int64_t rows = y.extent[y.rank - 2], columns = y.extent[y.rank - 1], count = source_count(y);
    int64_t k = a.extent[y.rank - (m->transpose_a ? 2 : 1)], most = count;
    text *t = source_begin(s, source_blocks(count));

    most = source_count(a) > most ? source_count(a) : most;
    most = source_count(r->input[1].shape) > most ? source_count(r->input[1].shape) : most;
    source_point(t, "point", count, most);
    source_place(t, "point", "i", 3, (const int64_t[]){ count / (rows * columns), rows, columns },
                 most);
    text_add(t, "    const %s *a = in0 + i0 * %lld + i1 * %lld;\n", text_type(r->input[0].type),
             (long long)(rows * k), (long long)(m->transpose_a ? 1 : k));
    text_add(t, "    const %s *b = in1 + i0 * %lld + i2 * %lld;\n", text_type(r->input[1].type),
             (long long)(columns * k), (long long)(m->transpose_b ? k : 1));
    text_add(t, "    float result = 0.0f;\n    for (int l = 0; l < %lld; l += 16) {\n"
             "        float sum = 0.0f;\n        for (int j = l; j < l + 16 && j < %lld; j++)\n"
             "            sum = fmaf(number_%s(a[j * %lldll]), number_%s(b[j * %lldll]), sum);\n"
             "        result += sum;\n    }\n    out0[point] = stored_%s(result);\n", (long long)k,
             (long long)k, text_word(r->input[0].type), (long long)(m->transpose_a ? rows : 1),
             text_word(r->input[1].type), (long long)(m->transpose_b ? 1 : columns),
             text_word(r->output[0].type));
    source_end(s);
    return true;
}
