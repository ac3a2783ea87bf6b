/*
 * codegen_convolution.c - direct convolutions forward and by the input, and small matrix products:
 * right for every channel count, stride, dilation and group, in no library.
 *
 * Both gather: a place of the result is a sum over places of the source, y of x's or x of y's.
 * Along an axis the source's place for kernel point k is factor q + e(k), where q counts the
 * result's places. By the input, with a stride s, only each s-th kernel point meets a place; which
 * ones depends on the place's remainder, so results of one remainder are a class, and a block is of
 * one class. A thread has some places of the result and a tile of its channels: what it reads of
 * the weights meets all of these places, what it reads of the source all of these channels. The
 * weights of a tile are floats in the block's own memory where they have room there.
 */
#include "cuda/codegen/codegen_direct.h"

#include "base/integer.h"

enum { SUMS = 48, KEPT = 80, CHANNELS = 16, READ = 8, WEIGHTS = 48 };
enum { UNROLLED = 8 };     /* kernel points along W                                               */
enum { CHAIN = 256 };      /* products that are added up one by one                               */
enum { BLOCKS = 528 };     /* four for each of 132 processors                                     */
enum { HELD = 8192 };      /* weights of a tile, of which a block keeps so many as floats         */

typedef struct gather_plan {
    direct_plan p;
    bool back;             /* by the input                                                        */
    pons_shape result, source;
    int64_t result_channels, source_channels; /* of a group                                       */
    int64_t extent[4], count; /* of a class: N and places q, all of them                          */
    int64_t class[3], blocks; /* classes along each axis; blocks of one class and tile            */
    int64_t held;          /* weights that a block keeps; 0: it reads them each time              */
    int channels, read, places; /* the tile; channels of the source at a time; places of a thread */
} gather_plan;

/* Of many products those of one kernel point are added up before they meet the rest. */
static bool is_many(const gather_plan *g)
{
    return g->p.places * g->source_channels > CHAIN;
}

/* Sums, and the weights that meet them: with addresses that is what 128 registers hold. */
static bool has_registers(const gather_plan *g)
{
    int sums = g->places * g->channels * (is_many(g) ? 2 : 1);

    return sums <= SUMS && sums + g->read * g->channels <= KEPT
        && (g->places <= 4 || !g->back || !is_many(g));
}

static gather_plan plan_gather(const pons_request *r)
{
    gather_plan g = { .p = direct_plan_of(r),
                      .back = r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT };
    int64_t tiles = 1;

    g.result = g.back ? g.p.x : g.p.y;
    g.source = g.back ? g.p.y : g.p.x;
    g.result_channels = g.back ? g.p.in : g.p.out;
    g.source_channels = g.back ? g.p.out : g.p.in;
    g.count = g.extent[0] = g.result.extent[0];
    for (int a = 0; a < 3; a++) {
        g.class[a] = g.back ? g.p.c->stride[a] : 1;
        g.extent[1 + a] = ceil_div_i64(g.result.extent[1 + a], g.class[a]);
        g.count *= g.extent[1 + a];
        tiles *= g.class[a];
    }
    g.channels = direct_divisor(g.result_channels, CHANNELS);
    g.read = direct_divisor(g.source_channels, READ);
    g.read = direct_divisor(g.read, WEIGHTS / g.channels);
    g.held = g.p.places * g.source_channels * g.channels;
    g.held = g.held <= HELD ? g.held : 0;
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

/* What is the same for a block: its class j1, j2, j3, and where its channels begin. */
static void write_block(const gather_plan *g, text *t)
{
    const int64_t count[4] = { g->result.extent[4] / g->channels, g->class[0], g->class[1],
                               g->class[2] };

    text_add(t, "    const int tile = (int)(blockIdx.x / %lld);\n", (long long)g->blocks);
    source_place(t, "tile", "j", 4, count, 1);
    text_add(t, "    const int channel = j0 * %d, first = channel / %lld * %lld;\n", g->channels,
             (long long)g->result_channels, (long long)g->source_channels);
}

/* Number 'point' of the thread's place p, and q0 to q3. */
static void write_point(const gather_plan *g, text *t)
{
    const char *index = text_index(g->p.most);

    text_add(t, "        const %s point = ((%s)(blockIdx.x %% %lld) * %d + p) * %d\n"
             "                       + (int)threadIdx.x;\n", index, index, (long long)g->blocks,
             g->places, CUDA_THREADS);
    source_place(t, "point", "q", 4, g->extent, g->p.most);
}

/* Of each place of the thread: the source's image, and where kernel point 0 would be. */
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
                 g->back ? 1 : g->p.c->stride[a]);
    text_add(t, "    }\n");
}

/* "for (int k1 = 0; ...) {" and e1, or on to the next where it meets none of this class. */
static void write_kernel_points(const gather_plan *g, int a, text *t)
{
    const pons_convolution *c = g->p.c;

    text_add(t, "    for (int k%d = 0; k%d < %lld; k%d++) {\n", 1 + a, 1 + a,
             (long long)g->p.w.extent[1 + a], 1 + a);
    if (!g->back)
        text_add(t, "    const int e%d = k%d * %d - %d;\n", 1 + a, 1 + a, c->dilation[a],
                 c->pad_low[a]);
    else
        text_add(t, "    const int m%d = j%d + %d - k%d * %d, e%d = m%d / %d;\n"
                 "    if (m%d %% %d != 0)\n        continue;\n", 1 + a, 1 + a, c->pad_low[a],
                 1 + a, c->dilation[a], 1 + a, 1 + a, c->stride[a], 1 + a, c->stride[a]);
}

/* Of each place: its line of the source from where kernel point 0 would be, and that place. */
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

/* The weight of kernel point k, the source's channel 'a' of the group and the tile's channel i. */
static void write_weight(const gather_plan *g, const char *a, text *t)
{
    const char *index = text_index(g->p.most);

    if (g->back)
        text_add(t, "number_%s(in1[((%s)(first + %s) * %lld + k) * %lld + channel %% %lld + i]);\n",
                 text_word(g->p.r->input[1].type), index, a, (long long)g->p.places,
                 (long long)g->p.in, (long long)g->p.in);
    else
        text_add(t, "number_%s(in1[((%s)(channel + i) * %lld + k) * %lld + %s]);\n",
                 text_word(g->p.r->input[1].type), index, (long long)g->p.places,
                 (long long)g->p.in, a);
}

/* The block's weights [k, a, i] as floats. */
static void write_held(const gather_plan *g, text *t)
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

/* The products of one kernel point, of 'read' channels of the source from 'from'. */
static void write_products(const gather_plan *g, const char *sum, text *t)
{
    const pons_request *r = g->p.r;
    int c = g->channels;

    text_add(t, "    float w[%d];\n", g->read * c);
    if (g->held > 0) {
        text_add(t, "    const float *of = weights + (k * %lld + from) * %d;\n",
                 (long long)g->source_channels, c);
        direct_load(t, "    ", PONS_F32, g->read * c, "of", "w");
    } else {
        text_add(t, "    EACH(a, %d) EACH(i, %d)\n        w[a * %d + i] = ", g->read, c, c);
        write_weight(g, "from + a", t);
    }
    text_add(t, "    EACH(p, %d)\n        if ((unsigned)(reach[p] + e3) < %lldu) {\n"
             "            float x[%d];\n            const %s *at = line[p] + e3 * %lld + from;\n",
             g->places, (long long)g->source.extent[3], g->read, text_type(r->input[0].type),
             (long long)g->source.extent[4]);
    direct_load(t, "            ", r->input[0].type, g->read, "at", "x");
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
    direct_store(t, "            ", g->p.r->output[0].type, g->channels, "of", "to");
    text_add(t, "        }\n    }\n");
}

bool convolution_source(cuda_source *s)
{
    gather_plan g = plan_gather(s->request);
    text *t = source_begin(s, all_blocks(&g));

    text_add(t, "    const %s last = %lld;\n", text_index(g.p.most), (long long)g.count);
    write_block(&g, t);
    write_held(&g, t);
    write_places(&g, t);
    write_sums(&g, t);
    write_results(&g, t);
    source_end(s);
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
