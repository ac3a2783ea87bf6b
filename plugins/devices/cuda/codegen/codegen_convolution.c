/*
 * codegen_convolution.c - direct convolutions, forward and input gradient, and small matrix
 * products, for every channel count, stride, dilation and group, without a library.
 *
 * Both directions gather: a point of the result is a sum over points of the source. The forward
 * result is y and its source x; for the input gradient the roles are exchanged. Along an axis,
 * kernel point k reads source point factor q + e(k), where q counts the points of the result. In
 * the input gradient with stride s only each s-th kernel point contributes to a point. The
 * remainder of the point decides which; results of one remainder form a class, and a block has one
 * class.
 *
 * A thread computes several points of the result and a tile of its channels. Each loaded weight is
 * used for all of these points, each loaded source element for all of these channels. The weights
 * of a tile are kept as floats in shared memory if they fit.
 */
#include "cuda/codegen/codegen_direct.h"

#include "base/integer.h"

enum { SUMS = 48, KEPT = 80, CHANNELS = 16, READ = 8, WEIGHTS = 48 };
enum { UNROLLED = 8 };     /* most kernel points along W of an unrolled loop                      */
enum { CHAIN = 256 };      /* most products that are added sequentially                           */
enum { BLOCKS = 528 };     /* minimum blocks: four for each of 132 multiprocessors                */
enum { SHARED_WEIGHTS = 8192 };      /* most weights of a tile in shared memory                   */

typedef struct gather_plan {
    direct_plan p;
    bool input_gradient;   /* input gradient                                                      */
    pons_shape result, source;
    int64_t result_channels, source_channels; /* channels of a group                              */
    int64_t extent[4], count; /* of a class: extents of N and q; count of points                  */
    int64_t class[3], blocks; /* classes along each axis; blocks of a class and tile              */
    int64_t held;          /* weights in shared memory; 0: they are loaded each time              */
    /* channels of the tile; source channels at a time; points of a thread */
    int channels, read, places;
} gather_plan;

/* True if the products of each kernel point are summed separately first, because there are many. */
static bool is_many(const gather_plan *g)
{
    return g->p.places * g->source_channels > CHAIN;
}

/* True if sums, weights and addresses fit in 128 registers. */
static bool has_registers(const gather_plan *g)
{
    int sums = g->places * g->channels * (is_many(g) ? 2 : 1);

    return sums <= SUMS && sums + g->read * g->channels <= KEPT
        && (g->places <= 4 || !g->input_gradient || !is_many(g));
}

static gather_plan plan_gather(const pons_request *r)
{
    gather_plan g = { .p = codegen_direct_plan(r),
                      .input_gradient = r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT };
    int64_t tiles = 1;

    g.result = g.input_gradient ? g.p.x : g.p.y;
    g.source = g.input_gradient ? g.p.y : g.p.x;
    g.result_channels = g.input_gradient ? g.p.in : g.p.out;
    g.source_channels = g.input_gradient ? g.p.out : g.p.in;
    g.count = g.extent[0] = g.result.extent[0];
    for (int a = 0; a < 3; a++) {
        g.class[a] = g.input_gradient ? g.p.c->stride[a] : 1;
        g.extent[1 + a] = ceil_div_i64(g.result.extent[1 + a], g.class[a]);
        g.count *= g.extent[1 + a];
        tiles *= g.class[a];
    }
    g.channels = codegen_direct_divisor(g.result_channels, CHANNELS);
    g.read = codegen_direct_divisor(g.source_channels, READ);
    g.read = codegen_direct_divisor(g.read, WEIGHTS / g.channels);
    g.held = g.p.places * g.source_channels * g.channels;
    g.held = g.held <= SHARED_WEIGHTS ? g.held : 0;
    tiles *= g.result.extent[4] / g.channels;
    for (g.places = 8; g.places > 1; g.places /= 2) {
        g.blocks = ceil_div_i64(g.count, CUDA_THREADS * g.places);
        if (has_registers(&g) && g.blocks * tiles >= BLOCKS)
            break;
    }
    g.blocks = ceil_div_i64(g.count, CUDA_THREADS * g.places);
    return g;
}

static int64_t all_blocks(const gather_plan *g)
{
    return g->blocks * g->class[0] * g->class[1] * g->class[2]
         * (g->result.extent[4] / g->channels);
}

/* Write the constants of a block: its class j1, j2, j3, and its first channels. */
static void write_block(const gather_plan *g, text *t)
{
    const int64_t count[4] = { g->result.extent[4] / g->channels, g->class[0], g->class[1],
                               g->class[2] };

    text_add(t, "    const int tile = (int)(blockIdx.x / %lld);\n", (long long)g->blocks);
    codegen_coordinates(t, "tile", "j", 4, count, 1);
    text_add(t, "    const int channel = j0 * %d, first = channel / %lld * %lld;\n", g->channels,
             (long long)g->result_channels, (long long)g->source_channels);
}

/* Write the index 'point' of the thread's point p, and its coordinates q0 to q3. */
static void write_point(const gather_plan *g, text *t)
{
    const char *index = text_index(g->p.most);

    text_add(t, "        const %s point = ((%s)(blockIdx.x %% %lld) * %d + p) * %d\n"
             "                       + (int)threadIdx.x;\n", index, index, (long long)g->blocks,
             g->places, CUDA_THREADS);
    codegen_coordinates(t, "point", "q", 4, g->extent, g->p.most);
}

/*
 * Write for each point of the thread its image in the source, and the source point of kernel point
 * 0.
 */
static void write_places(const gather_plan *g, text *t)
{
    text_add(t, "    %s image[%d];\n    int at1[%d], at2[%d], at3[%d];\n", text_index(g->p.most),
             g->places, g->places, g->places, g->places);
    text_add(t, "    float sum[%d];\n    EACH(i, %d)\n        sum[i] = 0.0f;\n"
             "    EACH(p, %d) {\n", g->places * g->channels, g->places * g->channels, g->places);
    write_point(g, t);
    text_add(t, "        image[p] = q0;\n");
    for (int a = 0; a < 3; a++)
        text_add(t, "        at%d[p] = %s(int)q%d * %d;\n", 1 + a,
                 a == 0 ? "point >= last ? -(1 << 30) : " : "", 1 + a,
                 g->input_gradient ? 1 : g->p.c->stride[a]);
    text_add(t, "    }\n");
}

/*
 * Write "for (int k1 = 0; ...) {" and e1; kernel points that do not belong to the class are
 * skipped.
 */
static void write_kernel_points(const gather_plan *g, int a, text *t)
{
    const pons_convolution *c = g->p.c;

    text_add(t, "    for (int k%d = 0; k%d < %lld; k%d++) {\n", 1 + a, 1 + a,
             (long long)g->p.w.extent[1 + a], 1 + a);
    if (!g->input_gradient)
        text_add(t, "    const int e%d = k%d * %d - %d;\n", 1 + a, 1 + a, c->dilation[a],
                 c->pad_low[a]);
    else
        text_add(t, "    const int m%d = j%d + %d - k%d * %d, e%d = m%d / %d;\n"
                 "    if (m%d %% %d != 0)\n        continue;\n", 1 + a, 1 + a, c->pad_low[a],
                 1 + a, c->dilation[a], 1 + a, 1 + a, c->stride[a], 1 + a, c->stride[a]);
}

/* Write for each point its row of the source, and the source point of kernel point 0 in the row. */
static void write_lines(const gather_plan *g, text *t)
{
    const int64_t *s = g->source.extent;

    text_add(t, "    const %s *line[%d];\n    int reach[%d];\n    EACH(p, %d) {\n"
             "        const int a1 = at1[p] + e1, a2 = at2[p] + e2;\n"
             "        const int inside = (unsigned)a1 < %lldu && (unsigned)a2 < %lldu;\n",
             text_type(g->p.r->input[0].type), g->places, g->places, g->places, (long long)s[1],
             (long long)s[2]);
    text_add(t, "        const %s from = inside ? ((image[p] * %lld + a1) * %lld + a2) * %lld\n"
             "                              + at3[p] : 0;\n"
             "        line[p] = in0 + from * %lld + first;\n"
             "        reach[p] = inside ? at3[p] : -(1 << 30);\n    }\n", text_index(g->p.most),
             (long long)s[1], (long long)s[2], (long long)s[3], (long long)s[4]);
}

/*
 * Write the load of the weight of kernel point k, source channel 'a' of the group and channel i of
 * the tile.
 */
static void write_weight(const gather_plan *g, const char *a, text *t)
{
    const char *index = text_index(g->p.most);

    if (g->input_gradient)
        text_add(t, "number_%s(in1[((%s)(first + %s) * %lld + k) * %lld + channel %% %lld + i]);\n",
                 text_word(g->p.r->input[1].type), index, a, (long long)g->p.places,
                 (long long)g->p.in, (long long)g->p.in);
    else
        text_add(t, "number_%s(in1[((%s)(channel + i) * %lld + k) * %lld + %s]);\n",
                 text_word(g->p.r->input[1].type), index, (long long)g->p.places,
                 (long long)g->p.in, a);
}

/* Write the copy of the block's weights [k, a, i] to shared memory as floats. */
static void write_shared_weights(const gather_plan *g, text *t)
{
    if (g->held == 0)
        return;
    text_add(t, "    __shared__ quad held[%lld];\n    float *weights = (float *)held;\n"
             "    for (int n = (int)threadIdx.x; n < %lld; n += %d) {\n"
             "        const int i = n %% %d, a = n / %d %% %lld, k = n / %lld;\n"
             "        weights[n] = ", (long long)ceil_div_i64(g->held, 4), (long long)g->held,
             CUDA_THREADS, g->channels, g->channels, (long long)g->source_channels,
             (long long)(g->channels * g->source_channels));
    write_weight(g, "a", t);
    text_add(t, "    }\n    __syncthreads();\n");
}

/*
 * Write the products of one kernel point with 'read' channels of the source, from channel 'from'
 * on.
 */
static void write_products(const gather_plan *g, const char *sum, text *t)
{
    const pons_request *r = g->p.r;
    int c = g->channels;

    text_add(t, "    float w[%d];\n", g->read * c);
    if (g->held > 0) {
        text_add(t, "    const float *of = weights + (k * %lld + from) * %d;\n",
                 (long long)g->source_channels, c);
        codegen_direct_load(t, "    ", PONS_F32, g->read * c, "of", "w");
    } else {
        text_add(t, "    EACH(a, %d) EACH(i, %d)\n        w[a * %d + i] = ", g->read, c, c);
        write_weight(g, "from + a", t);
    }
    text_add(t, "    EACH(p, %d)\n        if ((unsigned)(reach[p] + e3) < %lldu) {\n"
             "            float x[%d];\n            const %s *at = line[p] + e3 * %lld + from;\n",
             g->places, (long long)g->source.extent[3], g->read, text_type(r->input[0].type),
             (long long)g->source.extent[4]);
    codegen_direct_load(t, "            ", r->input[0].type, g->read, "at", "x");
    text_add(t, "            EACH(a, %d) EACH(i, %d)\n"
             "                %s[p * %d + i] = fmaf(x[a], w[a * %d + i], %s[p * %d + i]);\n"
             "        }\n", g->read, c, sum, c, c, sum, c);
}

static void write_sums(const gather_plan *g, text *t)
{
    bool many = is_many(g);
    int sums = g->places * g->channels;

    write_kernel_points(g, 0, t);
    write_kernel_points(g, 1, t);
    write_lines(g, t);
    if (g->source_channels == g->read && g->class[2] == 1 && g->p.w.extent[3] <= UNROLLED)
        text_add(t, "    _Pragma(\"unroll\")\n");
    write_kernel_points(g, 2, t);
    text_add(t, "    const int k = (k1 * %lld + k2) * %lld + k3;\n",
             (long long)g->p.w.extent[2], (long long)g->p.w.extent[3]);
    if (many)
        text_add(t, "    float part[%d];\n    EACH(i, %d)\n        part[i] = 0.0f;\n", sums, sums);
    text_add(t, "    _Pragma(\"unroll 1\")\n    for (int from = 0; from < %lld; from += %d) {\n",
             (long long)g->source_channels, g->read);
    write_products(g, many ? "part" : "sum", t);
    text_add(t, "    }\n");
    if (many)
        text_add(t, "    EACH(i, %d)\n        sum[i] += part[i];\n", sums);
    text_add(t, "    }}}\n");
}

static void write_results(const gather_plan *g, text *t)
{
    const int64_t *e = g->result.extent;
    const char *index = text_index(g->p.most);

    text_add(t, "    EACH(p, %d) {\n", g->places);
    write_point(g, t);
    for (int a = 0; a < 3; a++)
        text_add(t, "        const %s r%d = q%d * %lld + j%d;\n", index, 1 + a, 1 + a,
                 (long long)g->class[a], 1 + a);
    text_add(t, "        if (point < last && r1 < %lld && r2 < %lld && r3 < %lld) {\n"
             "            %s *to = out0 + (((q0 * %lld + r1) * %lld + r2) * %lld + r3) * %lld\n"
             "                   + channel;\n",
             (long long)e[1], (long long)e[2], (long long)e[3], text_type(g->p.r->output[0].type),
             (long long)e[1], (long long)e[2], (long long)e[3], (long long)e[4]);
    text_add(t, "            const float *of = sum + p * %d;\n", g->channels);
    codegen_direct_store(t, "            ", g->p.r->output[0].type, g->channels, "of", "to");
    text_add(t, "        }\n    }\n");
}

bool codegen_convolution(codegen *s)
{
    gather_plan g = plan_gather(s->request);
    text *t = codegen_begin(s, all_blocks(&g));

    text_add(t, "    const %s last = %lld;\n", text_index(g.p.most), (long long)g.count);
    write_block(&g, t);
    write_shared_weights(&g, t);
    write_places(&g, t);
    write_sums(&g, t);
    write_results(&g, t);
    codegen_end(s);
    return true;
}

/* ---- matrix product -------------------------------------------------------------------------- */

bool codegen_matmul(codegen *s)
{
    const pons_request *r = s->request;
    const pons_matmul_attributes *m = r->attributes;
    pons_shape y = r->output[0].shape, a = r->input[0].shape;
    int64_t rows = y.extent[y.rank - 2], columns = y.extent[y.rank - 1], count = codegen_count(y);
    int64_t k = a.extent[y.rank - (m->transpose_a ? 2 : 1)], most = count;
    text *t = codegen_begin(s, codegen_blocks(count));

    most = max_i64(codegen_count(a), most);
    most = max_i64(codegen_count(r->input[1].shape), most);
    codegen_point(t, "point", count, most);
    codegen_coordinates(t, "point", "i", 3, (const int64_t[]){ count / (rows * columns), rows,
                        columns }, most);
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
    codegen_end(s);
    return true;
}
