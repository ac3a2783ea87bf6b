/*
 * codegen_weight_gradient.c - the weight gradient of a convolution: sums over all points of y.
 *
 * A block has a piece of y's points and a tile of weights: kernel points along W, channels of x and
 * channels of y. Each thread keeps the sums of the tile in registers for its points, so that a
 * loaded element is used several times. Threads are reduced within warps, warps in order, and
 * pieces by a second kernel, as in maps. A thread adds at most 64 products a weight, or more if the
 * sums of the pieces would exceed 64 MiB.
 */
#include "cuda/codegen/codegen_direct.h"

#include "base/integer.h"

enum { SUMS = 48, IN = 12, ALONG = 8, WARPS = CUDA_THREADS / 32 };
enum { HELD = 1 << 24 };   /* most floats of the sums of all pieces                               */
/* blocks: eight for each of 132 multiprocessors */
enum { TURNS_LEAST = 4, TURNS_MOST = 64, BLOCKS = 1056 };

typedef struct weight_plan {
    direct_plan p;
    int along, in, out;    /* the tile: kernel points along W, channels of x, channels of y       */
    int64_t tiles, points, piece, pieces;
} weight_plan;

static weight_plan plan_tiles(const pons_request *r)
{
    weight_plan b = { .p = codegen_direct_plan(r) };
    const direct_plan *p = &b.p;
    int64_t turns, most;

    b.along = codegen_direct_divisor(p->w.extent[3], ALONG);
    b.in = codegen_direct_divisor(p->in, IN / b.along);
    b.out = codegen_direct_divisor(p->out, SUMS / (b.along * b.in));
    b.tiles = codegen_count(p->w) / (b.along * b.in * b.out);
    b.points = codegen_count(p->y) / p->y.extent[4];
    turns = b.points * b.tiles / (CUDA_THREADS * BLOCKS);
    turns = turns < TURNS_LEAST ? TURNS_LEAST : turns > TURNS_MOST ? TURNS_MOST : turns;
    b.piece = CUDA_THREADS * turns;
    most = codegen_count(p->w) < HELD ? HELD / codegen_count(p->w) : 1;
    b.piece = max_i64(b.piece, ceil_div_i64(b.points, most));
    b.pieces = ceil_div_i64(b.points, b.piece);
    b.pieces = b.pieces > 0 ? b.pieces : 1;
    return b;
}

static int sums_of(const weight_plan *b) { return b->along * b->in * b->out; }

/* Write the first weight of the block's tile: o, k1, k2, k3 and i. */
static void write_tile(const weight_plan *b, text *t)
{
    const direct_plan *p = &b->p;
    const int64_t count[5] = { p->w.extent[0] / b->out, p->w.extent[1], p->w.extent[2],
                               p->w.extent[3] / b->along, p->in / b->in };

    text_add(t, "    const int piece = (int)(blockIdx.x %% %lld);\n"
             "    const int tile = (int)(blockIdx.x / %lld);\n", (long long)b->pieces,
             (long long)b->pieces);
    codegen_coordinates(t, "tile", "t", 5, count, 1);
    text_add(t, "    const int o = t0 * %d, k1 = t1, k2 = t2, k3 = t3 * %d, i = t4 * %d;\n"
             "    const int first = o / %lld * %lld + i;\n", b->out, b->along, b->in,
             (long long)p->out, (long long)p->in);
}

static void write_products(const weight_plan *b, text *t)
{
    const direct_plan *p = &b->p;
    const pons_request *r = p->r;
    const char *index = text_index(p->most);

    text_add(t, "        float y[%d];\n        const %s *y_row = in1 + point * %lld + o;\n", b->out,
             text_type(r->input[1].type), (long long)p->y.extent[4]);
    codegen_direct_load(t, "        ", r->input[1].type, b->out, "y_row", "y");
    text_add(t, "        const %s row = ((y0 * %lld + x1) * %lld + x2) * %lld;\n", index,
             (long long)p->x.extent[1], (long long)p->x.extent[2], (long long)p->x.extent[3]);
    text_add(t, "        EACH(k, %d) {\n"
             "            const int x3 = (int)y3 * %d - %d + (k3 + k) * %d;\n"
             "            if (x3 >= 0 && x3 < %lld) {\n                float x[%d];\n"
             "                const %s *x_row = in0 + (row + x3) * %lld + first;\n", b->along,
             p->c->stride[2], p->c->pad_low[2], p->c->dilation[2], (long long)p->x.extent[3], b->in,
             text_type(r->input[0].type), (long long)p->x.extent[4]);
    codegen_direct_load(t, "                ", r->input[0].type, b->in, "x_row", "x");
    text_add(t, "                EACH(a, %d) EACH(j, %d)\n"
             "                    sum[(k * %d + a) * %d + j] =\n"
             "                        fmaf(x[a], y[j], sum[(k * %d + a) * %d + j]);\n"
             "            }\n        }\n", b->in, b->out, b->in, b->out, b->in, b->out);
}

/* Write the sums over a thread's points of the piece. */
static void write_sums(const weight_plan *b, text *t)
{
    const direct_plan *p = &b->p;
    const char *index = text_index(p->most);

    text_add(t, "    const %s begin = (%s)piece * %lld;\n"
             "    const %s end = begin + %lld < %lld ? begin + %lld : %lld;\n"
             "    float sum[%d];\n    EACH(j, %d)\n        sum[j] = 0.0f;\n", index, index,
             (long long)b->piece, index, (long long)b->piece, (long long)b->points,
             (long long)b->piece, (long long)b->points, sums_of(b), sums_of(b));
    text_add(t, "    for (%s point = begin + (int)threadIdx.x; point < end; point += %d) {\n",
             index, CUDA_THREADS);
    codegen_coordinates(t, "point", "y", 4, p->y.extent, p->most);
    for (int a = 0; a < 2; a++)
        text_add(t, "    const int x%d = (int)y%d * %d - %d + k%d * %d;\n", 1 + a, 1 + a,
                 p->c->stride[a], p->c->pad_low[a], 1 + a, p->c->dilation[a]);
    text_add(t, "        if (x1 < 0 || x1 >= %lld || x2 < 0 || x2 >= %lld)\n"
             "            continue;\n",
             (long long)p->x.extent[1], (long long)p->x.extent[2]);
    write_products(b, t);
    text_add(t, "    }\n");
}

/*
 * Write the reduction over the lanes of each warp, then over the warps; thread j has weight j of
 * the tile.
 */
static void write_join(const weight_plan *b, text *t)
{
    const direct_plan *p = &b->p;
    int sums = sums_of(b);

    text_add(t, "    const int thread = (int)threadIdx.x;\n    EACH(j, %d) {\n"
             "        for (int offset = 16; offset > 0; offset /= 2)\n"
             "            sum[j] += __shfl_down_sync(0xffffffffu, sum[j], (unsigned)offset);\n"
             "        if (thread %% 32 == 0)\n"
             "            shared[thread / 32 * %d + j] = sum[j];\n    }\n    __syncthreads();\n"
             "    if (thread < %d) {\n        float total = shared[thread];\n"
             "        for (int w = 1; w < %d; w++)\n"
             "            total += shared[w * %d + thread];\n",
             sums, sums, sums, WARPS, sums);
    text_add(t, "        const int k = thread / %d, a = thread / %d %% %d, j = thread %% %d;\n"
             "        const %s at = ((((%s)o + j) * %lld + k1) * %lld + k2) * %lld + k3 + k;\n",
             b->in * b->out, b->out, b->in, b->out, text_index(p->most), text_index(p->most),
             (long long)p->w.extent[1], (long long)p->w.extent[2], (long long)p->w.extent[3]);
    if (b->pieces == 1)
        text_add(t, "        out0[at * %lld + i + a] = stored_%s(total);\n    }\n",
                 (long long)p->in, text_word(p->r->output[0].type));
    else
        text_add(t, "        scratch[piece * %lldll + at * %lld + i + a] = total;\n    }\n",
                 (long long)codegen_count(p->w), (long long)p->in);
}

static void write_pieces(codegen *s, const weight_plan *b)
{
    int64_t count = codegen_count(b->p.w);
    text *t = codegen_begin(s, ceil_div_i64(count, 32));

    text_add(t, "    __shared__ float shared[256];\n"
             "    const int at = (int)blockIdx.x * 32 + (int)threadIdx.x %% 32;\n"
             "    float x = 0.0f;\n"
             "    for (int piece = (int)threadIdx.x / 32; at < %lld && piece < %lld; piece += 8)\n"
             "        x += scratch[piece * %lldll + at];\n"
             "    x = block_sum(x, 32, shared);\n    if (threadIdx.x < 32 && at < %lld)\n"
             "        out0[at] = stored_%s(x);\n", (long long)count, (long long)b->pieces,
             (long long)count, (long long)count, text_word(s->request->output[0].type));
    codegen_end(s);
}

bool codegen_weight_gradient(codegen *s)
{
    weight_plan b = plan_tiles(s->request);
    text *t = codegen_begin(s, b.tiles * b.pieces);

    text_add(t, "    __shared__ float shared[%d];\n", WARPS * sums_of(&b));
    write_tile(&b, t);
    write_sums(&b, t);
    write_join(&b, t);
    if (b.pieces > 1)
        codegen_scratch(s, (size_t)(b.pieces * codegen_count(b.p.w)) * 4);
    codegen_end(s);
    if (b.pieces > 1)
        write_pieces(s, &b);
    return true;
}
